package envelope

import (
	"cmp"
	"strconv"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// passedOn lists the keys that an event passes on to its consequences beside its id: correlation,
// and the keys of W3C Trace Context and Baggage.
var passedOn = []string{CorrelationIDKey, "traceparent", "tracestate", "baggage"}

// CausedBy adds to metadata the keys that an event passes on to the events and messages that it
// causes, and returns it. An event without a correlation id starts a new correlation.
func CausedBy(r *journal.Record, metadata aggregate.Metadata) aggregate.Metadata {
	CopyTraceKeys(r.Metadata, metadata)
	if r.Metadata[CorrelationIDKey] == "" {
		metadata[CorrelationIDKey] = r.EventID
	}
	metadata[CausationIDKey] = r.EventID
	return metadata
}

// CopyTraceKeys copies the keys that an event or a message passes on.
func CopyTraceKeys(from, to aggregate.Metadata) {
	for _, key := range passedOn {
		if value, ok := from[key]; ok {
			to[key] = value
		}
	}
}

// SetOrigin adds to the metadata of a public message the place, time, correlation and trace of the
// event that leads to it. It leaves out the baggage, which can be internal.
func SetOrigin(r *journal.Record, metadata message.Metadata) {
	metadata[OccurredAtKey] = occurredAt(r.OccurredAt)
	metadata[SequenceNumberKey] = strconv.FormatUint(r.Number, 10)
	metadata[CorrelationIDKey] = cmp.Or(r.Metadata[CorrelationIDKey], r.EventID)
	metadata[CausationIDKey] = r.EventID
	for _, key := range []string{"traceparent", "tracestate"} {
		if value := r.Metadata[key]; value != "" {
			metadata[key] = value
		}
	}
}
