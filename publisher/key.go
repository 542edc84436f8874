package publisher

// Metadata keys that a Publisher reads. Some metadata of a message is not stored: expected_version
// (see [SetExpectedVersion]), own_stream, and the metadata that a subscriber adds, such as
// aggregate_type, sequence_number and occurred_at. Events that are published again get new values
// of these. All other metadata is stored as it is.
const (
	// NameKey is the key of the event type. Watermill's cqrs.JSONMarshaler sets it.
	NameKey = "name"
	// AggregateIDKey is the key of the aggregate's id within its type. If the id is empty or
	// absent, the message goes to the stream of the Publisher.
	AggregateIDKey = "aggregate_id"
)
