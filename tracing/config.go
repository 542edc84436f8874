package tracing

import (
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
)

// scope names who made the spans.
const scope = "github.com/millrace-dev/millrace/tracing"

// Config says where spans go. The zero value takes what the program has set globally.
type Config struct {
	// TracerProvider makes the spans. Default: otel.GetTracerProvider.
	TracerProvider trace.TracerProvider

	// Propagator writes spans into metadata and reads them there. Writers and readers must have the
	// same. Default: otel.GetTextMapPropagator, which carries nothing until a program has called
	// otel.SetTextMapPropagator.
	Propagator propagation.TextMapPropagator

	// ContinueTrace makes the spans of [Middleware] children of the commit instead of linking them
	// to it, so that a command and all that follows from it, over any number of handlers, is one
	// trace. A sampler that goes by the parent then decides once for all of it, and a group that
	// reads history adds spans to the traces of long ago. Default: false.
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
