package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// queue is a stream of a publisher whose first event is old.
type queue struct {
	head    journal.Head
	first   uint64 // number of the first event
	handled uint64 // number of the last event that no group needs
	heldBy  string // group that needs the event after handled
	stays   bool   // whether an old event stays that a later pass may remove
}

// queues returns the streams whose first event is old and marked.
func (t *trim) queues(ctx context.Context, heads []journal.Head) ([]*queue, error) {
	found := make([]*queue, len(heads))
	err := inParallel(readers, len(heads), func(i int) error {
		q := &queue{head: heads[i], first: max(heads[i].TruncatedBefore, 1), handled: heads[i].Version}
		if !q.head.DeletedAt.IsZero() || q.first > q.head.Version {
			return nil
		}
		err := patiently(ctx, func() error {
			for r, err := range t.groups.journal.Raw().Events(ctx, q.head.Aggregate, q.first, q.first) {
				if err != nil {
					return err
				}
				if isMarked(r) && t.isOld(r) {
					found[i] = q
				}
			}
			return nil
		})
		return t.unlessLeftAlone(err)
	})
	return slices.DeleteFunc(found, func(q *queue) bool { return q == nil }), err
}

// isMarked reports whether an event was published without an aggregate id, to this stream.
func isMarked(r *journal.Record) bool {
	return r.Metadata[metadata.OwnStreamKey] == metadata.StreamMark(r.Aggregate)
}

// isOld reports whether an event is old enough to be removed. An imported event must also have been
// written long enough ago.
func (t *trim) isOld(r *journal.Record) bool {
	return r.OccurredAt.Before(t.until) && r.WrittenAt.Before(t.until)
}

// unlessLeftAlone returns nil for an error that concerns only one stream, which a later pass can
// trim. It returns other errors.
func (t *trim) unlessLeftAlone(err error) error {
	var corrupt *journal.CorruptItemError
	switch {
	case errors.As(err, &corrupt):
		t.mu.Lock()
		defer t.mu.Unlock()
		t.options.Corrupt(corrupt)
		return nil
	case errors.As(err, new(*journal.TruncatedError)), errors.As(err, new(*journal.DeletedError)), errors.Is(err, journal.ErrNotFound),
		errors.Is(err, journal.ErrConflict):
		return nil // another pass or the publisher has changed the stream, or it is being deleted
	}
	return err
}

// hold lowers the handled number of streams to the last event that a group does not need. It reads
// positions before records of skipped events. Each event up to a position was then handled, or has
// a record.
func (t *trim) hold(ctx context.Context, shard int, c consumer, queues []*queue) error {
	k := shardOf(c.key, c.membership, shard)
	ids := make([]aggregate.ID, len(queues))
	byID := make(map[aggregate.ID]*queue, len(queues))
	for i, q := range queues {
		ids[i], byID[q.head.Aggregate] = q.head.Aggregate, q
	}
	var positions map[aggregate.ID]uint64
	err := patiently(ctx, func() (err error) {
		positions, err = t.groups.positions(ctx, k, c.membership, ids, true)
		return err
	})
	if err != nil {
		return err
	}
	needs := func(q *queue, number uint64) {
		if number <= q.handled {
			q.handled, q.heldBy = number-1, c.key.Group
		}
	}
	err = inParallel(readers, len(queues), func(i int) error {
		q := queues[i]
		position, found := positions[q.head.Aggregate]
		if !found {
			err := patiently(ctx, func() (err error) {
				position, err = t.groups.store.Baseline(ctx, q.head, c.membership.Start)
				return err
			})
			if err != nil {
				return err
			}
		}
		needs(q, position+1)
		return nil
	})
	if err != nil {
		return err
	}
	return patiently(ctx, func() error {
		for e, err := range t.groups.store.Skipped(ctx, k) {
			if err != nil {
				return err
			}
			// The event of the record may have been removed before.
			if q := byID[e.Aggregate]; q != nil && e.Number >= q.first {
				needs(q, e.Number)
			}
		}
		return nil
	})
}

// trim removes the old events of a stream that no group needs.
func (t *trim) trim(ctx context.Context, q *queue) error {
	found, err := t.cut(ctx, q)
	if err == nil && found.before > q.first && !t.options.DryRun {
		err = t.remove(ctx, q.head.Aggregate, found.before)
		if errors.Is(err, storage.ErrHasState) || errors.Is(err, journal.ErrNotCovered) {
			found, err = cut{before: q.first, foreign: true}, nil
		}
	}
	q.stays = found.held || err != nil
	if err != nil {
		return t.unlessLeftAlone(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sum.Streams++
	if found.before > q.first {
		t.sum.Shortened++
		t.sum.Events += found.before - q.first
	}
	if found.foreign {
		t.sum.Foreign++
	}
	if found.held {
		t.sum.HeldBy[q.heldBy]++
	}
	return nil
}

// remove removes the events before a number. It repeats a conflict with the publisher, with
// backoff.
func (t *trim) remove(ctx context.Context, id aggregate.ID, before uint64) error {
	return patiently(ctx, func() error {
		err := t.groups.journal.Trim(ctx, id, before)
		if errors.Is(err, journal.ErrConflict) {
			err = fmt.Errorf("%w: %w", journal.ErrContended, err)
		}
		return err
	})
}

// cut is the end of the events that can be removed from a stream.
type cut struct {
	before  uint64 // number of the first event that stays; it begins a commit
	held    bool   // the first event that stays is old, and a group needs it
	foreign bool   // the first event that stays is old, and does not have the mark
}

func (t *trim) cut(ctx context.Context, q *queue) (found cut, err error) {
	found.before = q.first
	if q.handled < q.first {
		found.held = true
		return found, nil
	}
	last := min(q.handled+1, q.head.Version) // one more event shows whether a commit ends before it
	commit, next := "", q.first
	err = patiently(ctx, func() error {
		for r, err := range t.groups.journal.Raw().Events(ctx, q.head.Aggregate, next, last) {
			if err != nil {
				return err
			}
			if next > q.first && r.CommitID != commit {
				found.before = r.Number
			}
			found.held = r.Number > q.handled && t.isOld(r)
			if r.Number > q.handled || !t.isOld(r) {
				return nil
			}
			if found.foreign = !isMarked(r); found.foreign {
				return nil
			}
			commit, next = r.CommitID, r.Number+1
		}
		return nil
	})
	if next == q.head.Version+1 {
		found.before = next
	} else if err == nil && found.before > q.first {
		var foreign bool
		if foreign, err = t.endsForeign(ctx, q); foreign {
			found = cut{before: q.first, foreign: true}
		}
	}
	return found, err
}

// endsForeign reports whether a program other than the publisher wrote the last event of a stream,
// such as a repository. A mark alone proves nothing, because an archive may have made it up.
func (t *trim) endsForeign(ctx context.Context, q *queue) (foreign bool, err error) {
	err = patiently(ctx, func() error {
		for r, err := range t.groups.journal.Raw().Events(ctx, q.head.Aggregate, q.head.Version, q.head.Version) {
			if err != nil {
				return err
			}
			foreign = !isMarked(r)
		}
		return nil
	})
	return foreign, err
}
