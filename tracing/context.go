package tracing

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace/aggregate"
)

// ContextWithTrace returns a context whose metadata carries the span of ctx, so that the events of
// every commit that is made with it lead to that span; see [aggregate.ContextWithMetadata]. Other
// keys stay as they are. If ctx has no span, or the propagator carries nothing, it is ctx. Of
// [Config] only the propagator counts.
func ContextWithTrace(ctx context.Context, config Config) context.Context {
	return withTrace(ctx, config.propagator())
}

func withTrace(ctx context.Context, propagator propagation.TextMapPropagator) context.Context {
	carried := propagation.MapCarrier{}
	propagator.Inject(ctx, carried)
	if len(carried) == 0 {
		return ctx
	}
	// A key of another span, such as its tracestate, would go with the wrong one. A context's
	// metadata can be laid over, not removed, and an empty value reads as none.
	before := aggregate.MetadataFromContext(ctx)
	for _, key := range propagator.Fields() {
		if _, stale := before[key]; stale && carried[key] == "" {
			carried[key] = ""
		}
	}
	return aggregate.ContextWithMetadata(ctx, aggregate.Metadata(carried))
}

// carriedBy returns ctx with what metadata carries, and the span in it. The span of the context
// itself stays the one that it was.
func carriedBy(
	ctx context.Context, propagator propagation.TextMapPropagator, metadata map[string]string,
) (context.Context, trace.SpanContext) {
	own := trace.SpanFromContext(ctx)
	// Cleared first: a propagator that finds nothing leaves the span of the context in place.
	ctx = propagator.Extract(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), propagation.MapCarrier(metadata))
	return trace.ContextWithSpan(ctx, own), trace.SpanContextFromContext(ctx)
}

// withParent returns a context whose span is that of ctx, or else the one that metadata carries.
func withParent(ctx context.Context, propagator propagation.TextMapPropagator, metadata map[string]string) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	return propagator.Extract(ctx, propagation.MapCarrier(metadata))
}
