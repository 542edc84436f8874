package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/millrace-dev/millrace/examples/internal/loopback"
	"github.com/millrace-dev/millrace/examples/planningpoker/web"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/subscriber"
)

// shutdownTimeout is how long requests have to come to their end.
const shutdownTimeout = 10 * time.Second

// Server is a process that serves rooms: API, page, consumer and feed.
type Server struct {
	*Service
	Consumer *Consumer
	feed     *live.Feed
	http     *http.Server
	address  string
	ended    chan error // one of each part that runs
	parts    int
	closing  atomic.Bool
	cancel   context.CancelFunc // of what runs
}

// ServerConfig configures a [Server]. The zero value serves on any free port of this machine.
type ServerConfig struct {
	Config
	Address  string            // to listen on; default: 127.0.0.1:0
	Consumer subscriber.Config // Journal and ConsumerGroup are filled in
	Logger   *slog.Logger      // default: slog.Default()
	// SecureCookie has browsers send the cookie by https alone: for a server behind a proxy that
	// does TLS.
	SecureCookie bool
	Host         string // that a proxy in front is known by, if the address is a loopback one
}

// Start opens the service and serves it. It returns when all parts run, or when one cannot or the
// context has ended; after that the context does nothing.
func Start(ctx context.Context, client journal.Client, config ServerConfig) (*Server, error) {
	if config.Address == "" {
		config.Address = "127.0.0.1:0"
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	s, err := Open(ctx, client, config.Config)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", config.Address)
	if err != nil {
		return nil, err
	}
	server := &Server{Service: s, address: listener.Addr().String(), ended: make(chan error, 3)}
	if err := server.assemble(config, listener.Addr()); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	// Parts run until Close, but for those that have not begun: a router that does not run cannot
	// be closed, only canceled.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	server.cancel = cancel
	server.run("the consumer", func() error { return server.Consumer.Run(running) })
	server.run("the feed", func() error { return server.feed.Run(running) })
	for _, started := range []<-chan struct{}{server.Consumer.Running(), server.feed.Running()} {
		select {
		case <-started:
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case err = <-server.ended:
			server.parts--
		}
		return nil, errors.Join(err, server.abandon(), listener.Close())
	}
	server.run("the HTTP server", func() error { return server.http.Serve(listener) })
	return server, nil
}

func (s *Server) assemble(config ServerConfig, address net.Addr) (err error) {
	logger := watermill.NewSlogLogger(config.Logger)
	if s.Consumer, err = s.NewConsumer(config.Consumer, logger); err != nil {
		return err
	}
	if s.feed, err = s.NewFeed(logger); err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	for _, collector := range s.Consumer.Collectors() {
		if err := registry.Register(collector); err != nil {
			return err
		}
	}
	s.http = &http.Server{
		Handler: loopback.Guard(address, web.New(web.Config{
			Rooms: s.Rooms, View: s.View, Feed: s.feed, History: s.History, Wait: s.Wait, Ready: s.Ready, Now: s.now, Logger: config.Logger,
			SecureCookie: config.SecureCookie, Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		}), config.Host),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(config.Logger.Handler(), slog.LevelWarn),
	}
	return nil
}

// run runs a part, which is not to end before Close.
func (s *Server) run(name string, part func() error) {
	s.parts++
	go func() {
		err := part()
		if err == nil && !s.closing.Load() {
			err = fmt.Errorf("%s has ended", name)
		}
		s.ended <- err
	}()
}

// abandon ends parts of which some have not begun.
func (s *Server) abandon() error {
	s.closing.Store(true)
	s.cancel()
	err := s.wait()
	select {
	case <-s.feed.Running():
		return errors.Join(err, s.feed.Close()) // leaves no consumer group behind
	default:
		return err
	}
}

// wait waits for the parts to end, and returns the errors of those that did not end because they
// were told to.
func (s *Server) wait() (err error) {
	for ; s.parts > 0; s.parts-- {
		if end := <-s.ended; end != nil && !errors.Is(end, http.ErrServerClosed) && !errors.Is(end, context.Canceled) {
			err = errors.Join(err, fmt.Errorf("planning poker: %w", end))
		}
	}
	return err
}

// URL is where it serves.
func (s *Server) URL() string { return "http://" + s.address }

// Ready reports whether commands and queries work: the tables answer, and the consumer runs. How
// far behind the view is, its metrics say.
func (s *Server) Ready(ctx context.Context) error {
	if !s.Consumer.router.IsRunning() || s.Consumer.router.IsClosed() {
		return errors.New("the consumer of the view does not run")
	}
	return s.Service.Ready(ctx)
}

// Run returns when the context ends, or when a part of the server cannot go on, with its error.
// Call Close then.
func (s *Server) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.ended:
		s.ended <- nil
		return err
	}
}

// Close ends streams first, for nobody else would, then the other requests, and at last the
// consumer, which still sees what those committed.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	s.closing.Store(true)
	defer s.cancel()
	return errors.Join(s.feed.Close(), s.http.Shutdown(ctx), s.Consumer.Close(), s.wait())
}
