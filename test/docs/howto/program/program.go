// Package program is the code of docs/howto/set-up-a-program.md.
package program

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"go.opentelemetry.io/otel"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/metrics/otelmetrics"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
	"github.com/millrace-dev/millrace/tracing"
)

// Main runs the program until it gets SIGINT or SIGTERM.
func Main(client journal.Client, listener net.Listener) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return Run(ctx, client, listener)
}

// Run runs the program until ctx ends.
func Run(ctx context.Context, client journal.Client, listener net.Listener) error {
	app, err := millrace.Open(ctx, client, millrace.Config{
		Prefix: "shop-", Journal: journal.Config{Layout: journal.Packed, Shards: 4},
		Logger:           watermill.NewSlogLogger(slog.Default()),
		Middleware:       []message.HandlerMiddleware{tracing.Middleware(tracing.Config{})},
		CommitMiddleware: tracing.CommitMiddleware(tracing.Config{}),
	})
	if err != nil {
		return err
	}
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	if err != nil {
		return err
	}
	// More repositories, groups and read models are added here.

	registration, err := otelmetrics.Register(otel.Meter("shop"), app.Components())
	if err != nil {
		return err
	}
	defer func() { _ = registration.Unregister() }()
	server := &http.Server{Handler: routes(app, orders), ReadHeaderTimeout: 10 * time.Second}
	if err := app.Serve(listener, server); err != nil {
		return err
	}
	return app.Run(ctx)
}

func routes(app *millrace.App, orders *repository.Repository[shop.Order]) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {}) // it answers
	mux.Handle("GET /readyz", app.ReadyHandler())
	mux.HandleFunc("POST /orders/{id}", place(orders))
	return mux
}
