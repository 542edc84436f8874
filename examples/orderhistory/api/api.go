// Package api serves the order history example over HTTP: commands go to the aggregates of the
// three services, queries to the order history.
//
//	POST /orders                                      a consumer places an order
//	POST /orders/{orderId}/revise                     and cancel
//	POST /tickets/{orderId}/accept                    the kitchen; decline, prepare, ready
//	POST /deliveries/{orderId}/pick-up                the courier; deliver
//	GET  /orders/{orderId}                            an order in the history
//	GET  /consumers/{consumerId}/orders               a consumer's orders, newest first, by page
//	GET  /consumers/{consumerId}/events               says when they have changed, as server-sent events
//	GET  /healthz, /readyz, /metrics                  for those who operate it
//	GET  /, /openapi.yaml                             the page for people, and the description of all this for programs
//
// openapi.yaml is more than a description: a request is checked against it before anything else
// looks at it, and a route that it lacks cannot be made. Every error is an application/problem+json
// document.
//
// The history follows the commands within moments. The version in the reply to a command shows when
// it has: an order in the history has the version of the last event of each service that it was
// told. With ?wait a command is answered once the history shows it.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/internal/rest"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/policies"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/examples/orderhistory/web"
	"github.com/millrace-dev/millrace/live"
)

// History answers queries. A history.OrderHistoryDao is one.
type History interface {
	FindOrder(ctx context.Context, orderID string) (history.Order, error)
	FindOrderHistory(ctx context.Context, consumerID string, filter history.Filter) (history.Page, error)
}

// Feed notifies when the orders of a consumer have changed. A live.Feed is one.
type Feed interface {
	Serve(w http.ResponseWriter, r *http.Request, key string, show func(context.Context) (live.Event, error)) error
}

// Config configures the API. All but the last three are required.
type Config struct {
	Orders     policies.Service[order.Order]
	Tickets    policies.Service[ticket.Ticket]
	Deliveries policies.Service[delivery.Delivery]
	History    History
	Feed       Feed
	// WaitShown waits until the history shows an event, see service.Service.
	WaitShown func(ctx context.Context, id aggregate.ID, version uint64) error
	Ready     func(context.Context) error // why the process cannot serve, nil if it can
	Metrics   http.Handler

	Logger *slog.Logger     // of errors that a client can do nothing about; default: slog.Default()
	Now    func() time.Time // default: time.Now
	NewID  func() string    // of orders; default: random UUIDs
}

type server struct {
	Config
	mux         *rest.Mux
	description *description
}

// New returns the handler. An error is a fault in the description.
func New(config Config) (http.Handler, error) {
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.NewID == nil {
		config.NewID = uuid.NewString
	}
	d, err := describe()
	if err != nil {
		return nil, err
	}
	s := &server{Config: config, mux: rest.New(rest.Config{Explain: explain, Logger: config.Logger}), description: d}
	for pattern, reply := range map[string]func(*http.Request) (rest.Reply, error){
		"POST /orders":                       s.create,
		"POST /orders/{orderId}/revise":      command(s, s.Orders, order.Definition, revise),
		"POST /orders/{orderId}/cancel":      command(s, s.Orders, order.Definition, withReason(order.Cancel)),
		"POST /tickets/{orderId}/accept":     command(s, s.Tickets, ticket.Definition, always(ticket.Accept)),
		"POST /tickets/{orderId}/decline":    command(s, s.Tickets, ticket.Definition, withReason(ticket.Decline)),
		"POST /tickets/{orderId}/prepare":    command(s, s.Tickets, ticket.Definition, always(ticket.Prepare)),
		"POST /tickets/{orderId}/ready":      command(s, s.Tickets, ticket.Definition, always(ticket.Finish)),
		"POST /deliveries/{orderId}/pick-up": command(s, s.Deliveries, delivery.Definition, always(delivery.PickUp)),
		"POST /deliveries/{orderId}/deliver": command(s, s.Deliveries, delivery.Definition, always(delivery.Deliver)),
		"GET /orders/{orderId}":              s.findOrder,
		"GET /consumers/{consumerId}/orders": s.findOrderHistory,
		"GET /healthz":                       s.health,
		"GET /readyz":                        s.readiness,
	} {
		if err := s.handle(pattern, reply); err != nil {
			return nil, err
		}
	}
	for pattern, handler := range map[string]http.Handler{
		"GET /consumers/{consumerId}/events": s.problems(s.events),
		"GET /metrics":                       config.Metrics,
		"GET /openapi.yaml":                  http.HandlerFunc(serveDescription),
		"GET /{$}":                           web.Page(),
		"GET /static/{file}":                 web.Files(),
	} {
		if err := s.raw(pattern, handler); err != nil {
			return nil, err
		}
	}
	if err := d.complete(); err != nil {
		return nil, err
	}
	return secure(rest.SameOrigin(s.mux)), nil
}

// handle serves the requests that the description allows.
func (s *server) handle(pattern string, reply func(*http.Request) (rest.Reply, error)) error {
	check, err := s.description.operation(pattern)
	if err != nil {
		return err
	}
	s.mux.Handle(pattern, func(r *http.Request) (rest.Reply, error) {
		if err := check(r); err != nil {
			return rest.Reply{}, err
		}
		return reply(r)
	})
	return nil
}

func (s *server) raw(pattern string, handler http.Handler) error {
	check, err := s.description.operation(pattern)
	if err != nil {
		return err
	}
	s.mux.Raw(pattern, s.problems(func(w http.ResponseWriter, r *http.Request) error {
		if err := check(r); err != nil {
			return err
		}
		handler.ServeHTTP(w, r)
		return nil
	}))
	return nil
}

// problems replies with the problem that a handler has.
func (s *server) problems(serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil {
			s.mux.Problem(w, r, err)
		}
	})
}

// secure lets the page load nothing that is not of this server, and nobody frame it.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}
