package publisher

// Metadata keys that a publisher reads. A message may also carry what a subscriber adds to it, such
// as aggregate_type, sequence_number and occurred_at, or expected_version, see [ExpectVersion].
// These are not stored: they say where the message came from, and an event that is published again
// gets new ones. Nor is own_stream, which marks the events of messages without an id. All other
// metadata is stored as it is.
const (
	// NameKey holds the event type, as cqrs.JSONMarshaler of Watermill sets it.
	NameKey = "name"
	// AggregateIDKey holds the id of the aggregate within its type. If it is empty or absent, the
	// message goes to the stream of the Publisher.
	AggregateIDKey = "aggregate_id"
)
