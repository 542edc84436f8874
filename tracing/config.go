package tracing

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/millrace-dev/millrace/tracing"

// Config configures the spans of this package. The zero value uses the global provider and
// propagator.
type Config struct {
	// TracerProvider makes the spans. Default: otel.GetTracerProvider.
	TracerProvider trace.TracerProvider

	// Propagator writes spans into metadata, and reads them from metadata. Writers and readers must
	// use the same propagator. Default: otel.GetTextMapPropagator, which does nothing until the
	// program has called otel.SetTextMapPropagator.
	Propagator propagation.TextMapPropagator

	// ContinueTrace makes the spans of [Middleware] and [StepMiddleware] children of the span in
	// the metadata, instead of linking them to it. Then a command and everything that it leads to
	// is one trace. A parent-based sampler decides once for the whole trace. A group that reads
	// history adds spans to old traces. Default: false.
	ContinueTrace bool
}

func (c Config) tracer() trace.Tracer {
	provider := c.TracerProvider
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	return provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
}

func (c Config) propagator() propagation.TextMapPropagator {
	if c.Propagator == nil {
		return otel.GetTextMapPropagator()
	}
	return c.Propagator
}
