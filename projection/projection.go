package projection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/history"
	"github.com/millrace-dev/millrace/internal/reaction"
	"github.com/millrace-dev/millrace/internal/retry"
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
	// RetryBudget is the time for which a transaction is repeated that is throttled or conflicts
	// with another one. After it the message is nacked. A request without an answer is cancelled at
	// the end of the budget, but not before one second. Default: 5 seconds.
	RetryBudget time.Duration
	// MaxRun is the maximum number of events in a run of a projection from [NewBatch]. Default:
	// 100.
	MaxRun int
}

// Projection handles events and writes to a read model. [New] and [NewBatch] make one. It is safe
// for concurrent use.
type Projection struct {
	client    Client
	config    Config
	history   history.History
	reactions map[string]Reaction
	// nil unless made by NewBatch
	run   func(context.Context, []*journal.Record) (writes []Write, events int, err error)
	stats counters
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
		return nil, &ConfigError{"the client is nil: pass a *dynamodb.Client"}
	}
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
	p := &Projection{client: client, config: config, history: today, reactions: map[string]Reaction{}}
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
	if len(writes) > maxWrites {
		return &TooManyWritesError{Aggregate: record.Aggregate, Number: record.Number, Count: len(writes)}
	}
	err = position.Commit(ctx, func(ctx context.Context, advance subscriber.Advance) error {
		if err := p.commit(ctx, record, advance, writes); err != nil {
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

// commit sends the writes with the position. It sends them again without the idempotent writes
// whose condition is false.
func (p *Projection) commit(ctx context.Context, r *journal.Record, advance subscriber.Advance, writes []Write) error {
	left := make([]int, len(writes)) // indexes of the writes to send
	for i := range writes {
		left[i] = i
	}
	end := time.Now().Add(p.config.RetryBudget)
	wait := backoff.WithContext(retry.Pauses(5*time.Millisecond, 500*time.Millisecond, p.config.RetryBudget), ctx)
	return backoff.Retry(func() error {
		for {
			items := []types.TransactWriteItem{advance.Item}
			for _, i := range left {
				items = append(items, writes[i].item)
			}
			err := p.attempt(ctx, items, time.Until(end))
			var canceled *types.TransactionCanceledException
			if err == nil {
				return nil
			}
			if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != len(items) {
				// The SDK has repeated the request where that helps.
				return backoff.Permanent(explain(err, r, writes, nil))
			}
			reasons := canceled.CancellationReasons
			if failed(reasons[0]) {
				if advance.Done(reasons[0].Item) {
					return nil // the reply to an earlier attempt was lost
				}
				if advance.Moved(reasons[0].Item) {
					return backoff.Permanent(errMoved)
				}
				return backoff.Permanent(subscriber.ErrFenced)
			}
			var keep []int
			for n, i := range left {
				switch {
				case !failed(reasons[n+1]):
					keep = append(keep, i)
				case !writes[i].done(reasons[n+1]):
					return backoff.Permanent(&ConditionError{
						Aggregate: r.Aggregate, Number: r.Number, EventType: r.EventType, Table: writes[i].table(), Write: i,
					})
				}
			}
			if len(keep) == len(left) {
				if repeatable(reasons) {
					return err
				}
				sent := make([]Write, len(left))
				for n, i := range left {
					sent[n] = writes[i]
				}
				return backoff.Permanent(explain(err, r, sent, reasons[1:]))
			}
			p.stats.dropped.Add(uint64(len(left) - len(keep)))
			left = keep
		}
	}, wait)
}

// minAttempt is the minimum time for a request, so that the last request of a budget can succeed.
const minAttempt = time.Second

// attempt sends the transaction once. A connection that hangs must not exceed the budget, since the
// aggregate waits meanwhile, and so do the other aggregates of its worker.
func (p *Projection) attempt(ctx context.Context, items []types.TransactWriteItem, left time.Duration) error {
	once, cancel := context.WithTimeout(ctx, max(left, minAttempt))
	defer cancel()
	_, err := p.client.TransactWriteItems(once, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	if err != nil && once.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within the RetryBudget of %v: %w", p.config.RetryBudget, err)
	}
	return err
}

var errMoved = errors.New("an earlier attempt succeeded after it had been cancelled: the message is delivered again")

func failed(r types.CancellationReason) bool {
	return aws.ToString(r.Code) == "ConditionalCheckFailed"
}

// repeatable reports whether a transaction failed only for temporary reasons.
func repeatable(reasons []types.CancellationReason) bool {
	for _, r := range reasons {
		switch aws.ToString(r.Code) {
		case "None", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
		default:
			return false
		}
	}
	return true
}

func numberValue(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
}
