package aggregate

import (
	"context"
	"maps"

	"github.com/millrace-dev/millrace/internal/carried"
)

const (
	// CorrelationIDKey holds the id that everything shares which one request set in motion.
	// Watermill's correlation middleware reads and writes the same key.
	CorrelationIDKey = "correlation_id"

	// CausationIDKey holds the id of the message that led to the event: a command's or another
	// event's.
	CausationIDKey = "causation_id"
)

// Metadata travels with each event, beside its payload: who asked for it, within which request, for
// which tenant. Keys are free. State must never depend on it; what the domain needs belongs into
// the event.
type Metadata map[string]string

// CorrelationID returns the value of [CorrelationIDKey], or "" if there is none.
func (m Metadata) CorrelationID() string { return m[CorrelationIDKey] }

// CausationID returns the value of [CausationIDKey], or "" if there is none.
func (m Metadata) CausationID() string { return m[CausationIDKey] }

// ContextWithMetadata returns a context whose metadata is that of ctx with metadata laid over it: a
// key in both takes the new value. Both maps are copied, so later changes to metadata do not show.
func ContextWithMetadata(ctx context.Context, metadata Metadata) context.Context {
	merged := MetadataFromContext(ctx)
	maps.Copy(merged, metadata)
	return context.WithValue(ctx, carried.Key{}, merged)
}

// MetadataFromContext returns a copy of the metadata that ctx carries. It is never nil. The context
// of a message of package subscriber carries what its event passes on: the keys of correlation and
// of tracing, and the event's id as [CausationIDKey].
func MetadataFromContext(ctx context.Context) Metadata {
	from, _ := ctx.Value(carried.Key{}).(Metadata)
	metadata := make(Metadata, len(from))
	maps.Copy(metadata, from)
	return metadata
}
