package subscriber

import (
	"context"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/carried"
	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/internal/handled"
	"github.com/millrace-dev/millrace/journal"
)

// Metadata keys that the subscriber sets on every message. An event's own metadata,
// such as correlation_id and causation_id, stands beside them.
const (
	MetadataName           = "name"            // the event type
	MetadataAggregateID    = "aggregate_id"    // the id value
	MetadataAggregateType  = "aggregate_type"  // the topic
	MetadataSequenceNumber = "sequence_number" // decimal, from 1
	MetadataOccurredAt     = "occurred_at"     // RFC 3339 with milliseconds, UTC
	// MetadataDeliveryAttempt is on messages that were delivered before: decimal, from 2. See
	// [AttemptFromContext].
	MetadataDeliveryAttempt = "delivery_attempt"
	// MetadataPart is on messages of an event that [Config].Definitions turn into several: its place
	// and their number, such as "2/3".
	MetadataPart = "event_part"
	// MetadataDeferred is "true" on messages of events that were deferred ([Defer]): they come after
	// later events of their aggregate.
	MetadataDeferred = "event_deferred"
)

// messageContext ends when the handling of a message ends. It makes a standard context only when
// Done is called: one for each message would cost as much as the message, and all would contend for
// the lock of their parent.
type messageContext struct {
	parent          context.Context
	record          *journal.Record
	position        Position
	attempt         int
	withoutPosition bool // one of several of an event, or of a deferred event: it has no position

	mu     sync.Mutex
	ended  bool
	inner  context.Context // nil until somebody waits for the end
	cancel context.CancelFunc
	reason error // of the handler, for a nack
}

type contextKey struct{}

func (c *messageContext) Value(key any) any {
	if _, ok := key.(contextKey); ok {
		return c
	}
	if _, ok := key.(handled.Key); ok {
		return handled.Event{Table: c.position.deliverer.journal.Config().Tables.Journal, Aggregate: c.record.Aggregate, Number: c.record.Number}
	}
	if _, ok := key.(carried.Key); ok {
		return envelope.CausedBy(c.record, aggregate.MetadataFromContext(c.parent))
	}
	// The standard library finds its own context in there, so that those derived from this one need
	// no goroutine.
	return c.current().Value(key)
}

func (c *messageContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

func (c *messageContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner == nil {
		c.inner, c.cancel = context.WithCancel(c.parent)
		if c.ended {
			c.cancel()
		}
	}
	return c.inner.Done()
}

func (c *messageContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inner != nil:
		return c.inner.Err()
	case c.ended:
		return context.Canceled
	default:
		return c.parent.Err()
	}
}

func (c *messageContext) current() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner != nil {
		return c.inner
	}
	return c.parent
}

// end is the end of the message's handling.
func (c *messageContext) end() {
	c.mu.Lock()
	c.ended = true
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// failed makes a failure of the delivery.
func (c *messageContext) failed(msg *message.Message, err error) *failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &failure{record: c.record, msg: msg, err: err, reason: c.reason, batched: c.position.batched.Load()}
}

func fromContext(ctx context.Context) (*messageContext, bool) {
	c, ok := ctx.Value(contextKey{}).(*messageContext)
	return c, ok
}

// RecordFromContext returns the event that a message was made of, as [Config].Definitions have
// upcast it. It is shared: do not change it.
func RecordFromContext(ctx context.Context) (*journal.Record, bool) {
	c, ok := fromContext(ctx)
	if !ok {
		return nil, false
	}
	return c.record, true
}

// AggregateFromContext returns the aggregate and the sequence number of a message's event.
func AggregateFromContext(ctx context.Context) (id aggregate.ID, number uint64, ok bool) {
	c, ok := fromContext(ctx)
	if !ok {
		return aggregate.ID{}, 0, false
	}
	return c.record.Aggregate, c.record.Number, true
}

// ConsumerGroupFromContext returns the consumer group that a message was delivered to.
func ConsumerGroupFromContext(ctx context.Context) (group string, ok bool) {
	c, ok := fromContext(ctx)
	if !ok {
		return "", false
	}
	return c.position.deliverer.key.Group.Name, true
}

// AttemptFromContext reports how often the message was delivered, this time included, since its
// member took over the shard: 1 for the first time.
func AttemptFromContext(ctx context.Context) (attempt int, ok bool) {
	c, ok := fromContext(ctx)
	if !ok {
		return 0, false
	}
	return c.attempt, true
}

// PositionFromContext returns the position that a message's handler may commit. A message with a
// [MetadataPart] or a [MetadataDeferred] has none.
func PositionFromContext(ctx context.Context) (*Position, bool) {
	c, ok := fromContext(ctx)
	if !ok || c.withoutPosition {
		return nil, false
	}
	return &c.position, true
}
