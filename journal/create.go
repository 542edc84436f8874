package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/table"
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
	if err := chosen(config.Layout); err != nil {
		return err
	}
	j, err := prepare(client, config)
	if err != nil {
		return err
	}
	tables := schemaOf(j)
	for _, name := range tables {
		if err := ensured(dynamo.EnsureTable(ctx, j.Client, name.Input)); err != nil {
			return fmt.Errorf("create table %q: %w", *name.Input.TableName, j.OrOtherLayout(ctx, err))
		}
	}
	if err := dynamo.Start(ctx, j.VerifyUnused); err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	// The descriptor is stored last. If it exists, time to live is on already, and this process
	// needs no permission for it. DynamoDB restores tables without time to live.
	var stored engine.Descriptor
	err = dynamo.Start(ctx, func(ctx context.Context) (err error) {
		stored, err = j.ReadDescriptor(ctx)
		return err
	})
	if errors.Is(err, ErrNoDescriptor) || err == nil && stored.Restored != "" {
		for _, name := range tables {
			if name.TimeToLive == "" {
				continue
			}
			if err := ensured(dynamo.EnsureExpiry(ctx, j.Client, *name.Input.TableName, name.TimeToLive)); err != nil {
				return fmt.Errorf("create table %q: %w", *name.Input.TableName, err)
			}
		}
	}
	if err := dynamo.Start(ctx, j.WriteDescriptor); err != nil {
		return fmt.Errorf("create journal: %w", err)
	}
	return nil
}

// ensured converts an error of package dynamo to the error of this package.
func ensured(err error) error {
	var mismatch *dynamo.MismatchError
	if errors.As(err, &mismatch) {
		return (*DescriptorMismatchError)(mismatch)
	}
	return err
}

func prepare(client Client, config Config) (*engine.Engine, error) {
	if config.Shards == 0 {
		return nil, &ConfigError{Field: "Shards", Reason: fmt.Sprintf(
			"is 0: choose the number of logical shards, 1 to %d; it can never change (16 is a good choice)", table.MaxShards)}
	}
	return connect(client, config)
}

// chosen returns an error if no layout was chosen.
func chosen(layout Layout) error {
	if layout != "" {
		return nil
	}
	return &ConfigError{Field: "Layout", Reason: "is empty, and it can never change: " +
		"take journal.Packed for a new application, which costs less, " +
		"or journal.Classic for tables that programs of the event-store-adapter family share"}
}
