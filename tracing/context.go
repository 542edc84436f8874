package tracing

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace/aggregate"
)

// ContextWithTrace returns a context whose metadata carries the span of ctx. All events that are
// committed with that context then carry the span; see [aggregate.ContextWithMetadata]. Other keys
// are not changed. It returns ctx if ctx has no span, or if the propagator writes nothing. It uses
// only the propagator of config.
func ContextWithTrace(ctx context.Context, config Config) context.Context {
	return withTrace(ctx, config.propagator())
}

func withTrace(ctx context.Context, propagator propagation.TextMapPropagator) context.Context {
	carried := propagation.MapCarrier{}
	propagator.Inject(ctx, carried)
	if len(carried) == 0 {
		return ctx
	}
	// A key of another span, such as its tracestate, must not go with this span. Keys cannot be
	// removed from a context's metadata, so set them to an empty value, which is read as none.
	before := aggregate.MetadataFromContext(ctx)
	for _, key := range propagator.Fields() {
		if _, stale := before[key]; stale && carried[key] == "" {
			carried[key] = ""
		}
	}
	return aggregate.ContextWithMetadata(ctx, aggregate.Metadata(carried))
}

// carriedBy returns ctx with the values that the propagator reads from metadata, such as baggage,
// and the span in metadata. The returned context keeps the span of ctx.
func carriedBy(
	ctx context.Context, propagator propagation.TextMapPropagator, metadata map[string]string,
) (context.Context, trace.SpanContext) {
	own := trace.SpanFromContext(ctx)
	// A propagator that finds nothing keeps the span of the context, so remove the span first.
	ctx = propagator.Extract(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), propagation.MapCarrier(metadata))
	return trace.ContextWithSpan(ctx, own), trace.SpanContextFromContext(ctx)
}

// withParent returns ctx if it has a span. Otherwise it returns ctx with the span in metadata.
func withParent(ctx context.Context, propagator propagation.TextMapPropagator, metadata map[string]string) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	return propagator.Extract(ctx, propagation.MapCarrier(metadata))
}
