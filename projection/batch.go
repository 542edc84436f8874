package projection

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/reaction"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// BatchReaction adds the events of one type to the sum of a run. [Fold] makes one.
type BatchReaction[A any] struct {
	eventType string
	add       func(aggregate.Codec, *A, *journal.Record) error
}

// Fold returns a [BatchReaction] that adds events of the type E to the sum A of a run. E is as in
// [On].
func Fold[A any, E interface{ EventType() string }](add func(sum *A, event E, record *journal.Record) error) BatchReaction[A] {
	if add == nil {
		return BatchReaction[A]{} // NewBatch refuses it
	}
	return BatchReaction[A]{
		eventType: reaction.EventType[E](),
		add: func(codec aggregate.Codec, sum *A, r *journal.Record) error {
			event, err := reaction.Decode[E](codec, r)
			if err != nil {
				return err
			}
			return add(sum, event, r)
		},
	}
}

// Run describes a run of events of one aggregate.
type Run struct {
	Aggregate aggregate.ID // the aggregate of the events
	Events    int          // number of events that were added
	// Last is the last event of the run. Pass it to an [IdempotentUpdate], which should set
	// attributes then and not add to them.
	Last *journal.Record
}

// NewBatch returns a projection that handles the events of an aggregate in runs, with one
// transaction for each run. A run is a number of consecutive events of one aggregate. The reactions
// add the events of a run to a sum, which starts as a zero A. Write returns the writes for the sum,
// one for each item:
//
//	totals, err := projection.NewBatch(client, projection.Config{},
//		func(ctx context.Context, sum int, run projection.Run) ([]projection.Write, error) {
//			return []projection.Write{projection.Update(add(run.Aggregate, sum))}, nil
//		},
//		projection.Fold(func(sum *int, e Deposited, _ *journal.Record) error {
//			*sum += e.Amount
//			return nil
//		}),
//		projection.Fold(func(sum *int, e Withdrawn, _ *journal.Record) error {
//			*sum -= e.Amount
//			return nil
//		}),
//	)
//
// A run begins with a message and includes the events of its aggregate that the subscriber has read
// already, up to [Config].MaxRun. So runs are long if there is a backlog, and have one event
// otherwise. If a run fails or takes longer than subscriber.Config.AckDeadline, its first event is
// tried again at once by itself, so that only an event that cannot be handled fails. The next runs
// are half as long, see [subscriber.Position.CommitAhead]. Events without a reaction are acked with
// the run. If write returns no writes, only the position is stored.
//
// Errors: [*ConfigError].
func NewBatch[A any](client Client, config Config, write func(ctx context.Context, sum A, run Run) ([]Write, error), reactions ...BatchReaction[A]) (*Projection, error) {
	if client == nil {
		return nil, errNoClient
	}
	p, err := newBatch(config, write, reactions...)
	if err != nil {
		return nil, err
	}
	p.target = transactions{client, p}
	return p, nil
}

// newBatch returns a projection that handles runs, without a target.
func newBatch[A any](config Config, write func(ctx context.Context, sum A, run Run) ([]Write, error), reactions ...BatchReaction[A]) (*Projection, error) {
	if write == nil {
		return nil, &ConfigError{"the function that writes is nil"}
	}
	var acks []Reaction // they only select the events
	adds := map[string]func(aggregate.Codec, *A, *journal.Record) error{}
	for _, r := range reactions {
		acks = append(acks, Reaction{
			eventType: r.eventType,
			react:     func(context.Context, aggregate.Codec, *journal.Record) ([]Write, error) { return nil, nil },
		})
		adds[r.eventType] = r.add
	}
	p, err := newProjection(config, acks...)
	if err != nil {
		return nil, err
	}
	p.run = func(ctx context.Context, records []*journal.Record) ([]Write, int, error) {
		var sum A
		run := Run{Aggregate: records[0].Aggregate, Last: records[len(records)-1]}
		for _, stored := range records {
			// A run that takes too long must end, so that a shorter one can begin.
			if ctx.Err() != nil {
				return nil, 0, context.Cause(ctx)
			}
			events, err := p.history.Today(stored)
			if err != nil {
				return nil, 0, err
			}
			added := false
			for _, r := range events {
				add := adds[r.EventType]
				if add == nil {
					continue
				}
				if err := add(p.history.Codec(r.Aggregate.Type), &sum, r); err != nil {
					return nil, 0, err
				}
				added = true
			}
			if added {
				run.Events++
			}
		}
		writes, err := write(ctx, sum, run)
		return writes, run.Events, err
	}
	return p, nil
}

// handleRun handles a message together with the messages that follow it.
func (p *Projection) handleRun(msg *message.Message, position *subscriber.Position, first *journal.Record) error {
	length := 0
	commit := func(ctx context.Context, advance subscriber.Advance, records []*journal.Record) error {
		length = len(records)
		last := records[length-1]
		writes, events, err := p.run(ctx, records)
		if err != nil {
			return err
		}
		if err := p.target.accepts(last, writes); err != nil {
			return err
		}
		if err := p.target.write(ctx, last, advance, writes); err != nil {
			return err
		}
		p.stats.applied.Add(uint64(events))                //nolint:gosec // not negative
		p.stats.ignored.Add(uint64(len(records) - events)) //nolint:gosec // not negative
		return nil
	}
	ctx := msg.Context()
	err := p.target.commitAhead(ctx, position, p.config.MaxRun, commit)
	if err != nil && length > 1 && !errors.Is(err, subscriber.ErrFenced) && ctx.Err() == nil {
		// Possibly a later event of the run fails. The message of the first event must not be
		// nacked for it.
		err = p.target.commitAhead(ctx, position, 1, commit)
	}
	if err != nil {
		return fmt.Errorf("apply event %d of %s (%s): %w", first.Number, first.Aggregate, first.EventType, err)
	}
	return nil
}
