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

// Skipped yields the records of events that a group has passed over: those that kept failing
// (subscriber.Skip), those that were deferred (subscriber.Defer), and those that an operator has
// skipped. They come by shard, id and number. There is no limit to how many there are. A record
// stays until it is forgotten, the event was deferred and is handled, it comes again
// ([Groups.ResetAggregate]), or the group is reset or removed.
//
// What is passed over by reading only some types (subscriber.Config.EventTypes), since it was
// removed, or by moving a position forward has no record.
//
// It begins with the first record that follows the event with this number of the aggregate after,
// and with the zero ID at the beginning. That event need not have a record. To read the next page
// of a list, pass the last record of the page before. With an ID and number 0, it begins with the
// records of that aggregate.
//
// It reads as it is consumed, in pages of 25 records that grow to 1,600. It costs one read unit for
// the group and one for each 4 KB, which is some 20 records, at least for each page and each shard
// that it visits.
//
// After an error nothing more comes. Errors: [ErrNoGroup], [ErrCorrupt],
// [*aggregate.InvalidIDError] if after is not an aggregate of the topic, those of the journal, the
// context's.
func (g *Groups) Skipped(ctx context.Context, group, topic string, after aggregate.ID, number uint64) iter.Seq2[SkippedEvent, error] {
	return func(yield func(SkippedEvent, error) bool) {
		k := checkpoint.Key{Group: group, Topic: topic}
		if err := g.skipped(ctx, k, after, number, func(e SkippedEvent) bool { return yield(e, nil) }); err != nil {
			yield(SkippedEvent{}, failed("list skipped events of", k, err))
		}
	}
}

// skipped passes the records to yield until that returns false.
func (g *Groups) skipped(ctx context.Context, k checkpoint.Key, after aggregate.ID, number uint64, yield func(SkippedEvent) bool) error {
	membership, err := g.membership(ctx, k)
	if err != nil {
		return err
	}
	first, err := g.firstShard(k, after)
	if err != nil {
		return err
	}
	for shard := first; shard < g.journal.Shards(); shard++ {
		for e, err := range g.store.SkippedAfter(ctx, shardOf(k, membership, shard), after, number) {
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

// SkippedEvent is an event that a group has passed over.
type SkippedEvent struct {
	Aggregate aggregate.ID
	Number    uint64
	EventType string // empty where the event could not be read, or a foreign program wrote it
	At        time.Time
	Reason    string // the first KB
	// Due is when the group tries the event again, if it was deferred (subscriber.Defer). Zero: it does
	// not, unless [Groups.RetrySkipped] says so.
	Due time.Time
	// Attempts counts the failed attempts at an event that was deferred, the first included.
	Attempts int
}

func skippedOf(e checkpoint.Skipped) SkippedEvent {
	return SkippedEvent{Aggregate: e.Aggregate, Number: e.Number, EventType: e.EventType, At: e.At, Reason: e.Reason, Due: e.Due, Attempts: e.Attempts}
}

// ForgetSkipped deletes the record of a skipped event, as after its effects were made good by hand.
// The event does not come again by that; one that was deferred is not tried any more, unless an
// attempt is under way. It costs two reads and a write.
//
// Errors: [ErrNotSkipped], [ErrNoGroup], [ErrCorrupt], subscriber.ErrFenced if the event was
// skipped again at this moment, those of the journal, the context's.
func (g *Groups) ForgetSkipped(ctx context.Context, group string, id aggregate.ID, number uint64) error {
	if err := g.forgetSkipped(ctx, checkpoint.Key{Group: group, Topic: id.Type}, id, number); err != nil {
		return fmt.Errorf("forget that event %d of %s was skipped by consumer group %q: %w", number, id, group, err)
	}
	return nil
}

func (g *Groups) forgetSkipped(ctx context.Context, k checkpoint.Key, id aggregate.ID, number uint64) error {
	if err := id.Validate(); err != nil {
		return err
	}
	membership, err := g.membership(ctx, k)
	if err != nil {
		return err
	}
	current := shardOf(k, membership, 0).Group
	e, found, err := g.store.ReadSkipped(ctx, current, id, number)
	if err == nil && !found {
		err = ErrNotSkipped
	}
	if err != nil {
		return err
	}
	return g.store.RemoveSkipped(ctx, current, e)
}

// byOperator is the reason of an event that an operator skipped.
const byOperator = "skipped by an operator"

// skipReason is that of an event that an operator skipped and that had parked its aggregate.
func skipReason(p *checkpoint.Failure) string { return byOperator + ", parked because " + p.Reason }

// skip moves the position to an event, which is passed over, and leaves a record of that.
func (e edit) skip(ctx context.Context, number uint64, reason string) error {
	eventType, err := e.eventType(ctx, number)
	if err != nil {
		return err
	}
	if err := e.list(ctx); err != nil {
		return err
	}
	return e.groups.store.SkipTo(ctx, e.shard.Group, checkpoint.Skipped{
		Aggregate: e.id, Number: number, EventType: eventType, At: e.groups.journal.Config().Now(), Reason: reason, Epoch: e.epoch,
	})
}

// eventType returns the type of an event, empty for one that cannot be read.
func (e edit) eventType(ctx context.Context, number uint64) (string, error) {
	for r, err := range e.groups.journal.Raw().Events(ctx, e.id, number, number) {
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

// recall deletes the records of events that are to come again, which are those from before the
// edit. It needs no hold on the shard: an event that is skipped again meanwhile has a record under
// a newer epoch.
func (e edit) recall(ctx context.Context, behind uint64) error {
	for record, err := range e.groups.store.SkippedBehind(ctx, e.shard.Group, e.id, behind) {
		if err == nil && record.Epoch <= e.epoch {
			err = e.groups.store.RemoveSkipped(ctx, e.shard.Group, record)
		}
		if err != nil && !errors.Is(err, checkpoint.ErrFenced) {
			return err
		}
	}
	return nil
}
