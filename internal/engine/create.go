package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// OrOtherLayout returns the error about another layout if that is why the keys of a table differ,
// and else err.
func (j *Engine) OrOtherLayout(ctx context.Context, err error) error {
	if !errors.As(err, new(*journaltype.DescriptorMismatchError)) {
		return err
	}
	var other *journaltype.DescriptorMismatchError
	if _, found := j.GivenDescriptor(ctx); errors.As(found, &other) && other.Field == layoutField {
		return other
	}
	return err
}

// VerifyUnused refuses tables that have items but no descriptor. It looks for items first: another
// process can only add the descriptor in between.
func (j *Engine) VerifyUnused(ctx context.Context) error {
	for _, input := range j.Layout.Tables() {
		name := *input.TableName
		out, err := j.Client.Scan(ctx, &dynamodb.ScanInput{TableName: &name, Limit: aws.Int32(1), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return dynamo.Explain(err, name)
		}
		if len(out.Items) == 0 {
			continue
		}
		if _, err := j.ReadDescriptor(ctx); err != nil {
			return fmt.Errorf("table %q is not empty: %w", name, err)
		}
	}
	return nil
}
