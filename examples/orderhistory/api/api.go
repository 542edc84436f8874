// Package api serves orders over HTTP: commands go to the aggregates, queries to the order history.
//
//	POST /orders                      place an order
//	POST /orders/{id}/approve         and revise, cancel, pick-up, deliver
//	GET  /orders/{id}                 an order in the history
//	GET  /consumers/{id}/orders       a consumer's orders, newest first, by page
//
// Every error is an application/problem+json document. The history follows the commands within
// moments; the version in the reply to a command tells when it has: an order in the history has the version of the
// last event that it was told.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/repository"
)

// Orders takes commands. A repository of orders is one.
type Orders interface {
	Execute(ctx context.Context, id string, decide order.Decision, options ...repository.Option) (repository.Aggregate[order.Order], error)
}

// History answers queries. A history.DAO is one.
type History interface {
	FindOrder(ctx context.Context, orderID string) (history.Order, error)
	FindOrderHistory(ctx context.Context, consumerID string, filter history.Filter) (history.Page, error)
}

// Config configures the API. Orders and History are required.
type Config struct {
	Orders  Orders
	History History
	Logger  *slog.Logger     // of errors that a client can do nothing about; default: slog.Default()
	Now     func() time.Time // default: time.Now
	NewID   func() string    // of orders; default: random UUIDs
}

type server struct {
	Config
	mux *http.ServeMux
}

// New gives the handler.
func New(config Config) http.Handler {
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.NewID == nil {
		config.NewID = uuid.NewString
	}
	s := &server{Config: config, mux: http.NewServeMux()}
	s.handle("POST /orders", s.create)
	s.handle("POST /orders/{id}/approve", s.command(decision(order.Approve())))
	s.handle("POST /orders/{id}/revise", s.command(revise))
	s.handle("POST /orders/{id}/cancel", s.command(cancel))
	s.handle("POST /orders/{id}/pick-up", s.command(decision(order.PickUp())))
	s.handle("POST /orders/{id}/deliver", s.command(decision(order.Deliver())))
	s.handle("GET /orders/{id}", s.findOrder)
	s.handle("GET /consumers/{id}/orders", s.findOrders)
	return s
}

// requestTimeout bounds what one request does. It is longer than the journal tries again when it is throttled.
const requestTimeout = 30 * time.Second

// handle serves what a function replies, or the problem that it has.
func (s *server) handle(pattern string, reply func(*http.Request) (reply, error)) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		answer, err := reply(r)
		if err != nil {
			s.problem(w, r, err)
			return
		}
		answer.write(w)
	})
}

// ServeHTTP makes the mux's own refusals problems too.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler, pattern := s.mux.Handler(r)
	if pattern != "" {
		s.mux.ServeHTTP(w, r) // which fills in the path values
		return
	}
	refusal := &statusOnly{ResponseWriter: w}
	handler.ServeHTTP(refusal, r)
	writeProblem(w, refusal.status, "there is nothing at "+r.Method+" "+r.URL.Path)
}

// statusOnly lets headers through and keeps the status from being written.
type statusOnly struct {
	http.ResponseWriter
	status int
}

func (w *statusOnly) WriteHeader(status int)      { w.status = status }
func (w *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
