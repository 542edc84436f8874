// Package tables creates the tables that packages keep beside those of a journal.
package tables

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
)

// Create is [Ensure] and, for a table with time to live, [EnsureExpiry].
func Create(ctx context.Context, client journal.Client, table journal.TableSchema) error {
	if err := Ensure(ctx, client, table.Input); err != nil || table.TimeToLive == "" {
		return err
	}
	return EnsureExpiry(ctx, client, *table.Input.TableName, table.TimeToLive)
}

// Ensure creates a table if it does not exist, waits until it is active, and compares the keys of
// one that exists.
//
// Errors: [*journal.DescriptorMismatchError], [journal.ErrTableMissing] for an index that an
// existing table lacks, [journal.ErrAccess].
func Ensure(ctx context.Context, client journal.Client, table *dynamodb.CreateTableInput) error {
	if err := dynamo.EnsureTable(ctx, client, table); err != nil {
		return fmt.Errorf("create table %q: %w", *table.TableName, explain(err))
	}
	return nil
}

// EnsureExpiry turns time to live on for an attribute of a table, and does not wait until it is
// effective. It may be called again.
//
// Errors: [*journal.DescriptorMismatchError] if time to live is on for another attribute,
// [journal.ErrTableMissing], [journal.ErrAccess].
func EnsureExpiry(ctx context.Context, client journal.Client, table, attribute string) error {
	if err := dynamo.EnsureExpiry(ctx, client, table, attribute); err != nil {
		return fmt.Errorf("turn on time to live of table %q: %w", table, explain(err))
	}
	return nil
}

// Explain wraps err with the matching sentinel, such as [journal.ErrTableMissing], for a table that
// the function creator makes, such as "process.CreateTable". The SDK's error stays in the chain.
func Explain(err error, table, creator string) error { return dynamo.ExplainFor(err, table, creator) }

func explain(err error) error {
	var mismatch *dynamo.MismatchError
	if errors.As(err, &mismatch) {
		return (*journal.DescriptorMismatchError)(mismatch)
	}
	return err
}
