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
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/metrics/otelmetrics"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber/groups"
	"github.com/millrace-dev/millrace/tracing"
)

// Metrics serves the metrics of everything that was added to the App.
func Metrics(app *millrace.App) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.Collectors(app.Components())...)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// OpenTelemetry exports the metrics of the App each minute. The caller shuts the provider down.
func OpenTelemetry(app *millrace.App, exporter metric.Exporter) (*metric.MeterProvider, error) {
	provider := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(exporter)))
	_, err := otelmetrics.Register(provider.Meter("millrace"), app.Components())
	return provider, err
}

// Trace traces an App. A program calls it once, before millrace.Open.
func Trace(provider trace.TracerProvider) (millrace.Config, process.Config) {
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	return millrace.Config{
		Middleware:       []message.HandlerMiddleware{tracing.Middleware(tracing.Config{})},
		CommitMiddleware: tracing.CommitMiddleware(tracing.Config{}), // of all repositories
	}, process.Config{Middleware: tracing.StepMiddleware(tracing.Config{})} // of each manager
}

// Logger logs what an App does.
func Logger() millrace.Config {
	return millrace.Config{Logger: watermill.NewSlogLogger(slog.Default())}
}

// Run runs an App until the program gets SIGTERM.
func Run(app *millrace.App) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return app.Run(ctx)
}

// Commands returns a publisher of commands.
func Commands(j *journal.Journal, logger watermill.LoggerAdapter) (*publisher.Publisher, error) {
	p, err := publisher.NewPublisher(publisher.Config{Journal: j, Queues: []string{"commands"}}, logger)
	return p, err
}

// TrimCommands removes commands that are a week old. A program calls it every few minutes.
func TrimCommands(ctx context.Context, j *journal.Journal) (more bool, err error) {
	trimmed, err := groups.New(j).TrimDue(ctx, "commands", groups.TrimOptions{Keep: 7 * 24 * time.Hour})
	return trimmed.More, err
}

// Trim removes old mails until ctx ends.
func Trim(ctx context.Context, j *journal.Journal) error {
	err := groups.New(j).TrimEvery(ctx, "mails", time.Hour, groups.TrimOptions{Keep: 72 * time.Hour},
		func(t groups.Trimmed, err error) {
			slog.Info("trimmed", "topic", t.Topic, "events", t.Events, "held_by", t.HeldBy, "err", err)
		})
	return err
}
