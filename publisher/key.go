package publisher

import "github.com/millrace-dev/millrace/internal/envelope"

// Metadata keys that a publisher reads. Everything else in a message's metadata is stored as it is, except
// for [AggregateTypeKey], [SequenceNumberKey] and [OccurredAtKey], which say where a received message came
// from: the store has them for each event anyway, and a message that is published again gets new ones.
const (
	// NameKey holds the event type, as cqrs.JSONMarshaler of Watermill sets it.
	NameKey = envelope.NameKey
	// AggregateIDKey holds the id of the aggregate within its type. Empty or absent: the Publisher's stream.
	AggregateIDKey = envelope.AggregateIDKey
	// CorrelationIDKey holds the id that all shares which one request set in motion.
	CorrelationIDKey = envelope.CorrelationIDKey
	// CausationIDKey holds the id of the message that led to this one.
	CausationIDKey = envelope.CausationIDKey
	// ExpectedVersionKey is set by [ExpectVersion] and not stored.
	ExpectedVersionKey = envelope.ExpectedVersionKey
)

// Metadata keys that a received message carries and a published one need not have.
const (
	AggregateTypeKey  = envelope.AggregateTypeKey
	SequenceNumberKey = envelope.SequenceNumberKey
	OccurredAtKey     = envelope.OccurredAtKey
)
