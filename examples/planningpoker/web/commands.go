package web

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/millrace-dev/millrace/examples/internal/rest"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

const defaultLifetime = 24 * time.Hour

var defaultDeck = []string{"1", "2", "3", "5", "8", "13", "21", "?", "☕"}

// patience is how long a POST with wait=true waits for the view.
const patience = 5 * time.Second

// errNotJSON also refuses forms of other sites: before a browser sends JSON to another site, it
// asks that site for permission.
var errNotJSON = errors.New("the body is not JSON, by its Content-Type: send application/json")

// These are the bodies of commands. Some commands need no body.
type (
	joining struct {
		Name string `json:"name"`
	}
	picking struct {
		Card string `json:"card"`
		// The round that the visitor saw; 0 for the current one.
		Round int `json:"round"`
	}
	ending struct {
		Round int `json:"round"` // as in picking
	}
	refreshing struct {
		Round int    `json:"round"` // as in picking
		Title string `json:"title"` // title of the next round's story
	}
	kicking struct {
		UserID string `json:"userId"`
	}
	nothing struct{}
)

func (a *api) commands() {
	a.mux.Handle("POST /rooms", a.open)
	a.mux.Handle("POST /rooms/{id}/join", command(a, func(user string, b joining, now time.Time) room.Decision {
		return room.Join(user, strings.TrimSpace(b.Name), now)
	}))
	a.mux.Handle("POST /rooms/{id}/leave", command(a, func(user string, _ nothing, now time.Time) room.Decision {
		return room.Leave(user, now)
	}))
	a.mux.Handle("POST /rooms/{id}/pick", command(a, func(user string, b picking, now time.Time) room.Decision {
		return room.Pick(user, b.Card, b.Round, now)
	}))
	a.mux.Handle("POST /rooms/{id}/reveal", command(a, func(user string, b ending, now time.Time) room.Decision {
		return room.Reveal(user, b.Round, now)
	}))
	a.mux.Handle("POST /rooms/{id}/refresh", command(a, func(user string, b refreshing, now time.Time) room.Decision {
		return room.Refresh(user, b.Round, b.Title, now)
	}))
	a.mux.Handle("POST /rooms/{id}/kick", command(a, func(user string, b kicking, now time.Time) room.Decision {
		return room.Kick(b.UserID, user, now)
	}))
}

// command returns the handler of a command in a room.
func command[B any](a *api, decide func(user string, body B, now time.Time) room.Decision) func(*http.Request) (rest.Reply, error) {
	return func(r *http.Request) (rest.Reply, error) {
		id, err := roomID(r)
		if err != nil {
			return rest.Reply{}, err
		}
		var body B
		if err := decode(r, &body); err != nil {
			return rest.Reply{}, err
		}
		user, err := requireUser(r)
		if err != nil {
			return rest.Reply{}, err
		}
		version, status, err := a.execute(r, id, decide(user, body, a.Now()), http.StatusOK)
		return rest.Reply{Status: status, Body: struct {
			Version uint64 `json:"version"`
		}{version}}, err
	}
}

func (a *api) open(r *http.Request) (rest.Reply, error) {
	var body struct {
		Name            string   `json:"name"`
		RoomID          string   `json:"roomId"`
		Title           string   `json:"title"` // title of the first round's story
		Deck            []string `json:"deck"`
		LifetimeMinutes int64    `json:"lifetimeMinutes"`
	}
	if err := decode(r, &body); err != nil {
		return rest.Reply{}, err
	}
	// Anyone with the id can join, so it must not be guessable.
	id := ulid.MustNew(ulid.Now(), rand.Reader)
	if body.RoomID != "" {
		var err error
		if id, err = ulid.ParseStrict(body.RoomID); err != nil {
			return rest.Reply{}, rest.BadRequest("roomId: %w", err)
		}
	}
	if len(body.Deck) == 0 {
		body.Deck = defaultDeck
	}
	lifetime := defaultLifetime
	switch minutes := body.LifetimeMinutes; {
	case minutes < 0 || minutes > math.MaxInt64/int64(time.Minute): // the product would overflow
		lifetime = math.MaxInt64 // room.Open refuses it as too long
	case minutes > 0:
		lifetime = time.Duration(minutes) * time.Minute
	}
	opening := room.Open(strings.TrimSpace(body.Name), body.Title, body.Deck, lifetime, a.Now())
	version, status, err := a.execute(r, id.String(), opening, http.StatusCreated)
	return rest.Reply{Status: status, Location: "/rooms/" + id.String(), Body: struct {
		RoomID  string `json:"roomId"`
		Version uint64 `json:"version"`
	}{id.String(), version}}, err
}

// execute returns the version of the room after a command. If the client wants to wait, the status
// says whether queries show that version.
func (a *api) execute(r *http.Request, id string, decide room.Decision, success int) (version uint64, status int, err error) {
	wait := r.URL.Query().Get("wait")
	if wait != "" && wait != "true" && wait != "false" {
		return 0, 0, rest.BadRequest("wait is true or false, not %q", wait)
	}
	done, err := a.Rooms.Execute(r.Context(), id, decide)
	if err != nil || wait != "true" {
		return done.Version, success, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	if err := a.Wait(ctx, id, done.Version); err != nil {
		// The command was executed. A view that does not show it yet is not an error of the
		// command.
		if !errors.Is(err, groups.ErrNotApplied) {
			a.Logger.Error("Could not wait for the view", "room", id, "version", done.Version, "error", err)
		}
		return done.Version, http.StatusAccepted, nil
	}
	return done.Version, success, nil
}

// decode reads a JSON document, or none.
func decode(r *http.Request, body any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return errNotJSON
	}
	if err := rest.Decode(r, body); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
