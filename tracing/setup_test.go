package tracing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/tracing"
)

// patience limits the time that a test waits before it fails.
const patience = 2 * time.Minute

type Account struct{ Balance int }

type Deposited struct{ Amount int }

func (Deposited) EventType() string  { return "account.deposited.v1" }
func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }

type Withdrawn struct{ Amount int }

func (Withdrawn) EventType() string  { return "account.withdrawn.v1" }
func (e Withdrawn) Apply(a *Account) { a.Balance -= e.Amount }

var Accounts = aggregate.Define[Account]("account", Deposited{}, Withdrawn{})

func events(events ...aggregate.Event[Account]) aggregate.Decision[Account] {
	return func(Account) (aggregate.Events[Account], error) { return events, nil }
}

func refuse(err error) aggregate.Decision[Account] {
	return func(Account) (aggregate.Events[Account], error) { return nil, err }
}

var errHandler = errors.New("the handler fails")

// world is a journal whose spans are recorded.
type world struct {
	t       *testing.T
	db      *dynamotest.DB
	journal *journal.Journal
	spans   *tracetest.SpanRecorder
	tracer  *sdktrace.TracerProvider
	config  tracing.Config
	// plain has no spans.
	plain    *repository.Repository[Account]
	accounts *repository.Repository[Account]
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: dynamotest.New(t), spans: tracetest.NewSpanRecorder()}
	w.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans))
	w.config = tracing.Config{TracerProvider: w.tracer, Propagator: propagation.TraceContext{}}
	require.NoError(t, journal.Create(t.Context(), w.db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
	w.open(patience)
	return w
}

// open opens the journal with the time for which commits are repeated.
func (w *world) open(retryBudget time.Duration) {
	w.t.Helper()
	w.journal = testjournal.Open(w.t, w.db.Client(), journal.Config{RetryBudget: retryBudget})
	w.plain = testjournal.Repository(w.t, w.journal, Accounts, repository.Config{MaxAttempts: 3})
	w.accounts = w.traced(w.config)
}

// traced returns a repository with spans.
func (w *world) traced(config tracing.Config) *repository.Repository[Account] {
	w.t.Helper()
	return testjournal.Repository(w.t, w.journal, Accounts, repository.Config{MaxAttempts: 3, Middleware: tracing.CommitMiddleware(config)})
}

// begin starts a span, such as the span of a request.
func (w *world) begin(name string) (context.Context, sdktrace.ReadOnlySpan) {
	ctx, span := w.tracer.Tracer("test").Start(w.t.Context(), name)
	span.End()
	return ctx, w.span(name)
}

// run handles the accounts' events until the test ends, with one consumer group for each handler.
func (w *world) run(handler message.NoPublishHandlerFunc, middlewares ...message.HandlerMiddleware) {
	w.t.Helper()
	router, sub := w.router()
	router.AddMiddleware(middlewares...)
	router.AddConsumerHandler("totals-handler", "account", sub, handler)
	w.start(router)
}

func (w *world) router() (*message.Router, *subscriber.Subscriber) {
	w.t.Helper()
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: patience}, watermill.NopLogger{})
	require.NoError(w.t, err)
	return router, w.subscriber("totals")
}

func (w *world) subscriber(group string) *subscriber.Subscriber {
	w.t.Helper()
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: w.journal, ConsumerGroup: group, NackResendSleep: time.Millisecond, Timing: subscriber.Timing{PollInterval: 10 * time.Millisecond},
	}, nil)
	require.NoError(w.t, err)
	return sub
}

func (w *world) start(router *message.Router) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- router.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		require.NoError(w.t, <-done)
	})
}

// named waits until n spans of a name have ended, and returns them in the order of their ends.
func (w *world) named(name string, n int) (found []sdktrace.ReadOnlySpan) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		found = nil
		for _, span := range w.spans.Ended() {
			if span.Name() == name {
				found = append(found, span)
			}
		}
		return len(found) >= n
	}, patience, time.Millisecond, "%d spans named %q", n, name)
	require.Len(w.t, found, n)
	return found
}

func (w *world) span(name string) sdktrace.ReadOnlySpan {
	w.t.Helper()
	return w.named(name, 1)[0]
}

// stored returns the metadata of an account's last event.
func (w *world) stored(id string) aggregate.Metadata {
	w.t.Helper()
	account, err := w.plain.Load(w.t.Context(), id)
	require.NoError(w.t, err)
	for record, err := range w.journal.Events(w.t.Context(), account.ID, account.Version, account.Version) {
		require.NoError(w.t, err)
		return record.Metadata
	}
	return nil
}

// attributesOf returns a span's attributes as Go values.
func attributesOf(span sdktrace.ReadOnlySpan) map[attribute.Key]any {
	values := map[attribute.Key]any{}
	for _, kv := range span.Attributes() {
		values[kv.Key] = kv.Value.AsInterface()
	}
	return values
}

// traceparent returns the value of the key traceparent for a span.
func traceparent(span sdktrace.ReadOnlySpan) string {
	of := span.SpanContext()
	return "00-" + of.TraceID().String() + "-" + of.SpanID().String() + "-01"
}
