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
// up to subscriber.Config.CommitInterval. A query with the token of such an event waits for that:
// up to 1 second, or up to 100 ms for the projections of a millrace.App.
package consistency

import (
	"context"
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
	// OnError, if set, is called with the error of a wait before the reply, for a log or a metric.
	OnError func(r *http.Request, err error)
}

// Middleware returns a middleware that calls wait for each request with a token, and then the
// handler. It replies with status 400 to an invalid token. If wait fails, for example because the
// read model is late, it replies with status 503 and Retry-After: 1. The client may repeat the
// query, with or without the token.
func Middleware(wait func(context.Context, aggregate.Token) error, config Config) func(http.Handler) http.Handler {
	if config.Timeout == 0 {
		config.Timeout = 2 * time.Second
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token, err := aggregate.ParseToken(r.Header.Get(Header))
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			if len(config.Topics) > 0 {
				token = token.Of(config.Topics...)
			}
			if len(token) > 0 {
				if err := waitAtMost(r.Context(), config.Timeout, wait, token); err != nil {
					if config.OnError != nil {
						config.OnError(r, err)
					}
					w.Header().Set("Retry-After", "1")
					http.Error(w, "your changes are not visible yet: try again", http.StatusServiceUnavailable)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

func waitAtMost(ctx context.Context, patience time.Duration, wait func(context.Context, aggregate.Token) error, token aggregate.Token) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return wait(ctx, token)
}
