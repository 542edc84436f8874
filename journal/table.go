package journal

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// EnsureTable makes a table where it is missing, waits until it is active, and compares the keys of one that is
// there, as [Create] does with the tables of the journal. It is for packages that keep tables of their own beside them.
//
// Errors: [*DescriptorMismatchError], [ErrTableMissing] for an index that an existing table lacks, [ErrAccess].
func EnsureTable(ctx context.Context, client Client, table *dynamodb.CreateTableInput) error {
	j := &engine{client: client}
	if err := j.ensureTable(ctx, table, true); err != nil {
		return fmt.Errorf("create table %q: %w", *table.TableName, err)
	}
	return nil
}

// EnsureExpiry turns time to live on for an attribute of a table, and waits for nothing: DynamoDB takes up to an hour to
// begin, and deletes what has expired within days. It may be called again. It is for packages that keep tables of their own.
//
// Errors: [*DescriptorMismatchError] if time to live is on for another attribute, [ErrTableMissing], [ErrAccess].
func EnsureExpiry(ctx context.Context, client Client, table, attribute string) error {
	j := &engine{client: client}
	j.config.Attributes.TTL = attribute
	if err := j.ensureExpiry(ctx, table); err != nil {
		return fmt.Errorf("turn on time to live of table %q: %w", table, err)
	}
	return nil
}
