package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/millrace-dev/millrace/examples/internal/live"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
)

// stream shows a room, now and after each change, until it is gone.
func (a *api) stream(w http.ResponseWriter, r *http.Request) {
	id, err := roomID(r)
	if err != nil {
		a.mux.Problem(w, r, err)
		return
	}
	seen := false
	err = a.Feed.Serve(w, r, id, func(ctx context.Context) (live.Event, error) {
		document, err := a.document(ctx, id, you(r))
		switch {
		case err == nil:
			seen = true
			return live.Event{Name: "room", ID: strconv.FormatUint(document.Version, 10), Data: document}, nil
		case seen && (errors.Is(err, room.ErrExpired) || errors.Is(err, room.ErrNotFound)):
			return live.Event{Name: "gone", Data: map[string]string{"detail": err.Error()}, Last: true}, nil
		}
		return live.Event{}, err
	})
	if err != nil {
		a.mux.Problem(w, r, err)
	}
}
