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
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/examples/internal/loopback"
	"github.com/millrace-dev/millrace/examples/orderhistory/api"
	"github.com/millrace-dev/millrace/examples/orderhistory/sample"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/subscriber"
)

// shutdownTimeout is how long requests have to come to their end.
const shutdownTimeout = 10 * time.Second

// server is the parts of one process.
type server struct {
	service  *service.Service
	consumer *service.Consumer
	feed     *live.Feed
	http     *http.Server
	listener net.Listener
	cancel   context.CancelFunc // of what cannot be closed since it has not begun
	ended    chan end           // one for each part that runs
	parts    int                // that run
}

// end is how a part has ended.
type end struct {
	part string
	err  error
}

// parts is how many a server has.
const parts = 3

// options are the flags of serve.
type options struct {
	address string // to listen on
	host    string // name of a proxy in front
	sample  bool
	layout  string // of the tables
}

// serve runs the REST API, the consumer and the feed until the context ends.
func serve(ctx context.Context, db *dynamo.Database, o options, out, log io.Writer) error {
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := assemble(ctx, db.Client, o, logger)
	if err != nil {
		return err
	}
	s.start(ctx)
	err = s.wait(ctx, s.consumer.Running())
	if err == nil && o.sample && ctx.Err() == nil {
		err = addSample(ctx, s.service, out)
	}
	if err == nil && ctx.Err() == nil {
		usage(out, s.listener.Addr().String(), db.Inspection(s.service.Journal.Config().Tables))
		err = s.wait(ctx, nil)
	}
	if ctx.Err() != nil {
		err = nil // interrupted
	}
	return s.stop(ctx, err)
}

// wait returns when a channel is closed, when the context ends, or with an error when one of the
// parts has ended: all are to run until they are stopped.
func (s *server) wait(ctx context.Context, until <-chan struct{}) error {
	select {
	case <-until:
	case <-ctx.Done():
	case e := <-s.ended:
		s.parts--
		if e.err == nil {
			return fmt.Errorf("the %s has ended by itself", e.part)
		}
		return fmt.Errorf("%s: %w", e.part, e.err)
	}
	return nil
}

func assemble(ctx context.Context, client *dynamodb.Client, o options, logger *slog.Logger) (*server, error) {
	open, err := service.Open(ctx, client, service.Config{Layout: journal.Layout(o.layout)})
	if err != nil {
		return nil, err
	}
	s := &server{service: open, ended: make(chan end, parts)}
	if s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", o.address); err != nil {
		return nil, fmt.Errorf("%w: choose another address with -listen", err)
	}
	if err := s.connect(o, logger); err != nil {
		return nil, errors.Join(err, s.listener.Close())
	}
	return s, nil
}

// connect makes the parts that need no more than the service.
func (s *server) connect(o options, logger *slog.Logger) (err error) {
	toSlog := watermill.NewSlogLogger(logger)
	if s.consumer, err = s.service.NewConsumer(subscriber.Config{}, toSlog); err != nil {
		return err
	}
	if s.feed, err = s.service.NewFeed(toSlog); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	for _, c := range append(s.consumer.Metrics(),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})) {
		if err := registry.Register(c); err != nil {
			return err
		}
	}
	handler, err := api.New(api.Config{
		Orders: s.service.Orders, Tickets: s.service.Tickets, Deliveries: s.service.Deliveries,
		History: s.service.History, Feed: s.feed, WaitShown: s.service.WaitShown,
		Ready: s.ready, Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), Logger: logger,
	})
	s.http = &http.Server{
		Handler:           loopback.Guard(s.listener.Addr(), handler, o.host),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	return err
}

func (s *server) ready(ctx context.Context) error {
	if err := s.consumer.Runs(); err != nil {
		return err
	}
	return s.service.Answers(ctx)
}

func (s *server) start(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx)) // they are stopped in order
	s.run("consumer", func() error { return s.consumer.Run(ctx) })
	s.run("feed", func() error { return s.feed.Run(ctx) })
	s.run("HTTP server", func() error { return s.http.Serve(s.listener) })
}

func (s *server) run(part string, run func() error) {
	s.parts++
	go func() { s.ended <- end{part, run()} }()
}

// stop ends streams, which would not end by themselves, then requests, and then the consumer, which
// can still see what they commit.
func (s *server) stop(ctx context.Context, why error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	defer s.cancel()
	err := errors.Join(s.feed.Close(), s.http.Shutdown(ctx))
	select {
	case <-s.consumer.Running():
		err = errors.Join(err, s.consumer.Close())
	default:
		s.cancel() // a consumer that does not run yet cannot be closed
	}
	for ; s.parts > 0; s.parts-- {
		select {
		case e := <-s.ended:
			if e.err != nil && !errors.Is(e.err, http.ErrServerClosed) && !errors.Is(e.err, context.Canceled) {
				err = errors.Join(err, fmt.Errorf("%s: %w", e.part, e.err))
			}
		case <-ctx.Done():
			return errors.Join(why, err, errors.New("not all parts of the server have stopped in time"))
		}
	}
	return errors.Join(why, err)
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
  curl -X POST http://%[1]s/tickets/first/accept
  curl -X POST http://%[1]s/deliveries/first/pick-up?wait=2
  curl http://%[1]s/orders/first

http://%[1]s/openapi.yaml describes all of it; /healthz, /readyz and /metrics are for operators.

%[2]s`, address, inspection)
}
