package story

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/examples/orderhistory/api"
	"github.com/millrace-dev/millrace/examples/orderhistory/service"
	"github.com/millrace-dev/millrace/live"
)

// serve runs the REST API on this machine, on its own connection, and returns a client for it.
func (c *consumers) serve(ctx context.Context) (client *apiClient, stop func() error, err error) {
	database, _ := c.throttler.connect(c.client)
	s, err := service.Open(ctx, database, c.config)
	if err != nil {
		return nil, nil, err
	}
	handler, err := api.New(api.Config{
		Orders: s.Orders, Tickets: s.Tickets, Deliveries: s.Deliveries, History: s.History, WaitShown: s.WaitShown,
		Feed: noFeed{}, Ready: s.Answers, Metrics: http.NotFoundHandler(), Now: placing(),
		Logger: slog.New(slog.DiscardHandler), // the actors report errors
	})
	if err != nil {
		return nil, nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	if err := s.Serve(listener, &http.Server{Handler: handler, ReadHeaderTimeout: patience}); err != nil {
		return nil, nil, errors.Join(err, listener.Close())
	}
	end, err := s.Start(context.WithoutCancel(ctx))
	if err != nil {
		return nil, nil, err
	}
	client = &apiClient{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, base: "http://" + listener.Addr().String()}
	return client, func() error {
		client.http.CloseIdleConnections()
		return end()
	}, nil
}

// placing returns a clock for placing orders: minutes apart, and some in the same millisecond.
func placing() func() time.Time {
	opening := time.Date(2024, 5, 1, 11, 0, 0, 0, time.UTC)
	var placed atomic.Int64
	return func() time.Time { return opening.Add(time.Duration(placed.Add(1)/3) * 7 * time.Minute) }
}

// noFeed is a feed without events, for an API without watchers.
type noFeed struct{}

func (noFeed) Serve(http.ResponseWriter, *http.Request, string, func(context.Context) (live.Update, error)) error {
	return errors.New("there are no events")
}
