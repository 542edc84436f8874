package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

// Create creates the journal, snapshot and checkpoint tables that do not exist, waits until they
// and their indexes are active, for up to ten minutes for each table, and stores the descriptor. It
// may be called again, and by several processes at once: it verifies tables that exist. It turns on
// time to live for the journal table and the snapshot table if they are new or marked as restored
// ([MarkRestored]), because a restore turns it off. Only items that should expire have a time to
// live.
//
// Tables that have items but no descriptor were made by another program. Create does not change
// them and returns [ErrNoDescriptor]; see [Adopt]. While DynamoDB throttles, fails or cannot be
// reached, Create tries each request again for up to 30 seconds.
//
// Errors: [*ConfigError], [*DescriptorMismatchError], [ErrNoDescriptor], [ErrTableMissing] for an
// index that an existing table lacks, [ErrAccess], [ErrThrottled], [ErrUnavailable], and the error
// of ctx.
func Create(ctx context.Context, client Client, config Config) error {
	j, err := prepare(client, config)
	if err != nil {
		return err
	}
	tables := schemaOf(j)
	for _, table := range tables {
		if err := ensured(dynamo.EnsureTable(ctx, j.Client, table.Input)); err != nil {
			return fmt.Errorf("create table %q: %w", *table.Input.TableName, j.OrOtherLayout(ctx, err))
		}
	}
	if err := dynamo.Start(ctx, j.VerifyUnused); err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	// The descriptor is stored last. If it exists, time to live is on already, and this process
	// needs no permission for it. DynamoDB restores tables without time to live.
	var stored Descriptor
	err = dynamo.Start(ctx, func(ctx context.Context) (err error) {
		stored, err = j.ReadDescriptor(ctx)
		return err
	})
	if errors.Is(err, ErrNoDescriptor) || err == nil && stored.Restored != "" {
		for _, table := range tables {
			if table.TimeToLive == "" {
				continue
			}
			if err := ensured(dynamo.EnsureExpiry(ctx, j.Client, *table.Input.TableName, table.TimeToLive)); err != nil {
				return fmt.Errorf("create table %q: %w", *table.Input.TableName, err)
			}
		}
	}
	if err := dynamo.Start(ctx, j.WriteDescriptor); err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	return nil
}

// OrOtherLayout returns the error about another layout if that is why the keys of a table differ,
// and else err.
func (j *Engine) OrOtherLayout(ctx context.Context, err error) error {
	if !errors.As(err, new(*DescriptorMismatchError)) {
		return err
	}
	var other *DescriptorMismatchError
	if _, found := j.GivenDescriptor(ctx); errors.As(found, &other) && other.Field == layoutField {
		return other
	}
	return err
}

// ensured converts an error of package dynamo to the error of this package.
func ensured(err error) error {
	var mismatch *dynamo.MismatchError
	if errors.As(err, &mismatch) {
		return (*DescriptorMismatchError)(mismatch)
	}
	return err
}

// VerifyUnused refuses tables that have items but no descriptor. It looks for items first: another
// process can only add the descriptor in between.
func (j *Engine) VerifyUnused(ctx context.Context) error {
	for _, input := range j.Layout.Tables() {
		table := *input.TableName
		out, err := j.Client.Scan(ctx, &dynamodb.ScanInput{TableName: &table, Limit: aws.Int32(1), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return dynamo.Explain(err, table)
		}
		if len(out.Items) == 0 {
			continue
		}
		if _, err := j.ReadDescriptor(ctx); err != nil {
			return fmt.Errorf("table %q is not empty: %w", table, err)
		}
	}
	return nil
}

func prepare(client Client, config Config) (*Engine, error) {
	if config.Shards == 0 {
		return nil, &ConfigError{Field: "Shards", Reason: fmt.Sprintf(
			"is 0: choose the number of logical shards, 1 to %d; it can never change (16 is a good choice)", MaxShards)}
	}
	return connect(client, config)
}

// CheckpointTable returns the table of consumer groups. It is the same in every layout.
func (s *Store) CheckpointTable() *dynamodb.CreateTableInput {
	a := s.Config.Attributes
	return s.TableInput(s.Config.Tables.Checkpoint, []types.AttributeDefinition{TextKey(a.PartitionKey), TextKey(a.SortKey)})
}

func TextKey(name string) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeS}
}

func NumberKey(name string) types.AttributeDefinition {
	return types.AttributeDefinition{AttributeName: &name, AttributeType: types.ScalarAttributeTypeN}
}

// TableInput returns a table as it should be. Attributes are the key attributes of it and its indexes.
func (s *Store) TableInput(name string, attributes []types.AttributeDefinition, indexes ...types.GlobalSecondaryIndex) *dynamodb.CreateTableInput {
	billing := types.BillingModePayPerRequest
	if s.Config.Throughput != nil {
		billing = types.BillingModeProvisioned
	}
	return &dynamodb.CreateTableInput{
		TableName:              &name,
		AttributeDefinitions:   attributes,
		KeySchema:              keySchema(s.Config.Attributes.PartitionKey, s.Config.Attributes.SortKey),
		BillingMode:            billing,
		ProvisionedThroughput:  s.Config.Throughput,
		GlobalSecondaryIndexes: indexes,
	}
}

// Index returns an index that projects all attributes.
func (s *Store) Index(name, hash, sort string) types.GlobalSecondaryIndex {
	return types.GlobalSecondaryIndex{
		IndexName:             &name,
		KeySchema:             keySchema(hash, sort),
		Projection:            &types.Projection{ProjectionType: types.ProjectionTypeAll},
		ProvisionedThroughput: s.Config.Throughput,
	}
}
