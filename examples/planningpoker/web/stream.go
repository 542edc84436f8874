package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/view"
	"github.com/millrace-dev/millrace/live"
)

// stream sends a room, now and after each change, until the room has expired. Its visitor is
// present meanwhile.
func (a *api) stream(w http.ResponseWriter, r *http.Request) {
	id, err := roomID(r)
	if err != nil {
		a.mux.Problem(w, r, err)
		return
	}
	seen := false
	err = a.Feed.Serve(w, r, id, func(ctx context.Context) (live.Update, error) {
		v, err := a.view(ctx, id)
		switch {
		case err == nil:
			seen = true
			a.attend(ctx, v, currentUser(r))
			return live.Update{Name: "room", ID: strconv.FormatUint(v.Version, 10), Data: document(v, currentUser(r))}, nil
		case seen && (errors.Is(err, room.ErrExpired) || errors.Is(err, room.ErrNotFound)):
			return live.Update{Name: "gone", Data: map[string]string{"detail": err.Error()}, Last: true}, nil
		}
		return live.Update{}, err
	})
	if err != nil {
		a.mux.Problem(w, r, err)
	}
}

// attend records that a visitor is present, and notifies the other streams if that is new. Failures
// are only logged.
func (a *api) attend(ctx context.Context, v view.Room, you string) {
	arrived, err := a.View.Attend(ctx, v, you)
	if err != nil && ctx.Err() == nil {
		a.Logger.Warn("Could not record who is present", "room", v.RoomID, "error", err)
	}
	if arrived {
		a.Feed.Notify(v.RoomID)
	}
}
