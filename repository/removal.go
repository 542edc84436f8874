package repository

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/journal"
)

// Delete removes an aggregate: its state, its snapshots and its events. A tombstone stays, and
// every later call for this id returns a [*journal.DeletedError]. [journal.Journal.Delete]
// describes the costs and what stays.
//
// Version is the version on which the caller decided, as in [Aggregate]. If the aggregate has
// another version, nothing is removed and the error is a [*journal.ConflictError]. Consumer groups
// do not learn of the deletion. Save an event that reports it first, and use
// [journal.RemoveOptions].After so that groups can read the event. The layout journal.Packed does
// not have After: wait there until all groups have handled the event (groups.Groups.WaitApplied).
//
// After an error, call Delete again with the same version: it continues with the rest.
func (r *Repository[S]) Delete(ctx context.Context, id string, version uint64, options journal.RemoveOptions) error {
	name, err := r.definition.ID(id)
	if err != nil {
		return err
	}
	defer r.cache.forget(name)
	return r.journal.Delete(ctx, name, version, options)
}

// Truncate removes the events of an aggregate with numbers below before. The latest snapshot must
// include them, and this repository must be able to read it: its codec must decode it, with the
// current [Config.SnapshotSchema], and without [Config.IgnoreSnapshots]. Otherwise nothing is
// removed and the error is a [journal.ErrNotCovered]. With [Never], another program must have
// stored the snapshot. By default there may be none as long as loads are cheap: a commit of a
// repository with [Every](1) stores one. The aggregate remains usable, and its numbers are not used
// again.
//
// All other programs that load the aggregate need the snapshot too. Before truncating, deploy a new
// SnapshotSchema everywhere, and let each aggregate store a snapshot with it.
// [journal.Journal.Truncate] describes the costs.
//
// After an error, call Truncate again: it continues with the rest.
func (r *Repository[S]) Truncate(ctx context.Context, id string, before uint64, options journal.RemoveOptions) error {
	name, err := r.definition.ID(id)
	if err != nil {
		return err
	}
	head, err := r.head(ctx, name)
	if err != nil {
		return fmt.Errorf("truncate: %w", err)
	}
	if head.DeletedAt.IsZero() && before > head.TruncatedBefore && before > 1 {
		if a := r.restore(head, head.Snapshot); a.Version+1 < before {
			return fmt.Errorf("truncate %s before event %d: %w: this repository can read no snapshot of event %d or later; store one first",
				name, before, journal.ErrNotCovered, before-1)
		}
	}
	defer r.cache.forget(name)
	return r.journal.Truncate(ctx, name, before, options)
}
