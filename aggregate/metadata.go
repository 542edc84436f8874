package aggregate

import (
	"context"
	"maps"

	"github.com/millrace-dev/millrace/internal/carried"
)

const (
	// CorrelationIDKey holds an id that all messages and events share that follow from one request.
	// Watermill's correlation middleware reads and writes the same key.
	CorrelationIDKey = "correlation_id"

	// CausationIDKey holds the id of the message that led to the event: the id of a command or of
	// another event.
	CausationIDKey = "causation_id"
)

// Metadata is stored with each event, in addition to its payload: for example the user, the request
// and the tenant. Applications choose the keys. State must never depend on metadata; data that the
// domain needs belongs in the event.
type Metadata map[string]string

// CorrelationID returns the value of [CorrelationIDKey], or "" if there is none.
func (m Metadata) CorrelationID() string { return m[CorrelationIDKey] }

// CausationID returns the value of [CausationIDKey], or "" if there is none.
func (m Metadata) CausationID() string { return m[CausationIDKey] }

// ContextWithMetadata returns a context with the metadata of ctx and the given metadata. The given
// value wins for a key that is in both. Both maps are copied, so later changes to metadata have no
// effect.
func ContextWithMetadata(ctx context.Context, metadata Metadata) context.Context {
	merged := MetadataFromContext(ctx)
	maps.Copy(merged, metadata)
	return context.WithValue(ctx, carried.Key{}, merged)
}

// MetadataFromContext returns a copy of the metadata in ctx. It is never nil. The context of a
// message of package subscriber holds the metadata that its event passes on: the keys of
// correlation and tracing, and the id of the event as [CausationIDKey].
func MetadataFromContext(ctx context.Context) Metadata {
	from, _ := ctx.Value(carried.Key{}).(Metadata)
	metadata := make(Metadata, len(from))
	maps.Copy(metadata, from)
	return metadata
}
