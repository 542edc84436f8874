package millrace

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Running returns a channel that is closed when everything has started. Then the process has joined
// the consumer groups of its handlers, so package groups finds them. There are two exceptions: read
// models join their groups later, and the App waits at most 30 seconds for a group that cannot be
// joined. Its handler logs errors and tries again.
func (a *App) Running() <-chan struct{} { return a.running }

// Stopped returns a channel that is closed when [App.Run] has ended.
func (a *App) Stopped() <-chan struct{} { return a.stopped }

// Ready returns nil if the App has started, is not stopping, and can read the journal. It costs one
// read unit. Errors: [ErrNotRunning] and those of journal.Journal.Version.
func (a *App) Ready(ctx context.Context) error {
	select {
	case <-a.running:
	default:
		return ErrNotRunning
	}
	if a.stopping.Load() {
		return ErrNotRunning
	}
	// No aggregate has this id.
	_, err := a.journal.Version(ctx, aggregate.ID{Type: "millrace", Value: "ready"})
	if errors.Is(err, journal.ErrNotFound) {
		return nil
	}
	return err
}

// readyTimeout is the time that a readiness check waits for the journal.
const readyTimeout = 2 * time.Second

// ReadyHandler returns an HTTP handler for readiness checks. It replies 200 if [App.Ready] returns
// nil within two seconds. Otherwise it replies 503 and logs the error.
func (a *App) ReadyHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := a.Ready(ctx); err != nil {
			if errors.Is(err, ErrNotRunning) {
				a.config.Logger.Debug("The app is not ready", watermill.LogFields{"reason": err})
			} else {
				a.config.Logger.Error("The app is not ready", err, nil)
			}
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
}
