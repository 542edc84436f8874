// Package tables creates the tables that other packages need besides those of a journal.
package tables

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
)

// Create calls [Ensure], and [EnsureExpiry] if the table has time to live.
func Create(ctx context.Context, client journal.Client, table journal.TableSchema) error {
	if err := Ensure(ctx, client, table.Input); err != nil || table.TimeToLive == "" {
		return err
	}
	return EnsureExpiry(ctx, client, *table.Input.TableName, table.TimeToLive)
}

// Ensure creates a table if it does not exist, and waits until it is active. If the table exists,
// Ensure compares its keys.
//
// Errors: [*journal.DescriptorMismatchError] if the keys differ, [journal.ErrTableMissing] if the
// existing table lacks an index, [journal.ErrAccess].
func Ensure(ctx context.Context, client journal.Client, table *dynamodb.CreateTableInput) error {
	if err := dynamo.EnsureTable(ctx, client, table); err != nil {
		return fmt.Errorf("create table %q: %w", *table.TableName, explain(err))
	}
	return nil
}

// EnsureExpiry enables time to live for an attribute of a table. It does not wait until this takes
// effect, and may be called again.
//
// Errors: [*journal.DescriptorMismatchError] if time to live is enabled for another attribute,
// [journal.ErrTableMissing], [journal.ErrAccess].
func EnsureExpiry(ctx context.Context, client journal.Client, table, attribute string) error {
	if err := dynamo.EnsureExpiry(ctx, client, table, attribute); err != nil {
		return fmt.Errorf("enable time to live of table %q: %w", table, explain(err))
	}
	return nil
}

// Explain wraps err with the matching sentinel, such as [journal.ErrTableMissing]. creator is the
// function that creates the table, such as "process.CreateTable". The message names it. The SDK's
// error stays in the chain.
func Explain(err error, table, creator string) error { return dynamo.ExplainFor(err, table, creator) }

func explain(err error) error {
	var mismatch *dynamo.MismatchError
	if errors.As(err, &mismatch) {
		return (*journal.DescriptorMismatchError)(mismatch)
	}
	return err
}
