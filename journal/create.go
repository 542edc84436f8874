package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

// Create makes the journal, snapshot and checkpoint tables that do not exist, waits until they and
// their indexes are active, and stores the descriptor. It may be called again, and by several
// processes at once: it verifies what exists. It turns on time to live for the journal and the
// snapshot table; only items that are to expire have a time.
//
// Tables that have items but no descriptor were made by another program: Create does not change
// them and returns [ErrNoDescriptor]; see [Adopt]. While DynamoDB throttles, fails or cannot be
// reached, it tries each step again for up to 30 seconds.
//
// Errors: [*ConfigError], [*DescriptorMismatchError], [ErrNoDescriptor], [ErrTableMissing] for an
// index that an existing table lacks, [ErrAccess], [ErrThrottled], [ErrUnavailable], the context's.
func Create(ctx context.Context, client Client, config Config) error {
	j, err := prepare(client, config)
	if err != nil {
		return err
	}
	for _, table := range j.tables() {
		if err := ensured(dynamo.EnsureTable(ctx, j.client, table)); err != nil {
			return fmt.Errorf("create table %q: %w", *table.TableName, err)
		}
	}
	if err := dynamo.Start(ctx, j.verifyUnused); err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	// The descriptor comes last, so where there is one this was done, and takes no permissions any
	// more.
	err = dynamo.Start(ctx, func(ctx context.Context) error {
		_, err := j.readDescriptor(ctx)
		return err
	})
	if errors.Is(err, ErrNoDescriptor) {
		for _, table := range []string{j.config.Tables.Journal, j.config.Tables.Snapshot} {
			if err := ensured(dynamo.EnsureExpiry(ctx, j.client, table, j.config.Attributes.TTL)); err != nil {
				return fmt.Errorf("create table %q: %w", table, err)
			}
		}
	}
	if err := dynamo.Start(ctx, j.writeDescriptor); err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	return nil
}

// ensured returns the error of this package for one of package dynamo.
func ensured(err error) error {
	var mismatch *dynamo.MismatchError
	if errors.As(err, &mismatch) {
		return (*DescriptorMismatchError)(mismatch)
	}
	return err
}

// verifyUnused refuses tables with items but no descriptor. It looks for items first: what
// another process does in between can only add the descriptor.
func (j *engine) verifyUnused(ctx context.Context) error {
	for _, table := range []string{j.config.Tables.Journal, j.config.Tables.Snapshot} {
		out, err := j.client.Scan(ctx, &dynamodb.ScanInput{TableName: &table, Limit: aws.Int32(1), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return dynamo.Explain(err, table)
		}
		if len(out.Items) == 0 {
			continue
		}
		if _, err := j.readDescriptor(ctx); err != nil {
			return fmt.Errorf("table %q is not empty: %w", table, err)
		}
	}
	return nil
}

func prepare(client Client, config Config) (*engine, error) {
	if config.Shards == 0 {
		return nil, &ConfigError{Field: "Shards", Reason: fmt.Sprintf(
			"is 0: choose the number of logical shards, 1 to %d, once and for good (16 is a good choice)", maxShards)}
	}
	return newEngine(client, config)
}

// tables are the tables as they should be.
func (j *engine) tables() []*dynamodb.CreateTableInput {
	a, x := j.config.Attributes, j.config.Indexes
	text, number := types.ScalarAttributeTypeS, types.ScalarAttributeTypeN
	attribute := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: &name, AttributeType: kind}
	}
	index := func(name, hash, sort string) types.GlobalSecondaryIndex {
		return types.GlobalSecondaryIndex{
			IndexName:             &name,
			KeySchema:             keySchema(hash, sort),
			Projection:            &types.Projection{ProjectionType: types.ProjectionTypeAll},
			ProvisionedThroughput: j.config.Throughput,
		}
	}
	billing := types.BillingModePayPerRequest
	if j.config.Throughput != nil {
		billing = types.BillingModeProvisioned
	}
	keys := []types.AttributeDefinition{attribute(a.PartitionKey, text), attribute(a.SortKey, text)}
	byAggregate := []types.AttributeDefinition{attribute(a.AggregateID, text), attribute(a.SequenceNumber, number)}
	snapshot := &dynamodb.CreateTableInput{
		TableName:             aws.String(j.config.Tables.Snapshot),
		AttributeDefinitions:  keys,
		KeySchema:             keySchema(a.PartitionKey, a.SortKey),
		BillingMode:           billing,
		ProvisionedThroughput: j.config.Throughput,
	}
	if j.config.Layout == Classic {
		snapshot.AttributeDefinitions = slices.Concat(keys, byAggregate)
		snapshot.GlobalSecondaryIndexes = []types.GlobalSecondaryIndex{index(x.SnapshotAggregate, a.AggregateID, a.SequenceNumber)}
	}
	return []*dynamodb.CreateTableInput{
		{
			TableName:             aws.String(j.config.Tables.Journal),
			AttributeDefinitions:  slices.Concat([]types.AttributeDefinition{attribute(a.OccurredAt, number)}, keys, byAggregate),
			KeySchema:             keySchema(a.PartitionKey, a.SortKey),
			BillingMode:           billing,
			ProvisionedThroughput: j.config.Throughput,
			GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
				index(x.JournalAggregate, a.AggregateID, a.SequenceNumber),
				index(x.JournalTail, a.PartitionKey, a.OccurredAt),
			},
		},
		snapshot,
		{
			TableName:             aws.String(j.config.Tables.Checkpoint),
			AttributeDefinitions:  keys,
			KeySchema:             keySchema(a.PartitionKey, a.SortKey),
			BillingMode:           billing,
			ProvisionedThroughput: j.config.Throughput,
		},
	}
}
