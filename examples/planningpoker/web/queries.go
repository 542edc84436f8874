package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/examples/internal/rest"
	"github.com/millrace-dev/millrace/examples/planningpoker/history"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/view"
)

// Room is a room as a visitor sees it.
type Room struct {
	RoomID    string    `json:"roomId"`
	Name      string    `json:"name"`
	Deck      []string  `json:"deck"`
	Round     int       `json:"round"`
	Title     string    `json:"title"` // title of the round's story
	Revealed  bool      `json:"revealed"`
	ExpiresAt time.Time `json:"expiresAt"`
	EndsSoon  bool      `json:"endsSoon"` // in 10 minutes at most
	Version   uint64    `json:"version"`
	You       string    `json:"you"`    // the visitor's user id
	Joined    bool      `json:"joined"` // whether the visitor is in the room
	Users     []User    `json:"users"`
}

// User is a current user of the room.
type User struct {
	UserID string `json:"userId"`
	Name   string `json:"name"`
	// Whether the user has a page open, or had one less than a minute ago.
	Present bool `json:"present"`
	Picked  bool `json:"picked"`
	// The visitor's own card, or the card of any user once revealed.
	Card string `json:"card,omitempty"`
}

// History is a page of the rounds of a room that are revealed or over, the newest first. It does
// not contain cards that were not revealed.
type History struct {
	Rounds []history.Round `json:"rounds"`
	Older  string          `json:"older,omitempty"` // the path of the next page
}

func (a *api) queries() {
	a.mux.Handle("GET /rooms/{id}", a.getRoom)
	a.mux.Handle("HEAD /rooms/{id}", a.existRoom)
	a.mux.Handle("GET /rooms/{id}/history", a.getHistory)
	a.mux.Handle("GET /rooms/{id}/users", a.getUsers)
	a.mux.Handle("GET /rooms/{id}/users/{userID}", a.getUser)
}

func (a *api) getRoom(r *http.Request) (rest.Reply, error) {
	document, err := a.seen(r)
	return rest.Reply{Body: document}, err
}

// seen returns the parts of the room in the path that the visitor may see.
func (a *api) seen(r *http.Request) (Room, error) {
	id, err := roomID(r)
	if err != nil {
		return Room{}, err
	}
	v, err := a.view(r.Context(), id)
	if err != nil {
		return Room{}, err
	}
	return document(v, currentUser(r)), nil
}

func (a *api) view(ctx context.Context, id string) (view.Room, error) {
	v, err := a.View.GetRoom(ctx, id)
	if errors.Is(err, room.ErrNotFound) {
		err = a.missing(ctx, id)
	}
	return v, err
}

// missing returns [room.ErrExpired] if the journal has the room, and otherwise [room.ErrNotFound].
// The rows of the view are deleted some time after the room has expired; the journal keeps it.
func (a *api) missing(ctx context.Context, id string) error {
	_, err := a.Rooms.Execute(ctx, id, room.Visit(a.Now()))
	return cmp.Or(err, room.ErrNotFound)
}

// document returns the parts of a room that a user may see. All of it comes from one query, so that
// cards are shown only if they were revealed in the same round.
func document(v view.Room, you string) Room {
	return Room{
		RoomID: v.RoomID, Name: v.Name, Deck: v.Deck, Round: v.Round, Title: v.Title, Revealed: v.Revealed, ExpiresAt: v.ExpiresAt,
		EndsSoon: v.EndsSoon, Version: v.Version, You: you, Users: users(v.Users, you, v.Revealed),
		Joined: slices.ContainsFunc(v.Users, func(u view.User) bool { return u.UserID == you }),
	}
}

func (a *api) existRoom(r *http.Request) (rest.Reply, error) {
	_, err := a.existing(r)
	return rest.Reply{}, err
}

// existing returns the id of the room in the path, if the room exists and has not expired.
func (a *api) existing(r *http.Request) (string, error) {
	id, err := roomID(r)
	if err != nil {
		return "", err
	}
	exists, err := a.View.ExistRoom(r.Context(), id)
	if err == nil && !exists {
		err = a.missing(r.Context(), id)
	}
	return id, err
}

func (a *api) getHistory(r *http.Request) (rest.Reply, error) {
	before := 0
	if text := r.URL.Query().Get("before"); text != "" {
		var err error
		if before, err = strconv.Atoi(text); err != nil || before < 1 {
			return rest.Reply{}, rest.BadRequest("before is the number of a round, not %q", text)
		}
	}
	id, err := a.existing(r)
	if err != nil {
		return rest.Reply{}, err
	}
	rounds, err := a.History(r.Context(), id, before)
	if err != nil {
		return rest.Reply{}, err
	}
	document := History{Rounds: append([]history.Round{}, rounds...)}
	if n := len(rounds); n > 0 && rounds[n-1].Number > 1 {
		document.Older = fmt.Sprintf("/rooms/%s/history?before=%d", id, rounds[n-1].Number)
	}
	return rest.Reply{Body: document}, nil
}

func (a *api) getUsers(r *http.Request) (rest.Reply, error) {
	document, err := a.seen(r)
	return rest.Reply{Body: map[string]any{"users": document.Users}}, err
}

func (a *api) getUser(r *http.Request) (rest.Reply, error) {
	document, err := a.seen(r)
	if err != nil {
		return rest.Reply{}, err
	}
	for _, u := range document.Users {
		if u.UserID == r.PathValue("userID") {
			return rest.Reply{Body: u}, nil
		}
	}
	return rest.Reply{}, view.ErrNoUser
}

func users(all []view.User, you string, revealed bool) []User {
	documents := make([]User, len(all))
	for i, u := range all {
		documents[i] = User{UserID: u.UserID, Name: u.Name, Present: u.Present, Picked: u.Card != ""}
		if revealed || u.UserID == you {
			documents[i].Card = u.Card
		}
	}
	return documents
}
