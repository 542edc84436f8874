package aggregate

import (
	"context"
	"maps"
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

type metadataKey struct{}

// ContextWithMetadata returns a context whose metadata is that of ctx with metadata laid over it: a
// key in both takes the new value. Both maps are copied, so later changes to metadata do not show.
func ContextWithMetadata(ctx context.Context, metadata Metadata) context.Context {
	merged := MetadataFromContext(ctx)
	maps.Copy(merged, metadata)
	return context.WithValue(ctx, metadataKey{}, merged)
}

// MetadataFromContext returns a copy of the metadata that ctx carries. It is never nil.
func MetadataFromContext(ctx context.Context) Metadata {
	carried, _ := ctx.Value(metadataKey{}).(Metadata)
	metadata := make(Metadata, len(carried))
	maps.Copy(metadata, carried)
	return metadata
}
