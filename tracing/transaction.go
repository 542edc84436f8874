package tracing

import (
	"context"
	"strings"

	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/repository"
)

// Transaction wraps [repository.Transaction], and adds a span to each Execute. The span has all
// aggregates as an attribute. The handling of the events is linked to it.
type Transaction struct {
	tx     *repository.Transaction
	config Config
}

// NewTransaction returns a [Transaction] that adds spans to another one.
func NewTransaction(tx *repository.Transaction, config Config) Transaction {
	return Transaction{tx, config}
}

// Execute calls [repository.Transaction.Execute] in a span, which includes all attempts.
func (t Transaction) Execute(ctx context.Context, decide func() error, given ...repository.Option) (err error) {
	if decide == nil {
		return t.tx.Execute(ctx, nil, given...) // refuses it
	}
	propagator := t.config.propagator()
	var types, aggregates []string
	for _, p := range t.tx.Results() {
		aggregates, types = append(aggregates, p.ID.String()), append(types, p.ID.Type)
	}
	ctx = withParent(ctx, propagator, aggregate.MetadataFromContext(ctx))
	ctx, span := t.config.tracer().Start(ctx, "commit "+strings.Join(once(types), ", "), trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		system, semconv.MessagingOperationName("commit"), semconv.MessagingOperationTypeSend, aggregatesKey.StringSlice(aggregates),
	))
	ctx = withTrace(ctx, propagator)
	spanned(span, func() {
		decisions := 0
		err = t.tx.Execute(ctx, func() error {
			decisions++
			return decide()
		}, given...)
		span.SetAttributes(decisionsKey.Int(decisions))
		// A wrapped RefusedError is the error of another call.
		if refused, ok := err.(*repository.RefusedError); ok { //nolint:errorlint // see above
			span.RecordError(refused.Err)
			span.SetAttributes(outcomeKey.String("refused"))
			return
		}
		t.note(span, err)
	})
	return err
}

// note records in a span the outcome of a commit to several aggregates.
func (t Transaction) note(span trace.Span, err error) {
	var events []string
	repeated := false
	for _, p := range t.tx.Results() {
		events = append(events, p.EventTypes...)
		repeated = repeated || p.Repeated
	}
	noteCommit(span, events, repeated, err)
}
