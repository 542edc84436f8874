package groups

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
)

// Skipped yields the records of events that a group has skipped or deferred, in the order of shard,
// id and number. These are events that kept failing (subscriber.Skip), events that were deferred
// (subscriber.Defer), and events that an operator has skipped. The number of records is not
// limited.
//
// A record exists until one of these happens: [Groups.ForgetSkipped] deletes it, the deferred event
// is handled, [Groups.ResetAggregate] delivers the event again, or the group is reset or removed.
// There is no record of events of other types than subscriber.Config.EventTypes, of removed events,
// and of events that ResetAggregate skips.
//
// The sequence begins with the first record that follows the event number of the aggregate after.
// That event need not have a record. The zero ID means the beginning. To read the next page of a
// list, pass the last record of the page before. With number 0 the sequence begins with the records
// of the aggregate.
//
// It reads as the sequence is consumed, in pages of 25 records that grow to 1,600. It costs one
// read unit for the group, and one for each 4 KB, which is about 20 records, at least one for each
// page and each shard.
//
// The sequence ends after an error. Errors: [ErrNoGroup], [ErrCorrupt],
// [*aggregate.InvalidIDError] if after is not an aggregate of the topic, and the errors of the
// journal and the context.
func (g *Group) Skipped(ctx context.Context, after aggregate.ID, number uint64) iter.Seq2[SkippedEvent, error] {
	return func(yield func(SkippedEvent, error) bool) {
		if err := g.skipped(ctx, after, number, func(e SkippedEvent) bool { return yield(e, nil) }); err != nil {
			yield(SkippedEvent{}, g.failed("list skipped events of", err))
		}
	}
}

// skipped calls yield for each record until yield returns false.
func (g *Group) skipped(ctx context.Context, after aggregate.ID, number uint64, yield func(SkippedEvent) bool) error {
	membership, err := g.membership(ctx)
	if err != nil {
		return err
	}
	first, err := g.firstShard(after)
	if err != nil {
		return err
	}
	for shard := first; shard < g.journal.Config.Shards; shard++ {
		for e, err := range g.store.SkippedAfter(ctx, shardOf(g.key, membership, shard), after, number) {
			if err != nil {
				return err
			}
			if !yield(skippedOf(e)) {
				return nil
			}
		}
		after = aggregate.ID{}
	}
	return nil
}

// SkippedEvent is an event that a group has skipped or deferred.
type SkippedEvent struct {
	Aggregate aggregate.ID // the aggregate of the event
	Number    uint64       // the sequence number of the event
	EventType string       // empty if the event could not be read, or if a foreign program wrote it
	At        time.Time    // time at which it was skipped or deferred
	Reason    string       // limit: 1 KB
	// Due is the time at which the group tries the event again, if it was deferred
	// (subscriber.Defer). The zero time means that the group does not try it again, unless
	// [Groups.RetrySkipped] is called.
	Due time.Time
	// Attempts is the number of failed attempts at a deferred event, including the first.
	Attempts int
}

func skippedOf(e checkpoint.Skipped) SkippedEvent {
	return SkippedEvent{Aggregate: e.Aggregate, Number: e.Number, EventType: e.EventType, At: e.At, Reason: e.Reason, Due: e.Due, Attempts: e.Attempts}
}

// ForgetSkipped deletes the record of a skipped event, for example after its effects were corrected
// by hand. It does not deliver the event. A deferred event is not tried again, except for an
// attempt that has already begun. It costs two reads and one write.
//
// Errors: [ErrNotSkipped], [ErrNoGroup], [ErrCorrupt], subscriber.ErrFenced if the event is skipped
// again at the same time, and the errors of the journal and the context.
func (g *Groups) ForgetSkipped(ctx context.Context, group string, id aggregate.ID, number uint64) error {
	if err := g.Of(group, id.Type).forgetSkipped(ctx, id, number); err != nil {
		return fmt.Errorf("delete the record that consumer group %q skipped event %d of %s: %w", group, number, id, err)
	}
	return nil
}

func (g *Group) forgetSkipped(ctx context.Context, id aggregate.ID, number uint64) error {
	if err := id.Validate(); err != nil {
		return err
	}
	membership, err := g.membership(ctx)
	if err != nil {
		return err
	}
	current := shardOf(g.key, membership, 0).Group
	e, found, err := g.store.ReadSkipped(ctx, current, id, number)
	if err == nil && !found {
		err = ErrNotSkipped
	}
	if err != nil {
		return err
	}
	return g.store.RemoveSkipped(ctx, current, e)
}

// byOperator is the reason of an event that an operator has skipped.
const byOperator = "skipped by an operator"

// skipReason returns the reason of a parked event that an operator has skipped.
func skipReason(p *checkpoint.Failure) string { return byOperator + ", parked because " + p.Reason }

// skip moves the position to an event without handling it, and writes a record.
func (e edit) skip(ctx context.Context, number uint64, reason string) error {
	eventType, err := e.eventType(ctx, number)
	if err != nil {
		return err
	}
	if err := e.list(ctx); err != nil {
		return err
	}
	return e.store.SkipTo(ctx, e.shard.Group, checkpoint.Skipped{
		Aggregate: e.id, Number: number, EventType: eventType, At: e.group.journal.Config.Now(), Reason: reason, Epoch: e.epoch,
	})
}

// eventType returns the type of an event. It is empty if the event cannot be read.
func (e edit) eventType(ctx context.Context, number uint64) (string, error) {
	for r, err := range e.group.journal.Raw().Events(ctx, e.id, number, number) {
		switch {
		case errors.As(err, new(*journal.CorruptItemError)), errors.As(err, new(*journal.TruncatedError)), errors.As(err, new(*journal.EventTypeError)):
			return "", nil
		case err != nil:
			return "", err
		default:
			return r.EventType, nil
		}
	}
	return "", nil
}

// recall deletes the records of events after a position, which are delivered again. It deletes
// only records from before the edit. It need not hold the shard, since an event that is skipped
// again has a record with a newer epoch.
func (e edit) recall(ctx context.Context, behind uint64) error {
	for record, err := range e.group.store.SkippedBehind(ctx, e.shard.Group, e.id, behind) {
		if err == nil && record.Epoch <= e.epoch {
			err = e.group.store.RemoveSkipped(ctx, e.shard.Group, record)
		}
		if err != nil && !errors.Is(err, checkpoint.ErrFenced) {
			return err
		}
	}
	return nil
}
