// Package consistency lets HTTP clients read what they have written. The reply to a command has a
// consistency token in a header. The client sends it with its next queries, and these wait until
// the read model shows the write:
//
//	order, err := orders.Execute(r.Context(), id, place)
//	consistency.Set(w, order.Token()) // before the body is written
//
//	wait := func(ctx context.Context, t aggregate.Token) error { return groups.New(j).WaitToken(ctx, "order-history", t) }
//	mux.Handle("GET /orders/", consistency.Middleware(wait, consistency.Config{})(queries))
//
// A query without the header does not wait. An event that the projection has no reaction to shows
// within subscriber.Config.CommitInterval: 1 second, or 100 ms for the projections of a
// millrace.App, which makes the middleware with App.Consistent.
package consistency

import (
	"context"
	"net/http"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Header is the header of the reply to a command, and of the queries after it.
const Header = "Consistency-Token"

// Set puts a token into the header of a reply. An empty token sets nothing.
func Set(w http.ResponseWriter, token aggregate.Token) {
	if len(token) > 0 {
		w.Header().Set(Header, token.String())
	}
}

// Config configures a [Middleware].
type Config struct {
	// Timeout is how long a query waits, at most. Default: 2 seconds.
	Timeout time.Duration
	// Topics are the aggregate types that the read model is built from. The parts of a token for
	// other types are ignored. Default: all types.
	Topics []string
	// OnError is called with the error of a wait, before the reply, for a log or a metric.
	// Default: nothing.
	OnError func(r *http.Request, err error)
}

// Middleware makes each request with a token wait until wait returns. A token that cannot be parsed
// is answered with status 400. If the wait fails, for example because the read model is late, the
// answer is 503 with Retry-After: 1. The client may send the query again, with the token or without
// it.
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
					http.Error(w, "what you have written does not show yet: try again", http.StatusServiceUnavailable)
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
