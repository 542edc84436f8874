package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

)

// Create makes the journal, snapshot and checkpoint tables where they are
// missing, waits until they and their indexes are active, and stores the descriptor.
// It may be called again, and by several processes at once: what exists is verified.
//
// A journal that has items but no descriptor was made by somebody else: Create
// leaves it alone and gives [ErrNoDescriptor]; see [Adopt].
//
// Errors: [ErrInvalidConfig], [ErrDescriptorMismatch], [ErrNoDescriptor], [ErrAccess].
func Create(ctx context.Context, client Client, config Config) error {
	j, err := prepare(client, config)
	if err != nil {
		return err
	}
	for _, table := range j.tables() {
		if err := j.createTable(ctx, table); err != nil {
			return fmt.Errorf("create table %q: %w", *table.TableName, err)
		}
	}
	if _, err := j.readDescriptor(ctx); errors.Is(err, ErrNoDescriptor) {
		used, scanErr := j.hasEvents(ctx)
		if scanErr != nil {
			return fmt.Errorf("create journal: %w", scanErr)
		}
		if used {
			return fmt.Errorf("create journal: %w", err)
		}
	}
	if err := j.writeDescriptor(ctx); err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	return nil
}

// Adopt takes over a journal and a snapshot table that somebody else made, for
// example an application of the event-store-adapter family. It verifies keys and
// indexes and that the heads lie in the shards where config says they should, makes
// the checkpoint table if it is missing, and stores the descriptor. Events and
// heads are not touched.
//
// The tail index has to be there: add it first, which DynamoDB does while the
// table is in use. Config says which resolver and shard count the other application uses.
//
// Errors: [ErrInvalidConfig], [ErrTableMissing], [ErrDescriptorMismatch], [ErrAccess].
func Adopt(ctx context.Context, client Client, config Config) error {
	j, err := prepare(client, config)
	if err != nil {
		return err
	}
	for _, table := range j.tables() {
		if *table.TableName == j.config.Tables.Checkpoint {
			err = j.createTable(ctx, table)
		} else {
			err = j.verifyTable(ctx, table)
		}
		if err != nil {
			return fmt.Errorf("adopt table %q: %w", *table.TableName, err)
		}
	}
	if err := j.verifyShards(ctx); err != nil {
		return fmt.Errorf("adopt journal: %w", err)
	}
	if err := j.writeDescriptor(ctx); err != nil {
		return fmt.Errorf("adopt journal: %w", err)
	}
	return nil
}

func prepare(client Client, config Config) (*Journal, error) {
	if client == nil {
		return nil, &ConfigError{Field: "client", Reason: "is nil; pass a *dynamodb.Client"}
	}
	if err := config.validateForCreation(); err != nil {
		return nil, err
	}
	config.setDefaults()
	return &Journal{client: client, config: config}, nil
}

// tables are the tables as they should be.
func (j *Journal) tables() []*dynamodb.CreateTableInput {
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
	return []*dynamodb.CreateTableInput{
		{
			TableName:             aws.String(j.config.Tables.Journal),
			AttributeDefinitions:  append(append([]types.AttributeDefinition{attribute(a.OccurredAt, number)}, keys...), byAggregate...),
			KeySchema:             keySchema(a.PartitionKey, a.SortKey),
			BillingMode:           billing,
			ProvisionedThroughput: j.config.Throughput,
			GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
				index(x.JournalAggregate, a.AggregateID, a.SequenceNumber),
				index(x.JournalTail, a.PartitionKey, a.OccurredAt),
			},
		},
		{
			TableName:             aws.String(j.config.Tables.Snapshot),
			AttributeDefinitions:  append(append([]types.AttributeDefinition{}, keys...), byAggregate...),
			KeySchema:             keySchema(a.PartitionKey, a.SortKey),
			BillingMode:           billing,
			ProvisionedThroughput: j.config.Throughput,
			GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{
				index(x.SnapshotAggregate, a.AggregateID, a.SequenceNumber),
			},
		},
		{
			TableName:             aws.String(j.config.Tables.Checkpoint),
			AttributeDefinitions:  keys,
			KeySchema:             keySchema(a.PartitionKey, a.SortKey),
			BillingMode:           billing,
			ProvisionedThroughput: j.config.Throughput,
		},
	}
}

func (j *Journal) createTable(ctx context.Context, want *dynamodb.CreateTableInput) error {
	_, err := j.client.CreateTable(ctx, want)
	var exists *types.ResourceInUseException
	if err != nil && !errors.As(err, &exists) {
		return classify(err, *want.TableName)
	}
	return j.verifyTable(ctx, want)
}

// verifyTable waits until a table and its indexes are active and compares their keys.
func (j *Journal) verifyTable(ctx context.Context, want *dynamodb.CreateTableInput) error {
	wait := backoff.WithContext(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(2*time.Second),
		backoff.WithMaxElapsedTime(10*time.Minute),
	), ctx)
	return backoff.Retry(func() error {
		out, err := j.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: want.TableName})
		if err != nil {
			return backoff.Permanent(classify(err, *want.TableName))
		}
		if err := compareTable(want, out.Table); err != nil {
			return backoff.Permanent(err)
		}
		if out.Table.TableStatus != types.TableStatusActive && out.Table.TableStatus != types.TableStatusUpdating {
			return fmt.Errorf("table is %s", out.Table.TableStatus)
		}
		for _, index := range out.Table.GlobalSecondaryIndexes {
			if index.IndexStatus == types.IndexStatusCreating || index.IndexStatus == types.IndexStatusDeleting {
				return fmt.Errorf("index %q is %s", *index.IndexName, index.IndexStatus)
			}
		}
		return nil
	}, wait)
}

func compareTable(want *dynamodb.CreateTableInput, got *types.TableDescription) error {
	if keysText(want.KeySchema) != keysText(got.KeySchema) {
		return &DescriptorMismatchError{Table: *want.TableName, Field: "keys", Stored: keysText(got.KeySchema), Given: keysText(want.KeySchema)}
	}
	for _, index := range want.GlobalSecondaryIndexes {
		stored := "no such index"
		for _, g := range got.GlobalSecondaryIndexes {
			if *g.IndexName == *index.IndexName {
				stored = keysText(g.KeySchema)
				if g.Projection != nil && g.Projection.ProjectionType != types.ProjectionTypeAll {
					stored += " projecting " + string(g.Projection.ProjectionType)
				}
			}
		}
		if given := keysText(index.KeySchema); stored != given {
			return &DescriptorMismatchError{Table: *want.TableName, Field: fmt.Sprintf("index %q", *index.IndexName), Stored: stored, Given: given}
		}
	}
	return nil
}

func keysText(schema []types.KeySchemaElement) string {
	text := ""
	for _, k := range schema {
		text += fmt.Sprintf("(%s %s)", *k.AttributeName, k.KeyType)
	}
	return text
}

func (j *Journal) hasEvents(ctx context.Context) (bool, error) {
	out, err := j.scan(ctx, j.config.Tables.Journal, 1)
	return len(out) > 0, err
}

// verifyShards looks at some heads: a wrong resolver or shard count misplaces all
// but one in Shards of them, so a page is plenty.
func (j *Journal) verifyShards(ctx context.Context) error {
	items, err := j.scan(ctx, j.config.Tables.Snapshot, 100)
	if err != nil {
		return err
	}
	for _, it := range items {
		id, ok := j.aggregateOf(it)
		partition, sort := j.keysOf(it)
		if !ok {
			return &CorruptItemError{Table: j.config.Tables.Snapshot, PartitionKey: partition, SortKey: sort, Reason: "names no aggregate"}
		}
		if want := j.partitionKey(id); want != partition {
			return &DescriptorMismatchError{
				Table: j.config.Tables.Snapshot, Field: fmt.Sprintf("aggregate %s in shard", id), Stored: partition,
				Given: fmt.Sprintf("%s (resolver %s, %d shards)", want, j.config.Resolver.Name(), j.config.Shards),
			}
		}
	}
	return nil
}

func (j *Journal) scan(ctx context.Context, table string, limit int32) ([]map[string]types.AttributeValue, error) {
	out, err := j.client.Scan(ctx, &dynamodb.ScanInput{TableName: &table, Limit: &limit, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, classify(err, table)
	}
	return out.Items, nil
}
