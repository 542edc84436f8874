package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Removal says how [Journal.Truncate] and [Journal.Delete] remove events. The zero value deletes
// them at once, including those that a consumer group has not read yet: the group skips them.
type Removal struct {
	// After, if positive, leaves the events to DynamoDB's time to live, which deletes them when
	// that time has passed, usually within two days. Consumer groups that lag behind have that time
	// to read them. The journal table needs time to live on its TTL attribute, which [Create] turns
	// on. The layout Packed refuses it.
	After time.Duration
	// Progress, if set, is called with the number of events that were removed or marked so far, at
	// least after every 500.
	Progress func(events int)
}

// Truncate removes the events of an aggregate with numbers below before, which its latest snapshot
// replaces. It first records that in the head, and then removes the events. From then on they may
// be missing in any order, and reading one returns a [*TruncatedError] instead of a
// [*CorruptItemError]. The aggregate continues; numbers are not used again.
//
// The snapshot must be of event before-1 or a later one, and one of ours. Otherwise a load would
// need the events. If its reader refuses the snapshot later, because of its schema, nothing can
// replace it.
//
// In the layout [Packed] it takes the events out of the commits' items, of those commits that end
// before the given event, and leaves the items. It copies the snapshot to a row that only a later
// truncation replaces.
//
// It costs one write unit for each KB of each event and as much in each index, in the layout Packed
// one for each commit in the index, and one read unit for each 4 KB. After an error, or if its
// process ended, call it again: it continues with what is left.
//
// Errors: with nothing removed [ErrNotCovered], [ErrNotFound], [*DeletedError],
// *aggregate.InvalidIDError, [*CorruptItemError] of the head, [*ConfigError] for a [Removal].After
// without time to live or in the layout Packed, and [ErrConflict] if other writers update the head
// again and again; at any time [ErrThrottled], [ErrContended], [ErrUnavailable], [ErrTableMissing],
// [ErrAccess], the context's.
func (j *Journal) Truncate(ctx context.Context, id aggregate.ID, before uint64, removal Removal) error {
	return j.engine.Truncate(ctx, id, before, removal)
}

func (j *engine) Truncate(ctx context.Context, id aggregate.ID, before uint64, removal Removal) error {
	err := id.Validate()
	if err == nil {
		err = j.layout.truncate(ctx, id, before, removal)
	}
	if err != nil {
		return fmt.Errorf("truncate %s before event %d: %w", id, before, err)
	}
	return nil
}

// Delete removes an aggregate for good: state, redundant snapshots and events. The head stays as a
// tombstone with the number of the last event, so that no number is used twice, and reading or
// writing the aggregate returns a [*DeletedError]. The ids of its commands stay too. For commands
// of several aggregates, the stored command has the aggregate's id, until [Config].CommandRetention
// has passed. A program of the event-store-adapter family does not know tombstones: if it has
// loaded the aggregate, it continues to write.
//
// Expected is the version on which the decision to delete was made. Consumer groups are not
// informed: store an event that says so first, and give them time to read it with [Removal].After.
//
// For costs, and what to do after an error, see [Journal.Truncate]. An aggregate that is a
// tombstone already is not an error: Delete removes what is left of it.
//
// Errors: with nothing removed [ErrConflict], [ErrNotFound], *aggregate.InvalidIDError,
// [*CorruptItemError] of the head and [*ConfigError] for a [Removal].After without time to live or
// in the layout Packed; at any time [ErrThrottled], [ErrContended], [ErrUnavailable],
// [ErrTableMissing], [ErrAccess], the context's.
func (j *Journal) Delete(ctx context.Context, id aggregate.ID, expected uint64, removal Removal) error {
	return j.engine.Delete(ctx, id, expected, removal)
}

func (j *engine) Delete(ctx context.Context, id aggregate.ID, expected uint64, removal Removal) error {
	err := id.Validate()
	if err == nil {
		err = j.layout.delete(ctx, id, expected, removal)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	return nil
}

// notCovered refuses to remove events for which no snapshot stands.
func notCovered(before uint64) error {
	return fmt.Errorf("%w: store one that is of event %d or later first", ErrNotCovered, before-1)
}
