package room

import (
	"slices"
	"time"
)

type (
	// Opened records that a room was opened.
	Opened struct {
		Name string `json:"name"`
		// The title of the first round's story; empty for none.
		Title     string    `json:"title"`
		Deck      []string  `json:"deck"`
		ExpiresAt time.Time `json:"expiresAt"`
	}
	// Joined records that a user has joined. The data about the user expires with the room, at
	// ExpiresAt.
	Joined struct {
		UserID    string    `json:"userId"`
		Name      string    `json:"name"`
		ExpiresAt time.Time `json:"expiresAt"`
	}
	// Left records that a user has left.
	Left struct {
		UserID string `json:"userId"`
	}
	// Picked records that a member has picked a card, or replaced it.
	Picked struct {
		UserID string `json:"userId"`
		Card   string `json:"card"`
	}
	// Revealed records that the cards are shown, because all members have picked or one of them has
	// asked for it.
	Revealed struct {
		// The member who asked for it; empty if all members have picked.
		By string `json:"by,omitempty"`
	}
	// TableRefreshed removes the cards of the members, for the next round.
	TableRefreshed struct {
		UserIDs []string `json:"userIds"`
		// The title of the next round's story; empty for none.
		Title string `json:"title"`
	}
	// Kicked records that a member has removed another one, who may join again.
	Kicked struct {
		UserID string `json:"userId"`
		By     string `json:"by"`
	}
)

// The names are stored with the events, so they never change.

func (Opened) EventType() string         { return "room.opened.v2" }
func (Joined) EventType() string         { return "room.joined.v1" }
func (Left) EventType() string           { return "room.left.v1" }
func (Picked) EventType() string         { return "room.picked.v1" }
func (Revealed) EventType() string       { return "room.revealed.v1" }
func (TableRefreshed) EventType() string { return "room.table-refreshed.v2" }
func (Kicked) EventType() string         { return "room.kicked.v1" }

func (e Opened) Apply(r *Room) {
	*r = Room{Name: e.Name, Deck: e.Deck, ExpiresAt: e.ExpiresAt, Round: 1, Title: e.Title, Cards: map[string]string{}}
}

func (e TableRefreshed) Apply(r *Room) {
	r.Round, r.Title, r.Revealed = r.Round+1, e.Title, false
	clear(r.Cards)
}

func (e Picked) Apply(r *Room) { r.Cards[e.UserID] = e.Card }
func (Revealed) Apply(r *Room) { r.Revealed = true }
func (e Kicked) Apply(r *Room) { Left{e.UserID}.Apply(r); r.Kicked = append(r.Kicked, e.UserID) }

func (e Joined) Apply(r *Room) {
	r.Members = append(r.Members, e.UserID)
	r.Kicked = without(r.Kicked, e.UserID)
	r.Joins++
}

func (e Left) Apply(r *Room) {
	r.Members = without(r.Members, e.UserID)
	delete(r.Cards, e.UserID)
}

func without(userIDs []string, userID string) []string {
	return slices.DeleteFunc(userIDs, func(id string) bool { return id == userID })
}
