package subscriber

import (
	"context"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/journal"
)

// Metadata keys that the subscriber sets on every message. An event's own metadata,
// such as correlation_id and causation_id, stands beside them.
const (
	MetadataName           = envelope.NameKey           // the event type
	MetadataAggregateID    = envelope.AggregateIDKey    // the id value
	MetadataAggregateType  = envelope.AggregateTypeKey  // the topic
	MetadataSequenceNumber = envelope.SequenceNumberKey // decimal, from 1
	MetadataOccurredAt     = envelope.OccurredAtKey     // RFC 3339 with milliseconds, UTC
	// MetadataDeliveryAttempt is on messages that were delivered before: decimal, from 2. See [AttemptFromContext].
	MetadataDeliveryAttempt = "delivery_attempt"
)

// messageContext carries what belongs to a message without an allocation for each value.
type messageContext struct {
	context.Context
	record   *journal.Record
	position *Position
	attempt  int
}

type contextKey struct{}

func (c *messageContext) Value(key any) any {
	if _, ok := key.(contextKey); ok {
		return c
	}
	return c.Context.Value(key)
}

func fromContext(ctx context.Context) (*messageContext, bool) {
	c, ok := ctx.Value(contextKey{}).(*messageContext)
	return c, ok
}

// RecordFromContext gives the event that a message was made of. It is shared: do not change it.
func RecordFromContext(ctx context.Context) (*journal.Record, bool) {
	c, ok := fromContext(ctx)
	if !ok {
		return nil, false
	}
	return c.record, true
}

// AggregateFromContext gives the aggregate and the sequence number of a message's event.
func AggregateFromContext(ctx context.Context) (id aggregate.ID, number uint64, ok bool) {
	c, ok := fromContext(ctx)
	if !ok {
		return aggregate.ID{}, 0, false
	}
	return c.record.Aggregate, c.record.Number, true
}

// ConsumerGroupFromContext gives the consumer group that a message was delivered to.
func ConsumerGroupFromContext(ctx context.Context) (group string, ok bool) {
	c, ok := fromContext(ctx)
	if !ok {
		return "", false
	}
	return c.position.shard.key.Group.Name, true
}

// AttemptFromContext tells how often the message was delivered, this time included, since its member took over the shard: 1 for
// the first time.
func AttemptFromContext(ctx context.Context) (attempt int, ok bool) {
	c, ok := fromContext(ctx)
	if !ok {
		return 0, false
	}
	return c.attempt, true
}

// PositionFromContext gives the position that a message's handler may commit.
func PositionFromContext(ctx context.Context) (*Position, bool) {
	c, ok := fromContext(ctx)
	if !ok {
		return nil, false
	}
	return c.position, true
}
