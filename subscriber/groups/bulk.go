package groups

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
)

// Selection selects parked aggregates for [Group.UnparkAll], [Group.SkipAll] and
// [Group.SelectParked]. The zero value selects all of them.
type Selection struct {
	// Reason selects the aggregates whose [Parked].Reason contains this text.
	Reason string
	// EventType selects the aggregates whose failed event has this type. To find it, the event of
	// each parked aggregate is read, one read unit for each 4 KB.
	EventType string
	// Before selects the aggregates that were parked before this time, or the events that were
	// skipped before it. So an edit does not include entries that an operator has not seen in a
	// list. Times are of the members' clocks. Default: any time.
	Before time.Time
	// Edited, if set, is called for each aggregate that was edited, with the number of its failed
	// event. Calls are made one at a time.
	Edited func(id aggregate.ID, number uint64)
}

// UnparkAll makes the group try the events of all selected parked aggregates again, as
// [Groups.Unpark] does for one. It returns the number of aggregates that it has unparked, also with
// an error.
//
// It takes each logical shard with selected aggregates from its owner once, and edits the
// aggregates of the shard in parallel. Throttled requests are repeated with backoff, for some
// seconds without progress. Aggregates that were unparked before an error stay unparked; call
// UnparkAll again for the others. It may miss aggregates that are parked while it runs.
//
// It costs one write unit for each aggregate, and two for each shard with selected aggregates. It
// also costs one read unit for about 40 entries of the list, at least one for each shard, and the
// same again for each shard with selected aggregates.
//
// Errors: [ErrNoGroup], [ErrCorrupt], subscriber.ErrFenced, and the errors of the journal and the
// context.
func (g *Group) UnparkAll(ctx context.Context, s Selection) (int, error) {
	b := &bulk{group: g, selection: s, edit: (*bulk).unpark}
	if err := b.run(ctx); err != nil {
		return b.count, g.failed("unpark aggregates of", err)
	}
	return b.count, nil
}

// SkipAll skips the failed events of all selected parked aggregates, as [Groups.Skip] does for one.
// For each aggregate it skips one event, leaves a record of it, and unparks the aggregate. It
// leaves an aggregate unchanged if the position is already beyond the failed event. It returns the
// number of events that it has skipped, also with an error.
//
// After an error call SkipAll again for the rest. It does not skip an event twice. It skips another
// event of the same aggregate only if that event has failed and was parked too.
//
// It costs six write units for each aggregate, and more if the record is over 1 KB because of a
// long reason or event type. It costs two read units for each aggregate and one for each 4 KB of
// its event. Other costs are those of UnparkAll.
//
// Errors: [ErrExternalPositions] and those of UnparkAll.
func (g *Group) SkipAll(ctx context.Context, s Selection) (int, error) {
	b := &bulk{group: g, selection: s, edit: (*bulk).skip, skips: true, types: true}
	if err := b.run(ctx); err != nil {
		return b.count, g.failed("skip failed events of", err)
	}
	return b.count, nil
}

// bulk is an edit of many parked aggregates.
type bulk struct {
	group     *Group
	selection Selection
	skips     bool // so it needs positions
	types     bool // it needs the type of each event
	edit      func(*bulk, context.Context, hold, []failedEvent) error

	mu    sync.Mutex
	count int
	done  map[aggregate.ID]struct{} // edited aggregates of the current shard
}

// hold is a shard that an operator holds.
type hold struct {
	shard checkpoint.Shard
	rows  *checkpoint.Rows  // of the positions, or nil
	store *checkpoint.Store // of the positions
	start time.Time         // start of the group
	epoch uint64
}

// failedEvent is a parked aggregate with the event that failed.
type failedEvent struct {
	checkpoint.Behind
	eventType string // empty if it was not read, or cannot be read
}

func (b *bulk) run(ctx context.Context) error {
	err := patiently(ctx, func() error {
		_, err := b.membership(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for number := range b.group.journal.Config.Shards {
		if err := b.editShard(ctx, number); err != nil {
			return err
		}
	}
	return nil
}

func (b *bulk) membership(ctx context.Context) (checkpoint.Membership, error) {
	membership, err := b.group.membership(ctx)
	if err == nil && b.skips {
		err = edit{external: membership.ExternalPositions}.own()
	}
	return membership, err
}

// editShard edits a shard. It tries again if the shard was lost before the end, and if requests
// fail that may succeed later. It does not edit or count an aggregate twice.
func (b *bulk) editShard(ctx context.Context, number int) error {
	b.done = map[aggregate.ID]struct{}{}
	between := patience()
	lost := false
	for failures := 0; ; {
		before := len(b.done)
		err := b.tryShard(ctx, number, lost)
		if err == nil {
			return nil
		}
		lost = lost || errors.Is(err, checkpoint.ErrFenced)
		if len(b.done) > before {
			failures = 0
			between.Reset()
		}
		failures++
		again := errors.Is(err, checkpoint.ErrFenced) || passes(err)
		if !again || failures == editAttempts || !retry.Sleep(ctx, between.NextBackOff()) {
			if lost && len(b.done) > 0 {
				b.show(ctx, number)
			}
			return err
		}
	}
}

// tryShard takes a shard if it has aggregates to edit. It also takes the shard if it was lost
// during earlier edits, since its owner may not have seen these.
func (b *bulk) tryShard(ctx context.Context, number int, lost bool) error {
	membership, err := b.membership(ctx)
	if err != nil {
		return err
	}
	if !lost {
		if some, err := b.any(ctx, shardOf(b.group.key, membership, number)); !some || err != nil {
			return err
		}
	}
	return b.group.store.Operate(ctx, b.group.key, number, func(ctx context.Context, shard checkpoint.Shard, r checkpoint.Membership) error {
		if err := (edit{external: b.skips && r.ExternalPositions}).own(); err != nil {
			return err
		}
		h := hold{shard: shard, rows: r.Rows, store: b.group.store.In(r.Rows), start: r.Start, epoch: r.Epochs[number]}
		for page, err := range b.group.store.BehindPages(ctx, shard) {
			if err != nil {
				return err
			}
			selected, err := b.selected(ctx, b.candidates(page))
			if err != nil {
				return err
			}
			if err := b.edit(b, ctx, h, selected); err != nil {
				return err
			}
		}
		return nil
	})
}

// show makes the next owner of a shard read the edited rows. It is called when an edit ends early
// and has lost the shard, so it does not end with the caller's context. If it fails, the edits take
// effect when the shard next changes hands.
func (b *bulk) show(ctx context.Context, number int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), showTimeout)
	defer cancel()
	_ = b.group.store.Operate(ctx, b.group.key, number, func(context.Context, checkpoint.Shard, checkpoint.Membership) error { return nil })
}

const showTimeout = 5 * time.Second

// any reports whether a shard has aggregates that are selected.
func (b *bulk) any(ctx context.Context, shard checkpoint.Shard) (bool, error) {
	for page, err := range b.group.store.BehindPages(ctx, shard) {
		if err != nil {
			return false, err
		}
		candidates := b.candidates(page)
		if b.selection.EventType == "" && len(candidates) > 0 {
			return true, nil
		}
		for len(candidates) > 0 {
			some := candidates[:min(readers, len(candidates))]
			candidates = candidates[len(some):]
			if selected, err := b.selected(ctx, some); len(selected) > 0 || err != nil {
				return err == nil, err
			}
		}
	}
	return false, nil
}

// candidates returns the parked aggregates of a page that match the selection, apart from the event
// type.
func (b *bulk) candidates(page []checkpoint.Behind) (candidates []failedEvent) {
	for _, listed := range page {
		_, done := b.done[listed.Aggregate]
		if p := listed.Parked; p != nil && !done && strings.Contains(p.Reason, b.selection.Reason) && b.selection.isBefore(p.At) {
			candidates = append(candidates, failedEvent{Behind: listed})
		}
	}
	return candidates
}

// isBefore reports whether Before selects a time.
func (s Selection) isBefore(t time.Time) bool { return s.Before.IsZero() || t.Before(s.Before) }

// selected returns the candidates whose event has the selected type. It sets their event types if
// these are needed.
func (b *bulk) selected(ctx context.Context, candidates []failedEvent) (selected []failedEvent, err error) {
	if b.selection.EventType == "" && !b.types {
		return candidates, nil
	}
	err = inParallel(readers, len(candidates), func(i int) error {
		c := &candidates[i]
		return patiently(ctx, func() (err error) {
			c.eventType, err = edit{group: b.group, id: c.Aggregate}.eventType(ctx, c.Parked.Number)
			return err
		})
	})
	for _, c := range candidates {
		if b.selection.EventType == "" || c.eventType == b.selection.EventType {
			selected = append(selected, c)
		}
	}
	return selected, err
}

// unpark writes the entries of aggregates without the failure for which they were parked. Like a
// single edit, it writes each entry under the new epoch and deletes none.
func (b *bulk) unpark(ctx context.Context, h hold, parked []failedEvent) error {
	return inParallel(writers, len(parked), func(i int) error {
		listed := checkpoint.Behind{Aggregate: parked[i].Aggregate, Head: max(parked[i].Head, parked[i].Parked.Number)}
		err := patiently(ctx, func() error {
			return b.group.store.ListBehind(ctx, h.shard.Group, checkpoint.Revision{Epoch: h.epoch}, listed)
		})
		if err == nil {
			b.edited(parked[i])
		}
		return err
	})
}

// writers is the number of aggregates that are edited in parallel.
const writers = 16

// skip skips the failed events. It reads the positions in batches, without a claim. Each
// transaction claims its position, and requires that the position has not moved since the read.
func (b *bulk) skip(ctx context.Context, h hold, parked []failedEvent) error {
	ids := make([]aggregate.ID, len(parked))
	for i, p := range parked {
		ids[i] = p.Aggregate
	}
	var positions map[aggregate.ID]uint64
	err := patiently(ctx, func() (err error) {
		positions, err = h.store.Positions(ctx, h.shard, ids, true)
		return err
	})
	if err != nil {
		return err
	}
	return inParallel(writers, len(parked), func(i int) error {
		position, found := positions[ids[i]]
		return b.skipOne(ctx, h, parked[i], position, found)
	})
}

func (b *bulk) skipOne(ctx context.Context, h hold, p failedEvent, position uint64, found bool) error {
	skipped := false
	moved := false
	err := patiently(ctx, func() (err error) {
		if moved {
			positions, err := h.store.Positions(ctx, h.shard, []aggregate.ID{p.Aggregate}, true)
			if err != nil {
				return err
			}
			position, found = positions[p.Aggregate]
		}
		skipped, err = b.trySkip(ctx, h, p, position, found)
		moved = errors.Is(err, checkpoint.ErrMoved)
		return err
	})
	if err == nil && skipped {
		b.edited(p)
	}
	return err
}

// trySkip returns false if the failed event is not the next one: the position is already beyond it,
// or the journal does not have it, as after a restore.
func (b *bulk) trySkip(ctx context.Context, h hold, p failedEvent, position uint64, found bool) (bool, error) {
	at := position
	if !found {
		var err error
		if at, err = b.group.baseline(ctx, p.Aggregate, h.start); err != nil {
			return false, err
		}
	}
	number := p.Parked.Number
	if nextOf(at, found, h.rows, p.Behind) != number {
		return false, nil
	}
	if p.eventType == "" {
		version, err := b.group.version(ctx, p.Aggregate)
		if errors.Is(err, journal.ErrNotFound) {
			return false, nil
		}
		if err != nil || version < number {
			return false, err
		}
	}
	listed := p.Behind
	listed.Head = max(listed.Head, number)
	err := h.store.SkipParked(ctx, h.shard.Group, listed, position, found, checkpoint.Skipped{
		Aggregate: p.Aggregate, Number: number, EventType: p.eventType, At: b.group.journal.Config.Now(),
		Reason: skipReason(p.Parked), Epoch: h.epoch,
	})
	return err == nil, err
}

func (b *bulk) edited(p failedEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count++
	b.done[p.Aggregate] = struct{}{}
	if b.selection.Edited != nil {
		b.selection.Edited(p.Aggregate, p.Parked.Number)
	}
}

// patiently repeats a request that may succeed later, about ten times within some seconds.
func patiently(ctx context.Context, request func() error) error {
	return backoff.Retry(func() error {
		err := request()
		if err != nil && !passes(err) && !errors.Is(err, checkpoint.ErrMoved) {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(backoff.WithMaxRetries(patience(), 10), ctx))
}

// passes reports whether the reason of a failed request may disappear by itself.
func passes(err error) bool {
	return errors.Is(err, journal.ErrThrottled) || errors.Is(err, journal.ErrContended) || errors.Is(err, journal.ErrUnavailable)
}

func patience() backoff.BackOff {
	return retry.Pauses(50*time.Millisecond, 2*time.Second, 0)
}
