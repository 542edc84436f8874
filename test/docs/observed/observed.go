// Package observed has the metrics, traces and logs of an application.
package observed

import (
	"context"
	"log/slog"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
	"github.com/millrace-dev/millrace/tracing"
)

// Metrics serves the metrics of all parts that were added to the App.
func Metrics(app *millrace.App) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.Collectors(app)...)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// Parts are those of a program without an App.
func Parts(
	registry prometheus.Registerer, sub metrics.Subscriber, totals metrics.Projection, sagas metrics.Process, orders metrics.Repository,
) {
	registry.MustRegister(
		metrics.NewSubscriberCollector(sub, metrics.SubscriberConfig{ConsumerGroup: "totals"}),
		metrics.NewProjectionCollector(totals, metrics.ProjectionConfig{Name: "totals"}),
		metrics.NewProcessCollector(sagas, metrics.ProcessConfig{Type: "order-saga"}),
		metrics.NewRepositoryCollector(orders, metrics.RepositoryConfig{AggregateType: "order"}),
	)
}

// Trace traces an App. A program calls it once, before millrace.Open.
func Trace(provider trace.TracerProvider) (millrace.Config, process.Config) {
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	return millrace.Config{Middleware: []message.HandlerMiddleware{tracing.Middleware(tracing.Config{})}},
		process.Config{Middleware: tracing.Steps(tracing.Config{})} // of each process manager
}

// Writers makes spans of commits.
func Writers[S any](accounts *repository.Repository[S], parts *repository.Parts, pub message.Publisher) (
	*tracing.Repository[S], tracing.Parts, *tracing.Publisher,
) {
	return tracing.NewRepository(accounts, tracing.Config{}),
		tracing.NewParts(parts, tracing.Config{}),
		tracing.NewPublisher(pub, tracing.Config{})
}

// Logger logs what all parts of an App do.
func Logger() millrace.Config {
	return millrace.Config{Logger: watermill.NewSlogLogger(slog.Default())}
}

// Run runs an App until the program gets SIGTERM.
func Run(app *millrace.App) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return app.Run(ctx)
}

// Trim removes old mails until ctx ends.
func Trim(ctx context.Context, j *journal.Journal) error {
	err := groups.New(j).TrimEvery(ctx, "mails", time.Hour, groups.TrimOptions{Keep: 72 * time.Hour},
		func(t groups.Trimmed, err error) {
			slog.Info("trimmed", "topic", t.Topic, "events", t.Events, "held_by", t.HeldBy, "err", err)
		})
	return err
}
