// Package consistency lets HTTP clients read their own writes. The reply to a command has a
// consistency token in a header: the versions of the aggregates that were written. The client sends
// the token with its next queries. These wait until the read model has applied the writes.
//
//	order, err := orders.Execute(r.Context(), id, place)
//	consistency.Set(w, order.Token()) // before the body is written
//
//	wait := func(ctx context.Context, t aggregate.Token) error {
//		return groups.New(j).WaitToken(ctx, "order-history", t)
//	}
//	mux.Handle("GET /orders/", consistency.Middleware(wait, consistency.Config{})(queries))
//
// A query without the header does not wait. In a millrace.App, App.Consistent returns the
// middleware.
//
// If the projection makes no writes for an event, the position of the event is stored later, after
// up to subscriber.Timing.CommitInterval. A query with the token of such an event waits for that:
// up to 1 second, or up to 100 ms for the projections of a millrace.App.
package consistency

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Header is the name of the HTTP header for tokens, in the reply to a command and in queries.
const Header = "Consistency-Token"

// Set sets the header of a reply to a token. It does nothing for an empty token.
func Set(w http.ResponseWriter, token aggregate.Token) {
	if len(token) > 0 {
		w.Header().Set(Header, token.String())
	}
}

// Config configures a [Middleware].
type Config struct {
	// Timeout limits the time that a query waits. Default: 2 seconds.
	Timeout time.Duration
	// Topics are the aggregate types from which the read model is built. The parts of a token for
	// other types are ignored. Default: all types.
	Topics []string
	// MaxAggregates is the maximum number of aggregates of these types in a token. A client can
	// name up to 100, and each costs two read units or more (groups.Groups.WaitToken). Raise it if
	// one command writes to more of them. Default: 20.
	MaxAggregates int
	// OnError, if set, is called with the error of a wait before the reply, for a log or a metric.
	// It is also called with a [*TooManyAggregatesError].
	OnError func(r *http.Request, err error)
}

// TooManyAggregatesError reports that a token names more Aggregates than the Limit
// [Config].MaxAggregates. The client has made the token up, or one of its commands writes to that
// many.
type TooManyAggregatesError struct{ Aggregates, Limit int }

func (e *TooManyAggregatesError) Error() string {
	return fmt.Sprintf("the consistency token names %d aggregates, and a query waits for %d at most: send the token of fewer commands, or raise MaxAggregates",
		e.Aggregates, e.Limit)
}

// Middleware returns a middleware that calls wait for each request with a token, and then the
// handler. It replies with status 400 to an invalid token, and to one that names more aggregates
// than [Config].MaxAggregates. If wait fails, for example because the read model is late, it
// replies with status 503 and Retry-After: 1. The client may repeat the query, with or without the
// token.
func Middleware(wait func(context.Context, aggregate.Token) error, config Config) func(http.Handler) http.Handler {
	if config.Timeout == 0 {
		config.Timeout = 2 * time.Second
	}
	if config.MaxAggregates == 0 {
		config.MaxAggregates = 20
	}
	if config.OnError == nil {
		config.OnError = func(*http.Request, error) {}
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, err := config.token(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			if len(token) > 0 {
				if err := waitAtMost(r.Context(), config.Timeout, wait, token); err != nil {
					config.OnError(r, err)
					w.Header().Set("Retry-After", "1")
					http.Error(w, "your changes are not visible yet: try again", http.StatusServiceUnavailable)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// token returns the part of the token of a request for which the query has to wait.
func (c Config) token(r *http.Request) (aggregate.Token, error) {
	token, err := aggregate.ParseToken(r.Header.Get(Header))
	if err != nil {
		return nil, err
	}
	if len(c.Topics) > 0 {
		token = token.Of(c.Topics...)
	}
	if len(token) > c.MaxAggregates {
		err := &TooManyAggregatesError{len(token), c.MaxAggregates}
		c.OnError(r, err)
		return nil, err
	}
	return token, nil
}

func waitAtMost(ctx context.Context, patience time.Duration, wait func(context.Context, aggregate.Token) error, token aggregate.Token) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return wait(ctx, token)
}
