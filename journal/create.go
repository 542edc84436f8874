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

// Adopt takes over a journal and a snapshot table of another program, for example one of the
// event-store-adapter family. It verifies keys and indexes and that the snapshots lie in the shards
// that config implies, makes the checkpoint table if it does not exist, and stores the descriptor.
// It does not change events and snapshots. Adopt reads the snapshot table once: half a read unit
// for each 4 KB.
//
// The tail index has to exist: add it first, which DynamoDB does while the table is in use. Config
// has the resolver and the shard count that the other program uses.
//
// Errors: [*ConfigError], [ErrTableMissing], [*DescriptorMismatchError], [*CorruptItemError],
// [ErrAccess].
func Adopt(ctx context.Context, client Client, config Config) error {
	j, err := prepare(client, config)
	if err != nil {
		return err
	}
	if j.config.Layout != Classic {
		return &ConfigError{Field: "Layout", Reason: "is not Classic, which it is in tables that somebody else made"}
	}
	if len(config.RequiredEncodings) > 0 {
		return &ConfigError{Field: "RequiredEncodings", Reason: "is not empty, and the program that made the tables stores plain payloads"}
	}
	for _, table := range j.tables() {
		ensure := dynamo.VerifyTable
		if *table.TableName == j.config.Tables.Checkpoint {
			ensure = dynamo.EnsureTable
		}
		if err := ensured(ensure(ctx, j.client, table)); err != nil {
			return fmt.Errorf("adopt table %q: %w", *table.TableName, err)
		}
	}
	if err := dynamo.Start(ctx, j.verifyShards); err != nil {
		return fmt.Errorf("adopt journal: %w", err)
	}
	if err := dynamo.Start(ctx, j.writeDescriptor); err != nil {
		return fmt.Errorf("adopt journal: %w", err)
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

// verifyShards looks at every row of the snapshot table. A sample would not do: of a table made
// with 16 shards, half of the shards look right with 8.
func (j *engine) verifyShards(ctx context.Context) error {
	a, table := j.config.Attributes, j.config.Tables.Snapshot
	pages := dynamodb.NewScanPaginator(j.client, &dynamodb.ScanInput{
		TableName:                &table,
		ProjectionExpression:     aws.String("#pk, #sk, #aid"),
		ExpressionAttributeNames: attributeNames("#pk", a.PartitionKey, "#sk", a.SortKey, "#aid", a.AggregateID),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return dynamo.Explain(err, table)
		}
		for _, it := range page.Items {
			id, ok := j.aggregateOf(it)
			partition, sort := j.keysOf(it)
			if !ok {
				return &CorruptItemError{Table: table, PartitionKey: partition, SortKey: sort, Reason: "has no " + a.AggregateID + " that fits its partition"}
			}
			if want := j.partitionKey(id); want != partition {
				return &DescriptorMismatchError{
					Table: table, Field: fmt.Sprintf("aggregate %s in partition", id), Stored: partition,
					Given: fmt.Sprintf("%s (resolver %s, %d shards)", want, j.config.Resolver.Name(), j.config.Shards),
				}
			}
		}
	}
	return nil
}
