package projection

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/history"
	"github.com/millrace-dev/millrace/internal/reaction"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// Client is the part of a *dynamodb.Client that a projection uses. The tables of the read model and
// the checkpoint table of the journal must be in one account and region, since one transaction
// writes to all of them.
type Client interface {
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Config configures a [Projection].
type Config struct {
	// Codec decodes the events of aggregates without a definition. Default: aggregate.JSON.
	Codec aggregate.Codec
	// Definitions upcast the events of their aggregates before the reactions receive them, and
	// their codecs decode these events. Events of other aggregates keep their stored form. Default:
	// none.
	Definitions []aggregate.AnyDefinition
	// RetryBudget is the time for which a transaction, or the update of a row of [Rows], is
	// repeated if it is throttled or conflicts with a transaction. After it the message is nacked.
	// A request without an answer is cancelled at the end of the budget, but not before one second.
	// Default: 5 seconds.
	RetryBudget time.Duration
	// MaxRun is the maximum number of events in a run of a projection from [NewBatch] or
	// [NewBatchRows]. Default: 100.
	MaxRun int
}

// Projection handles events and writes to a read model. [New] and [NewBatch] make one. It is safe
// for concurrent use.
type Projection struct {
	target    target
	config    Config
	history   history.History
	reactions map[string]Reaction
	// ofStates reports that it handles events of all types, without decoding them.
	ofStates bool
	run      runHandler // nil for single events
	stats    counters
}

// runHandler returns the writes for a run, and the number of events to which it reacts.
type runHandler func(context.Context, []*journal.Record) (writes []Write, events int, err error)

// target writes the effects of events together with the position of the group.
type target interface {
	// accepts returns an error if an event has too many writes.
	accepts(r *journal.Record, writes []Write) error
	commit(ctx context.Context, p *subscriber.Position, run func(context.Context, subscriber.Advance) error) error
	commitAhead(ctx context.Context, p *subscriber.Position, most int, run func(context.Context, subscriber.Advance, []*journal.Record) error) error
	write(ctx context.Context, r *journal.Record, a subscriber.Advance, writes []Write) error
}

// Stats counts the work of a projection since it was made.
type Stats struct {
	Applied uint64 // events whose writes were committed
	Ignored uint64 // events without writes
	Dropped uint64 // Dropped counts idempotent writes whose condition was false.
}

type counters struct{ applied, ignored, dropped atomic.Uint64 }

// New returns a projection with these reactions. Errors: [*ConfigError].
func New(client Client, config Config, reactions ...Reaction) (*Projection, error) {
	if client == nil {
		return nil, errNoClient
	}
	p, err := newProjection(config, reactions...)
	if err != nil {
		return nil, err
	}
	p.target = transactions{client, p}
	return p, nil
}

var errNoClient = &ConfigError{"the client is nil: pass a *dynamodb.Client"}

// newProjection returns a projection without a target.
func newProjection(config Config, reactions ...Reaction) (*Projection, error) {
	if config.Codec == nil {
		config.Codec = aggregate.JSON
	}
	if config.RetryBudget == 0 {
		config.RetryBudget = 5 * time.Second
	}
	if config.RetryBudget < 0 {
		return nil, &ConfigError{"RetryBudget is negative"}
	}
	if config.MaxRun == 0 {
		config.MaxRun = 100
	}
	if config.MaxRun < 0 {
		return nil, &ConfigError{"MaxRun is negative"}
	}
	today, err := history.New(config.Codec, config.Definitions)
	if err != nil {
		return nil, &ConfigError{err.Error()}
	}
	p := &Projection{config: config, history: today, reactions: map[string]Reaction{}}
	for i, r := range reactions {
		if r.react == nil || r.eventType == "" {
			return nil, &ConfigError{fmt.Sprintf("reaction %d has no function or no event type: pass On, or Fold, a function of an event struct whose zero value returns its EventType", i+1)}
		}
		if _, taken := p.reactions[r.eventType]; taken {
			return nil, &ConfigError{fmt.Sprintf("two reactions to %q: make one of them", r.eventType)}
		}
		p.reactions[r.eventType] = r
	}
	return p, nil
}

// EventTypes returns the names of the events that have a reaction, in alphabetical order.
func (p *Projection) EventTypes() []string { return slices.Sorted(maps.Keys(p.reactions)) }

// Stats returns the current counts.
func (p *Projection) Stats() Stats {
	return Stats{Applied: p.stats.applied.Load(), Ignored: p.stats.ignored.Load(), Dropped: p.stats.dropped.Load()}
}

// Handle handles a message of a [github.com/millrace-dev/millrace/subscriber]. It is a
// message.NoPublishHandlerFunc.
//
// Errors: subscriber.ErrNoPosition for other messages, subscriber.ErrFenced if another member of
// the group has taken over, [*ConditionError], [*TooManyWritesError], [*ItemTooLargeError],
// [journal.ErrTableMissing], and the errors of the codec, the reaction and the SDK. After an error
// nothing was written, unless the reply of DynamoDB was lost. Handle detects that when the message
// is delivered again, and then acks it without writing again. It reports the error to the
// subscriber, see [subscriber.SetNackReason].
func (p *Projection) Handle(msg *message.Message) error {
	if msg == nil {
		return fmt.Errorf("nil message: %w", subscriber.ErrNoPosition)
	}
	err := p.handle(msg)
	subscriber.SetNackReason(msg.Context(), err)
	return err
}

func (p *Projection) handle(msg *message.Message) error {
	ctx := msg.Context()
	record, ok := subscriber.RecordFromContext(ctx)
	position, okPosition := subscriber.PositionFromContext(ctx)
	if !ok || !okPosition {
		return reaction.NoPosition(msg)
	}
	if p.ofStates {
		return p.handleRun(msg, position, record)
	}
	writes, handled, err := p.react(ctx, record)
	if err != nil {
		return err
	}
	if handled && p.run != nil {
		return p.handleRun(msg, position, record)
	}
	if len(writes) == 0 {
		p.stats.ignored.Add(1)
		return nil
	}
	if err := p.target.accepts(record, writes); err != nil {
		return err
	}
	err = p.target.commit(ctx, position, func(ctx context.Context, advance subscriber.Advance) error {
		if err := p.target.write(ctx, record, advance, writes); err != nil {
			return err
		}
		p.stats.applied.Add(1)
		return nil
	})
	if err != nil {
		return fmt.Errorf("apply event %d of %s (%s): %w", record.Number, record.Aggregate, record.EventType, err)
	}
	return nil
}

// react returns the writes for an event, and whether there is a reaction to it.
func (p *Projection) react(ctx context.Context, stored *journal.Record) (writes []Write, handled bool, err error) {
	events, err := p.history.Today(stored)
	if err != nil {
		return nil, false, err
	}
	for _, event := range events {
		reaction, ok := p.reactions[event.EventType]
		if !ok {
			continue
		}
		more, err := reaction.react(ctx, p.history.Codec(event.Aggregate.Type), event)
		if err != nil {
			return nil, false, err
		}
		writes, handled = append(writes, more...), true
	}
	return writes, handled, nil
}
