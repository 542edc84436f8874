package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/examples/internal/broker"
	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/examples/internal/loopback"
	"github.com/millrace-dev/millrace/examples/orderhistory/api"
	"github.com/millrace-dev/millrace/examples/orderhistory/outbound"
	"github.com/millrace-dev/millrace/examples/orderhistory/sample"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/metrics"
)

// shutdownTimeout limits the time to finish requests.
const shutdownTimeout = 10 * time.Second

// options are the flags of serve.
type options struct {
	address string // to listen on
	host    string // host name of a proxy in front
	sample  bool
	layout  string // of the tables
	nats    string // address of a NATS server in this process; empty for none
}

// serve runs the REST API, the consumers and the feed until the context ends.
func serve(ctx context.Context, db *dynamo.Database, o options, out, log io.Writer) (err error) {
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	toSlog := watermill.NewSlogLogger(logger)
	s, err := service.Open(ctx, db.Client, millrace.Config{
		Journal: journal.Config{Layout: journal.Layout(o.layout)}, StopTimeout: shutdownTimeout, Logger: toSlog,
	})
	if err != nil {
		return err
	}
	if err := s.Consume(); err != nil {
		return err
	}
	if o.nats != "" {
		stop, failed := publish(s.App, o.nats, out, toSlog)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	feed, err := s.Feed()
	if err != nil {
		return err
	}
	orders, err := newAPI(s, feed, logger)
	if err != nil {
		return err
	}
	operators, err := console.New(console.Config{App: s, Hosts: []string{o.host}, Logger: toSlog})
	if err != nil {
		return err
	}
	handler := http.NewServeMux()
	handler.Handle("/", orders)
	handler.Handle("/console/", operators)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.address)
	if err != nil {
		return fmt.Errorf("%w: choose another address with -listen", err)
	}
	server := &http.Server{
		Handler:           loopback.Guard(listener.Addr(), handler, o.host),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	server.RegisterOnShutdown(operators.Close)
	err = errors.Join(
		s.Serve(listener, server),
		s.Add(millrace.Service{Name: "sample", Run: func(ctx context.Context) error {
			if o.sample {
				if err := addSample(ctx, s, out); err != nil {
					return err
				}
			}
			usage(out, listener.Addr().String(), db.Inspection(s.Journal().Config().Tables))
			<-ctx.Done()
			return nil
		}}),
	)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return s.Run(ctx)
}

// publish starts a NATS server, and forwards orders to it. Call stop after the App has ended.
func publish(app *millrace.App, address string, out io.Writer, logger watermill.LoggerAdapter) (stop func() error, err error) {
	server, err := broker.Serve(address, outbound.Topic)
	if err != nil {
		return nil, fmt.Errorf("-nats: %w", err)
	}
	publisher, err := broker.NewPublisher(server.URL(), logger)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	stop = func() error { return errors.Join(publisher.Close(), server.Close()) }
	if _, err := outbound.Forward(app, publisher); err != nil {
		return nil, errors.Join(err, stop())
	}
	fmt.Fprintf(out, "Publishing orders. Receive them with: go run ./examples/invoices -nats %s\n", server.URL())
	return stop, nil
}

func newAPI(s *service.Service, feed *live.Feed, logger *slog.Logger) (http.Handler, error) {
	registry := prometheus.NewRegistry()
	for _, c := range append(metrics.Collectors(s.Components()),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})) {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	return api.New(api.Config{
		Orders: s.Orders, Tickets: s.Tickets, Deliveries: s.Deliveries,
		History: s.History, Feed: feed, WaitShown: s.WaitShown,
		Ready: s.Answers, Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), Logger: logger,
	})
}

func addSample(ctx context.Context, s *service.Service, out io.Writer) error {
	missing, err := sample.IsMissing(ctx, s)
	if err != nil || !missing {
		return err
	}
	added, err := sample.Add(ctx, s, time.Now())
	if err != nil {
		return fmt.Errorf("add sample orders: %w", err)
	}
	fmt.Fprintf(out, "Added %d sample orders of %s, %s and %s\n", added, sample.Consumers[0], sample.Consumers[1], sample.Consumers[2])
	return nil
}

func usage(out io.Writer, address, inspection string) {
	fmt.Fprintf(out, `Serving orders on http://%[1]s until interrupted. Open that in a browser, or try

  curl 'http://%[1]s/consumers/ada/orders?status=APPROVED&keyword=vindaloo&pageSize=10'
  curl -N http://%[1]s/consumers/ada/events &
  curl -i --json '{"orderId": "first", "consumerId": "ada", "restaurant": "Ajanta",
    "lines": [{"name": "Chicken Vindaloo", "quantity": 2, "priceCents": 1250}]}' http://%[1]s/orders
  curl -f --retry 7 --retry-all-errors -X POST http://%[1]s/tickets/first/accept
  curl -f --retry 7 --retry-all-errors -X POST 'http://%[1]s/deliveries/first/pick-up?wait=10'
  curl http://%[1]s/orders/first

The kitchen and the courier learn of the order a moment later, so curl tries their commands again.

http://%[1]s/console/ shows the events, their states and the consumer groups.
http://%[1]s/openapi.yaml describes all of it; /healthz, /readyz and /metrics are for operators.

%[2]s`, address, inspection)
}
