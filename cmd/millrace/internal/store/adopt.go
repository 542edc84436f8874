package store

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
)

// Adopt takes over the tables of another program, see [journal.Adopt]. The names of keys and
// indexes, and of the attributes that indexes have as keys, are taken from the tables.
//
// Errors: those of journal.Adopt.
func Adopt(ctx context.Context, client journal.Client, config journal.Config) error {
	if err := config.Validate(); err != nil {
		return err
	}
	if err := takeNames(ctx, client, &config); err != nil {
		return err
	}
	if err := takeAttributes(ctx, client, &config); err != nil {
		return err
	}
	return journal.Adopt(ctx, client, config)
}

func takeAttributes(ctx context.Context, client journal.Client, config *journal.Config) error {
	names := &config.Classic
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &config.Tables.Journal})
	if err != nil {
		return fmt.Errorf("describe table: %w", dynamo.Explain(err, config.Tables.Journal))
	}
	if tail := indexOf(out.Table, "journal-tail-index", true); tail != nil {
		_, names.Attributes.OccurredAt = keysOf(tail.KeySchema)
	}
	if byAggregate := indexOf(out.Table, "journal-aid-index", false); byAggregate != nil {
		names.Attributes.AggregateID, names.Attributes.SequenceNumber = keysOf(byAggregate.KeySchema)
	}
	out, err = client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &config.Tables.Snapshot})
	if err != nil {
		return fmt.Errorf("describe table: %w", dynamo.Explain(err, config.Tables.Snapshot))
	}
	if byAggregate := indexOf(out.Table, "snapshot-aid-index", false); byAggregate != nil {
		names.Indexes.SnapshotAggregate = aws.ToString(byAggregate.IndexName)
	}
	return nil
}
