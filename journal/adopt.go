package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/table"
)

// Adopt takes over the journal table and the snapshot table of another program, for example one of
// the event-store-adapter family. It verifies the keys and the indexes of both tables. It also
// verifies that each snapshot lies in the shard that config implies and has an id that Millrace can
// use, and samples the times of events. It creates the checkpoint table if that does not exist, and
// stores the descriptor. It does not change events or snapshots. Adopt may be called again.
//
// Adopt reads the snapshot table once, at half a read unit for each 4 KB. It also reads up to 1,000
// events from eight parts of the journal table; see [ClassicOptions.OccurredAtUnit]. While DynamoDB
// throttles, fails or cannot be reached, Adopt tries each request again for up to 30 seconds.
//
// The tail index must exist. Add it first: DynamoDB can do this while the table is in use. Config
// must name the resolver and the number of shards that the other program uses.
//
// Errors: [*ConfigError], [ErrTableMissing], [*DescriptorMismatchError], [*CorruptItemError] for a
// snapshot in the wrong shard or an event whose time is text, [*aggregate.InvalidIDError] for an id
// that is too long, [ErrAccess], [ErrThrottled], [ErrUnavailable], and the error of ctx.
func Adopt(ctx context.Context, client Client, config Config) error {
	j, err := prepare(client, config)
	if err != nil {
		return err
	}
	tables, ok := j.Layout.(adoptable)
	if !ok {
		return &ConfigError{Field: "Layout", Reason: "is not Classic: tables of other programs always have the classic layout"}
	}
	for field, required := range map[string]int{"RequiredEncodings": len(config.RequiredEncodings), "RequiredByType": len(config.RequiredByType)} {
		if required > 0 {
			return &ConfigError{Field: field, Reason: "is not empty, and the program that made the tables stores plain payloads"}
		}
	}
	for _, name := range append(j.Layout.Tables(), j.CheckpointTable()) {
		ensure := dynamo.VerifyTable
		if *name.TableName == j.Config.Tables.Checkpoint {
			ensure = dynamo.EnsureTable
		}
		if err := ensured(ensure(ctx, j.Client, name)); err != nil {
			return fmt.Errorf("adopt table %q: %w", *name.TableName, err)
		}
	}
	if err := tables.VerifyShards(ctx); err != nil {
		return fmt.Errorf("adopt journal: %w", err)
	}
	if j.Config.OccurredAtUnit, err = findUnit(ctx, j, tables, config.Classic.OccurredAtUnit); err != nil {
		return fmt.Errorf("adopt journal: %w", err)
	}
	if err := dynamo.Start(ctx, j.WriteDescriptor); err != nil {
		return fmt.Errorf("adopt journal: %w", err)
	}
	return nil
}

// adoptable is a layout whose tables another program may have made.
type adoptable interface {
	VerifyShards(ctx context.Context) error
	SampleUnits(ctx context.Context) (found []time.Duration, events int, err error)
}

// findUnit returns the unit of the descriptor, or the unit of the sampled events if there is no
// descriptor. It compares the sampled units with given, which is 0 if config names no unit.
func findUnit(ctx context.Context, j *engine.Engine, tables adoptable, given time.Duration) (time.Duration, error) {
	var stored engine.Descriptor
	err := dynamo.Start(ctx, func(ctx context.Context) (err error) {
		stored, err = j.ReadDescriptor(ctx)
		return err
	})
	switch {
	case errors.Is(err, ErrNoDescriptor):
	case err != nil:
		return 0, err
	case given == 0:
		return stored.Unit, nil
	}
	found, events, err := tables.SampleUnits(ctx)
	if err != nil {
		return 0, err
	}
	switch {
	case events == 0 && given == 0:
		return 0, &ConfigError{Field: "Classic.OccurredAtUnit", Reason: "is 0, and there are no events yet: set the unit in which the other program will write their times"}
	case len(found) == 0 && given == 0:
		return time.Millisecond, nil
	case len(found) == 1 && given == 0:
		return found[0], nil
	case given == 0:
		return 0, &ConfigError{Field: "Classic.OccurredAtUnit", Reason: fmt.Sprintf(
			"is 0, and events have their times in %s: choose the unit in which all programs write from now on", table.UnitNames(found...))}
	case len(found) > 0 && !slices.Contains(found, given):
		return 0, &ConfigError{Field: "Classic.OccurredAtUnit", Reason: fmt.Sprintf(
			"is %s, and events have their times in %s", table.UnitNames(given), table.UnitNames(found...))}
	}
	return given, nil
}
