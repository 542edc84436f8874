package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace-dev/millrace/examples/internal/rest"
)

// readiness limits the wait of the readiness check for the database.
const readiness = 3 * time.Second

var errNotReady = errors.New("not ready, the log says why")

func (a *api) operations() {
	a.mux.Handle("GET /healthz", func(*http.Request) (rest.Reply, error) {
		return rest.Reply{Body: map[string]string{"status": "alive"}}, nil
	})
	a.mux.Handle("GET /readyz", func(r *http.Request) (rest.Reply, error) {
		ctx, cancel := context.WithTimeout(r.Context(), readiness)
		defer cancel()
		if err := a.Ready(ctx); err != nil {
			return rest.Reply{}, fmt.Errorf("%w: %w", errNotReady, err)
		}
		return rest.Reply{Body: map[string]string{"status": "ready"}}, nil
	})
	a.mux.Raw("GET /metrics", a.Metrics)
}
