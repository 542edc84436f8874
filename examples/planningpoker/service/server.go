package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/millrace-dev/millrace/examples/internal/loopback"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/web"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

// Server is a process that serves rooms: the API, the page, the feed and the projection of the
// view.
type Server struct {
	*Service
	Projection *projection.Projection
	url        string
	stop       func() error
}

// Start opens the service and serves it until the context ends or Close is called. It returns when
// all parts run. It returns an error if a part cannot start, or if the context ends before that.
func Start(ctx context.Context, client journal.Client, config Config) (*Server, error) {
	service, err := Open(ctx, client, config)
	if err != nil {
		return nil, err
	}
	s := &Server{Service: service}
	if s.Projection, err = s.Consume(ViewGroup); err != nil {
		return nil, err
	}
	if s.url, err = s.Listen(ctx); err != nil {
		return nil, err
	}
	if s.stop, err = s.App.Start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// URL returns the URL of the server.
func (s *Server) URL() string { return s.url }

// Wait waits until the server has stopped, and returns the error of the part that failed, if any.
func (s *Server) Wait() error {
	<-s.Stopped()
	return s.stop()
}

// Close stops the server, and returns the error of [Server.Wait].
func (s *Server) Close() error { return s.stop() }

// Listen makes the service serve the API and the page, and returns the URL. Its metrics are those
// of the parts that were added to the App before.
func (s *Service) Listen(ctx context.Context) (url string, err error) {
	feed, err := s.newFeed()
	if err != nil {
		return "", err
	}
	registry := prometheus.NewRegistry()
	for _, collector := range metrics.Collectors(s.Components()) {
		if err := registry.Register(collector); err != nil {
			return "", err
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.config.Address)
	if err != nil {
		return "", err
	}
	api := web.New(web.Config{
		Rooms: s.Rooms, View: s.View, Feed: feed, History: s.History, Wait: s.WaitShown, Ready: s.Ready, Now: s.config.Now,
		SecureCookie: s.config.SecureCookie, Logger: s.config.Logger, Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
	})
	handler, endTails, err := s.withConsole(listener.Addr(), api)
	if err != nil {
		return "", errors.Join(err, listener.Close())
	}
	server := &http.Server{
		Handler:           loopback.Guard(listener.Addr(), handler, s.config.Host),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelWarn),
	}
	server.RegisterOnShutdown(endTails)
	if err = s.Serve(listener, server); err != nil {
		return "", errors.Join(err, listener.Close())
	}
	return "http://" + listener.Addr().String(), nil
}

// newFeed returns the feed of changed rooms, for the streams of this process.
func (s *Service) newFeed() (*live.Feed, error) {
	return s.Live(live.Config{
		Group: ViewGroup, Topics: []string{room.Definition.Type()},
		Key: func(ctx context.Context, r *journal.Record) (string, error) {
			// After an error, watchers are notified too early, and query again at the next refresh.
			_ = s.View.WaitConsistent(ctx, r.Aggregate.Value, r.Number)
			return r.Aggregate.Value, nil
		},
		Hint: func(r *journal.Record) string { return r.Aggregate.Value },
		Subscriber: subscriber.BroadcastConfig{
			PollInterval: pollInterval, MaxPollInterval: maxPollInterval, TrailingDelay: trailingDelay,
		},
	})
}
