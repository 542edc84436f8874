// Package throttle recognises that a table of an example is throttled.
package throttle

import (
	"errors"
	"fmt"

	"github.com/aws/smithy-go"

	"github.com/millrace-dev/millrace/journal"
)

// Explain adds journal.ErrThrottled to an error of the SDK that reports a lack of capacity. So
// callers can treat their own tables and those of the journal alike. It returns any other error
// unchanged.
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
