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

// Part adds events of one type to what a run of events comes to. See [Into].
type Part[A any] struct {
	eventType string
	add       func(aggregate.Codec, *A, *journal.Record) error
}

// Into adds events of the type E to the sum A of a run. E is as in [On].
func Into[A any, E interface{ EventType() string }](add func(sum *A, event E, record *journal.Record) error) Part[A] {
	if add == nil {
		return Part[A]{} // which NewBatch refuses
	}
	return Part[A]{
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

// Run is a run of events of one aggregate.
type Run struct {
	Aggregate aggregate.ID
	Events    int             // that were added
	Last      *journal.Record // of the run. Give it to an [IdempotentUpdate], which then should set attributes and not add to them.
}

// NewBatch makes a projection that handles the events of an aggregate in runs, with one transaction
// for each. The parts add up a run in a zero A, and write returns what the read model needs of the
// sum, one write for each item:
//
//	totals, err := projection.NewBatch(client, projection.Config{},
//		func(ctx context.Context, sum int, run projection.Run) ([]projection.Write, error) {
//			return []projection.Write{projection.Update(add(run.Aggregate, sum))}, nil
//		},
//		projection.Into(func(sum *int, e Deposited, _ *journal.Record) error { *sum += e.Amount; return nil }),
//		projection.Into(func(sum *int, e Withdrawn, _ *journal.Record) error { *sum -= e.Amount; return nil }),
//	)
//
// A run begins with a message and takes in the events of its aggregate that the subscriber has read
// already, up to [Config].MaxRun. So runs are long where there is much to catch up with, and of one
// event where there is not. A run that fails is tried again at once with the first event alone, so
// that an event fails by itself, and so is one that takes longer than
// subscriber.Config.AckDeadline; the next runs are half as long, see
// [subscriber.Position.CommitAhead]. Events without a part are passed over with the run. Without
// writes only the position is stored.
//
// Errors: [*ConfigError].
func NewBatch[A any](client Client, config Config, write func(ctx context.Context, sum A, run Run) ([]Write, error), parts ...Part[A]) (*Projection, error) {
	if write == nil {
		return nil, &ConfigError{"the function that writes is nil"}
	}
	var reactions []Reaction
	adds := map[string]func(aggregate.Codec, *A, *journal.Record) error{}
	for _, part := range parts {
		reactions = append(reactions, Reaction{
			eventType: part.eventType,
			react:     func(context.Context, aggregate.Codec, *journal.Record) ([]Write, error) { return nil, nil },
		})
		adds[part.eventType] = part.add
	}
	p, err := New(client, config, reactions...)
	if err != nil {
		return nil, err
	}
	p.run = func(ctx context.Context, records []*journal.Record) ([]Write, int, error) {
		var sum A
		run := Run{Aggregate: records[0].Aggregate, Last: records[len(records)-1]}
		for _, stored := range records {
			if ctx.Err() != nil { // a run that takes too long is to end, so that a shorter one can begin
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

// handleRun handles a message with those behind it.
func (p *Projection) handleRun(msg *message.Message, position *subscriber.Position, first *journal.Record) error {
	length := 0
	commit := func(ctx context.Context, advance subscriber.Advance, records []*journal.Record) error {
		length = len(records)
		last := records[length-1]
		writes, events, err := p.run(ctx, records)
		if err != nil {
			return err
		}
		if len(writes) > maxWrites {
			return &TooManyWritesError{Event: last.Aggregate, Number: last.Number, Count: len(writes)}
		}
		if err := p.commit(ctx, last, advance, writes); err != nil {
			return err
		}
		p.stats.applied.Add(uint64(events))                //nolint:gosec // not negative
		p.stats.ignored.Add(uint64(len(records) - events)) //nolint:gosec // not negative
		return nil
	}
	ctx := msg.Context()
	err := position.CommitAhead(ctx, p.config.MaxRun, commit)
	if err != nil && length > 1 && !errors.Is(err, subscriber.ErrFenced) && ctx.Err() == nil {
		// It may be an event behind it that fails, of which the message must not be found guilty.
		err = position.CommitAhead(ctx, 1, commit)
	}
	if err != nil {
		return fmt.Errorf("apply event %d of %s (%s): %w", first.Number, first.Aggregate, first.EventType, err)
	}
	return nil
}
