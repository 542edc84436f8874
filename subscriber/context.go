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

// Metadata keys that the subscriber sets on every message, in addition to the event's own metadata,
// such as correlation_id and causation_id.
const (
	NameKey           = "name"            // the event type
	AggregateIDKey    = "aggregate_id"    // the id value
	AggregateTypeKey  = "aggregate_type"  // the topic
	SequenceNumberKey = "sequence_number" // decimal, from 1
	OccurredAtKey     = "occurred_at"     // RFC 3339 with milliseconds, UTC
	// DeliveryAttemptKey is set on messages that were delivered before: decimal, from 2. See
	// [AttemptFromContext].
	DeliveryAttemptKey = "delivery_attempt"
	// PartKey is set on messages of an event that [Config].Definitions turn into several: the
	// place of the message and the number of messages, such as "2/3".
	PartKey = "event_part"
	// DeferredKey is "true" on messages of deferred events ([Defer]), which are delivered
	// after later events of their aggregate.
	DeferredKey = "event_deferred"
)

// messageContext is the context of a message. It ends when the handling of the message ends. It
// creates a standard context only when Done is called. A standard context for each message would
// cost as much as the message, and all of them would contend for the lock of their parent.
type messageContext struct {
	parent   context.Context
	record   *journal.Record
	position Position
	attempt  int
	// withoutPosition is set on a message of a deferred event, and on one of several messages of an
	// event.
	withoutPosition bool

	mu     sync.Mutex
	ended  bool
	inner  context.Context // nil until Done is called
	cancel context.CancelFunc
	reason error // the handler's reason for a nack
}

type contextKey struct{}

func (c *messageContext) Value(key any) any {
	if _, ok := key.(contextKey); ok {
		return c
	}
	if _, ok := key.(handled.Key); ok {
		d := c.position.deliverer
		return handled.Event{Table: d.journal.Config.Tables.Journal, Aggregate: c.record.Aggregate, Number: c.record.Number, Logger: d.logger}
	}
	if _, ok := key.(carried.Key); ok {
		return envelope.CausedBy(c.record, aggregate.MetadataFromContext(c.parent))
	}
	// The standard library finds its own context by this call, so contexts that are derived from
	// this one need no goroutine.
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

// end ends the handling of the message.
func (c *messageContext) end() {
	c.mu.Lock()
	c.ended = true
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// failed returns a failure of the delivery.
func (c *messageContext) failed(msg *message.Message, err error) *failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &failure{record: c.record, msg: msg, err: err, reason: c.reason, batched: c.position.batched.Load()}
}

func fromContext(ctx context.Context) (*messageContext, bool) {
	c, ok := ctx.Value(contextKey{}).(*messageContext)
	return c, ok
}

// RecordFromContext returns the event from which a message was made, upcast by
// [Config].Definitions. The record is shared: do not change it. ok is false for a context of
// another message.
func RecordFromContext(ctx context.Context) (r *journal.Record, ok bool) {
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

// ConsumerGroupFromContext returns the consumer group to which a message was delivered. It is empty
// for a broadcast.
func ConsumerGroupFromContext(ctx context.Context) (group string, ok bool) {
	c, ok := fromContext(ctx)
	if !ok {
		return "", false
	}
	return c.position.deliverer.key.Group.Name, true
}

// AttemptFromContext returns the number of deliveries of the message, including this one, since its
// member took over the shard. It is 1 for the first delivery. Failure policies count on over
// changes of the member.
func AttemptFromContext(ctx context.Context) (attempt int, ok bool) {
	c, ok := fromContext(ctx)
	if !ok {
		return 0, false
	}
	return c.attempt, true
}

// PositionFromContext returns the position that the handler of a message may commit. A message with
// a [PartKey] or a [DeferredKey] has none.
func PositionFromContext(ctx context.Context) (*Position, bool) {
	c, ok := fromContext(ctx)
	if !ok || c.withoutPosition {
		return nil, false
	}
	return &c.position, true
}
