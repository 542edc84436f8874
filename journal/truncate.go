package journal

import (
	"context"

	"github.com/millrace-dev/millrace/aggregate"
)

// Truncate removes the events of an aggregate with numbers below before. Its latest snapshot
// replaces them. Truncate first records the number in the head, and then removes the events. From
// then on, reading one of these events returns a [*TruncatedError] instead of a
// [*CorruptItemError]. They can disappear in any order. The aggregate continues; numbers are not
// used again.
//
// The snapshot must be of event before-1 or a later one, and written by a program of this module.
// Otherwise a load would need the events. If a later version of the program refuses the schema of
// the snapshot, nothing can replace it.
//
// In the layout [Packed], Truncate removes the events from the items of those commits that end
// before the given event, and keeps the items. It copies the snapshot to a row that only a later
// truncation replaces.
//
// In the layout [Classic], it costs one write unit for each KB of each event, and as much in each
// index. In Packed the items cost the same, but the index costs one unit for each commit. Both cost
// one read unit for each 4 KB. After an error, or if its process ended, call it again: it continues
// with what is left.
//
// These errors mean that nothing was removed: [ErrNotCovered], [ErrNotFound], [*DeletedError],
// *aggregate.InvalidIDError, [*CorruptItemError] for the head, [*ConfigError] for a
// [RemoveOptions].After without time to live or in the layout Packed, and [ErrConflict] if other
// writers update the head repeatedly. These errors can occur at any time: [ErrThrottled],
// [ErrContended], [ErrUnavailable], [ErrTableMissing], [ErrAccess], and the error of ctx.
func (j *Journal) Truncate(ctx context.Context, id aggregate.ID, before uint64, options RemoveOptions) error {
	return j.engine.Truncate(ctx, id, before, options)
}

// Delete removes an aggregate permanently: state, redundant snapshots and events. The head stays as
// a tombstone with the number of the last event, so that no number is used twice. Reading or
// writing the aggregate then returns a [*DeletedError]. The ids of its commands stay too. The
// stored command of several aggregates contains the aggregate's id until [Config].CommandRetention
// has passed. A program of the event-store-adapter family does not know tombstones: if it has
// loaded the aggregate, it continues to write.
//
// Expected is the version on which the decision to delete was made. Consumer groups are not
// informed. To inform them, store an event that announces the deletion, and let them read it by
// setting [RemoveOptions].After.
//
// The costs, and what to do after an error, are those of [Journal.Truncate]. If the aggregate is a
// tombstone already, Delete removes what is left of it and returns nil.
//
// These errors mean that nothing was removed: [ErrConflict], [ErrNotFound],
// *aggregate.InvalidIDError, [*CorruptItemError] for the head, and [*ConfigError] for a
// [RemoveOptions].After without time to live or in the layout Packed. These errors can occur at any
// time: [ErrThrottled], [ErrContended], [ErrUnavailable], [ErrTableMissing], [ErrAccess], and the
// error of ctx.
func (j *Journal) Delete(ctx context.Context, id aggregate.ID, expected uint64, options RemoveOptions) error {
	return j.engine.Delete(ctx, id, expected, options)
}
