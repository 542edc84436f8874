package web

import (
	"context"
	"net/http"
	"time"

	"github.com/millrace-dev/millrace/examples/internal/rest"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/examples/planningpoker/view"
)

// Room is a room as a visitor sees it.
type Room struct {
	RoomID    string    `json:"roomId"`
	Name      string    `json:"name"`
	Deck      []string  `json:"deck"`
	Round     int       `json:"round"`
	Revealed  bool      `json:"revealed"`
	ExpiresAt time.Time `json:"expiresAt"`
	Version   uint64    `json:"version"`
	You       string    `json:"you"`    // the visitor's user id
	Joined    bool      `json:"joined"` // whether the visitor is in the room
	Users     []User    `json:"users"`
}

// User is somebody who is in the room.
type User struct {
	UserID string `json:"userId"`
	Name   string `json:"name"`
	Picked bool   `json:"picked"`
	Card   string `json:"card,omitempty"` // one's own, or everybody's once revealed
}

func (a *api) queries() {
	a.mux.Handle("GET /rooms/{id}", a.getRoom)
	a.mux.Handle("HEAD /rooms/{id}", a.existRoom)
	a.mux.Handle("GET /rooms/{id}/users", a.getUsers)
	a.mux.Handle("GET /rooms/{id}/users/{userID}", a.getUser)
}

func (a *api) getRoom(r *http.Request) (rest.Reply, error) {
	document, err := a.seen(r)
	return rest.Reply{Body: document}, err
}

// seen is what the visitor may see of the room in the path. All of it comes from one query: whether
// cards are revealed is only known of the round in which they were picked.
func (a *api) seen(r *http.Request) (Room, error) {
	id, err := roomID(r)
	if err != nil {
		return Room{}, err
	}
	return a.document(r.Context(), id, you(r))
}

func (a *api) document(ctx context.Context, id, you string) (Room, error) {
	r, err := a.View.GetRoom(ctx, id)
	if err != nil {
		return Room{}, err
	}
	document := Room{
		RoomID: r.RoomID, Name: r.Name, Deck: r.Deck, Round: r.Round, Revealed: r.Revealed, ExpiresAt: r.ExpiresAt,
		Version: r.Version, You: you, Users: users(r.Users, you, r.Revealed),
	}
	for _, u := range r.Users {
		document.Joined = document.Joined || u.UserID == you
	}
	return document, nil
}

func (a *api) existRoom(r *http.Request) (rest.Reply, error) {
	id, err := roomID(r)
	if err != nil {
		return rest.Reply{}, err
	}
	exists, err := a.View.ExistRoom(r.Context(), id)
	if err == nil && !exists {
		err = room.ErrNotFound
	}
	return rest.Reply{}, err
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
		documents[i] = User{UserID: u.UserID, Name: u.Name, Picked: u.Card != ""}
		if revealed || u.UserID == you {
			documents[i].Card = u.Card
		}
	}
	return documents
}
