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
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// Client is what a projection needs of a *dynamodb.Client. The read model's tables and
// the checkpoint table of the journal must be in one account and region, as one
// transaction spans them.
type Client interface {
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Config configures a [Projection].
type Config struct {
	// Codec decodes events. Default: aggregate.JSON.
	Codec aggregate.Codec
	// Definitions of aggregates have their events upcast before the reactions get them, and decoded
	// by their own codec. Events of aggregates without one come as they are stored. Default: none.
	Definitions []aggregate.AnyDefinition
	// RetryBudget is how long a transaction that meets another one, or is throttled, is repeated
	// before the message is nacked. A request that is not answered is given up when the budget is
	// used up, but not before a second is over. Default: 5 seconds.
	RetryBudget time.Duration
	// MaxRun is how many events a projection made with [NewBatch] handles at a time, at most.
	// Default: 100.
	MaxRun int
}

// Projection is safe for concurrent use.
type Projection struct {
	client    Client
	config    Config
	history   history.History
	reactions map[string]Reaction
	run       func(context.Context, []*journal.Record) (writes []Write, events int, err error) // nil unless made by NewBatch
	stats     counters
}

// Stats counts what a projection has done since it was made.
type Stats struct {
	Applied uint64 // events whose writes were committed
	Ignored uint64 // events without writes
	Dropped uint64 // idempotent writes that were left out
}

type counters struct{ applied, ignored, dropped atomic.Uint64 }

// New makes a projection. Errors: [*ConfigError].
func New(client Client, config Config, reactions ...Reaction) (*Projection, error) {
	if client == nil {
		return nil, &ConfigError{"the client is nil; pass a *dynamodb.Client"}
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
			return nil, &ConfigError{fmt.Sprintf("reaction %d has no function or no event type; pass On, or Into, a function of an event struct whose zero value tells its EventType", i+1)}
		}
		if _, taken := p.reactions[r.eventType]; taken {
			return nil, &ConfigError{fmt.Sprintf("two reactions to %q; make one of them", r.eventType)}
		}
		p.reactions[r.eventType] = r
	}
	return p, nil
}

// EventTypes returns the names of the events that have a reaction, sorted.
func (p *Projection) EventTypes() []string { return slices.Sorted(maps.Keys(p.reactions)) }

// Stats returns the counts.
func (p *Projection) Stats() Stats {
	return Stats{Applied: p.stats.applied.Load(), Ignored: p.stats.ignored.Load(), Dropped: p.stats.dropped.Load()}
}

// Handle is a message.NoPublishHandlerFunc for messages of a
// [github.com/millrace-dev/millrace/subscriber].
//
// Errors: subscriber.ErrNoPosition for other messages, subscriber.ErrFenced when another member of
// the group has taken over, [*ConditionError], [*TooManyWritesError], [*ItemTooLargeError],
// [journal.ErrTableMissing], those of the codec and the reaction, and the SDK's. After an error
// nothing is written, unless the reply was lost; that shows when the message comes again, and does
// no harm. The subscriber is told of the error, see [subscriber.SetNackReason].
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
		return fmt.Errorf("message %s: %w", msg.UUID, subscriber.ErrNoPosition)
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
		return &TooManyWritesError{Event: record.Aggregate, Number: record.Number, Count: len(writes)}
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

// commit sends the writes with the position, again without those that turn out to be done.
func (p *Projection) commit(ctx context.Context, r *journal.Record, advance subscriber.Advance, writes []Write) error {
	left := make([]int, len(writes)) // indexes of the writes that are sent
	for i := range writes {
		left[i] = i
	}
	end := time.Now().Add(p.config.RetryBudget)
	wait := backoff.WithContext(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond),
		backoff.WithMaxInterval(500*time.Millisecond),
		backoff.WithMaxElapsedTime(p.config.RetryBudget),
	), ctx)
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
				return backoff.Permanent(explain(err, r, writes, nil)) // the SDK has repeated what it could
			}
			reasons := canceled.CancellationReasons
			if failed(reasons[0]) {
				if advance.Done(reasons[0].Item) {
					return nil // an earlier attempt, whose reply was lost
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
						Event: r.Aggregate, Number: r.Number, EventType: r.EventType, Table: writes[i].table(), Write: i,
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

// minAttempt is what a request has at least, so that the last one of a budget is not in vain.
const minAttempt = time.Second

// attempt sends the transaction once. A connection that hangs must not outlast the budget: the
// aggregate waits meanwhile, and its lane.
func (p *Projection) attempt(ctx context.Context, items []types.TransactWriteItem, left time.Duration) error {
	once, cancel := context.WithTimeout(ctx, max(left, minAttempt))
	defer cancel()
	_, err := p.client.TransactWriteItems(once, &dynamodb.TransactWriteItemsInput{TransactItems: items})
	if err != nil && once.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within the RetryBudget of %v: %w", p.config.RetryBudget, err)
	}
	return err
}

var errMoved = errors.New("an earlier attempt was done after it had been given up; the message comes again")

func failed(r types.CancellationReason) bool {
	return aws.ToString(r.Code) == "ConditionalCheckFailed"
}

// repeatable reports that a transaction failed for reasons that pass.
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
