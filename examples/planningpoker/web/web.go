// Package web serves planning poker: a REST API for commands and queries, server-sent events that
// show a room as it changes, and the page that uses both. Errors are problem documents (RFC 9457).
//
//	POST /rooms                         open a room
//	POST /rooms/{id}/join, /leave,      commands of the visitor, whom a cookie identifies;
//	     /pick, /reveal, /refresh,      with ?wait=true the reply waits until queries show
//	     /kick                          the effect
//	GET  /rooms/{id}                    the room as the visitor may see it
//	GET  /rooms/{id}/users[/{userId}]   its users
//	GET  /rooms/{id}/history            its rounds that are revealed or over, the newest 50;
//	                                    ?before=51 selects those before a round
//	GET  /rooms/{id}/events             the room, now and whenever it changes; its visitor is
//	                                    present meanwhile
//	GET  /, /r/{id}, /static/...        the page
//	GET  /healthz, /readyz, /metrics    for operators
package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/internal/rest"
	"github.com/millrace-dev/millrace/examples/planningpoker/history"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/view"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/repository"
)

// Rooms executes commands. A *repository.Repository implements it.
type Rooms interface {
	Execute(context.Context, string, aggregate.Decision[room.Room], ...repository.Option) (repository.Aggregate[room.Room], error)
}

// Feed streams rooms as they change. A *live.Feed implements it.
type Feed interface {
	Serve(w http.ResponseWriter, r *http.Request, key string, show func(context.Context) (live.Update, error)) error
	Notify(key string)
}

// Config configures the API. All fields except SecureCookie and Logger are required.
type Config struct {
	Rooms Rooms
	View  *view.DAO
	Feed  Feed
	// History returns the newest rounds of a room before the given round, or the newest of all for
	// 0. See [history.Read].
	History func(ctx context.Context, roomID string, before int) ([]history.Round, error)
	// Wait waits until queries show an event of a room, or until ctx ends. Errors:
	// groups.ErrNotApplied.
	Wait func(ctx context.Context, roomID string, version uint64) error
	// Returns why commands or queries would fail.
	Ready   func(context.Context) error
	Metrics http.Handler
	Now     func() time.Time
	// SecureCookie makes browsers send the cookie over HTTPS only. Use it behind a proxy that
	// terminates TLS.
	SecureCookie bool
	// For errors that a visitor cannot fix. Default: slog.Default().
	Logger *slog.Logger
}

type api struct {
	Config
	mux *rest.Mux
}

// New returns a handler for all requests.
func New(config Config) http.Handler {
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	a := &api{Config: config, mux: rest.New(rest.Config{Explain: explain, Logger: config.Logger})}
	a.commands()
	a.queries()
	a.mux.Raw("GET /rooms/{id}/events", http.HandlerFunc(a.stream))
	// A stream without content would not end.
	a.mux.Handle("HEAD /rooms/{id}/events", a.existRoom)
	a.operations()
	page(a.mux)
	return secure(rest.SameOrigin(visit(a.mux, config.SecureCookie)))
}

func explain(err error) (status int, detail string, ok bool) {
	if errors.Is(err, errNotReady) { // the reason is only in the log
		return http.StatusServiceUnavailable, errNotReady.Error(), true
	}
	for status, reasons := range map[int][]error{
		http.StatusBadRequest:           {room.ErrInvalid, errNoVisitor},
		http.StatusForbidden:            {room.ErrNotMember},
		http.StatusNotFound:             {room.ErrNotFound, view.ErrNoUser},
		http.StatusConflict:             {room.ErrExists, room.ErrFull, room.ErrRevealed, room.ErrNoCards, room.ErrRoundOver, room.ErrNotThere, history.ErrTooLong},
		http.StatusGone:                 {room.ErrExpired},
		http.StatusUnsupportedMediaType: {errNotJSON},
	} {
		for _, reason := range reasons {
			if errors.Is(err, reason) {
				return status, err.Error(), true
			}
		}
	}
	return 0, "", false
}

// roomID returns the id in the path in its stored form, or room.ErrNotFound if it is not a ULID.
func roomID(r *http.Request) (string, error) {
	id, err := ulid.ParseStrict(r.PathValue("id"))
	if err != nil {
		return "", room.ErrNotFound
	}
	return id.String(), nil
}
