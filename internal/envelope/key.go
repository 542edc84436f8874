package envelope

import (
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/metadata"
)

// Metadata keys of a message whose values the journal stores outside of the metadata.
const (
	// NameKey holds the event type. Watermill's cqrs.JSONMarshaler reads and writes the same key,
	// so its typed handlers accept the messages.
	NameKey = "name"
	// AggregateIDKey holds the aggregate's id without its type.
	AggregateIDKey = "aggregate_id"
	// AggregateTypeKey holds the aggregate's type, which is the topic.
	AggregateTypeKey = "aggregate_type"
	// SequenceNumberKey holds the event's number within its aggregate, decimal, from 1.
	SequenceNumberKey = "sequence_number"
	// OccurredAtKey holds the time of the event: RFC 3339 in UTC with milliseconds.
	OccurredAtKey = "occurred_at"
	// ExpectedVersionKey holds the version that the aggregate must have so that the message can be
	// appended. It is for the publisher only, and never stored.
	ExpectedVersionKey = "expected_version"
	// DeliveryAttemptKey counts the deliveries of a message to a consumer group, from 2.
	DeliveryAttemptKey = "delivery_attempt"
	// PartKey holds the index of a message among the messages of one event, and their number:
	// "2/3".
	PartKey = "event_part"
	// DeferredKey is "true" on messages of deferred events.
	DeferredKey = "event_deferred"
)

// Metadata keys that are stored with the event.
const (
	CorrelationIDKey = aggregate.CorrelationIDKey
	CausationIDKey   = aggregate.CausationIDKey
	// ReasonPoisonedKey holds the error of a message in a poison queue, as Watermill's middleware
	// sets it.
	ReasonPoisonedKey = "reason_poisoned"
)

// MaxReason is the maximum length of the stored value of [ReasonPoisonedKey], in bytes.
const MaxReason = 1 << 10

// Stored reports whether the journal stores the value of a metadata key in the metadata.
func Stored(key string) bool {
	switch key {
	case NameKey, AggregateIDKey, AggregateTypeKey, SequenceNumberKey, OccurredAtKey, ExpectedVersionKey, DeliveryAttemptKey, PartKey,
		DeferredKey, metadata.OwnStreamKey:
		return false
	}
	return true
}
