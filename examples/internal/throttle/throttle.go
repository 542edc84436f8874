// Package throttle recognizes that a table of an example is busy.
package throttle

import (
	"errors"
	"fmt"

	"github.com/aws/smithy-go"

	"github.com/millrace-dev/millrace/journal"
)

// Explain adds journal.ErrThrottled to an error of the SDK by which DynamoDB refused a request for
// lack of capacity. So callers treat their own tables as they do those of the journal. It returns
// any other error unchanged.
func Explain(err error) error {
	var reply smithy.APIError
	if !errors.As(err, &reply) {
		return err
	}
	switch reply.ErrorCode() {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "TransactionConflictException":
		return fmt.Errorf("%w: %w", journal.ErrThrottled, err)
	}
	return err
}
