// Package api serves the order history example over HTTP. Commands go to the aggregates of the
// three services, queries to the order history.
//
//	POST /orders                                      a consumer places an order
//	POST /orders/{orderId}/revise                     also cancel
//	POST /tickets/{orderId}/accept                    the kitchen; also decline, prepare, ready
//	POST /deliveries/{orderId}/pick-up                the courier; also deliver
//	GET  /orders/{orderId}                            an order in the history
//	GET  /consumers/{consumerId}/orders               a consumer's orders, newest first, by page
//	GET  /consumers/{consumerId}/events               reports changes, as server-sent events
//	GET  /healthz, /readyz, /metrics                  for operators
//	GET  /, /openapi.yaml                             the page, and the description of the API
//
// Each request is checked against openapi.yaml first, and a route that is missing there cannot be
// registered. Every error is an application/problem+json document.
//
// The history follows the commands within a short time. The reply to a command has a version. An
// order in the history has the version of the last event of each service in it, so a client can
// compare them. With ?wait, the reply to a command is sent when the history shows its effect.
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

// History answers queries. A *history.OrderHistoryDao implements it.
type History interface {
	FindOrder(ctx context.Context, orderID string) (history.Order, error)
	FindOrderHistory(ctx context.Context, consumerID string, filter history.Filter) (history.Page, error)
}

// Feed reports changes of the orders of a consumer. A *live.Feed implements it.
type Feed interface {
	Serve(w http.ResponseWriter, r *http.Request, key string, show func(context.Context) (live.Update, error)) error
}

// Config configures the API. All fields except the last three are required.
type Config struct {
	Orders     policies.Service[order.Order]
	Tickets    policies.Service[ticket.Ticket]
	Deliveries policies.Service[delivery.Delivery]
	History    History
	Feed       Feed
	// WaitShown waits until the history shows an event; see service.Service.
	WaitShown func(ctx context.Context, id aggregate.ID, version uint64) error
	Ready     func(context.Context) error // returns why the process cannot serve
	Metrics   http.Handler

	// Logger logs errors that a client cannot fix. Default: slog.Default().
	Logger *slog.Logger
	Now    func() time.Time // default: time.Now
	NewID  func() string    // for ids of orders; default: random UUIDs
}

type server struct {
	Config
	mux         *rest.Mux
	description *description
}

// New returns the handler. An error means that the description is wrong.
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

// handle serves the requests of a pattern that the description allows.
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

// problems replies with the problem document for the error of a handler.
func (s *server) problems(serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil {
			s.mux.Problem(w, r, err)
		}
	})
}

// secure restricts the page to content of this server, and forbids other sites to frame it.
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
