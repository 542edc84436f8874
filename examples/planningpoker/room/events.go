package room

import (
	"slices"
	"time"
)

type (
	// Opened is a room's beginning.
	Opened struct {
		Name      string    `json:"name"`
		Title     string    `json:"title"` // of the first round's story; empty for none
		Deck      []string  `json:"deck"`
		ExpiresAt time.Time `json:"expiresAt"`
	}
	// Joined means that somebody has come in. What is known of them expires with the room, hence
	// the time.
	Joined struct {
		UserID    string    `json:"userId"`
		Name      string    `json:"name"`
		ExpiresAt time.Time `json:"expiresAt"`
	}
	// Left means that somebody has gone by themselves.
	Left struct {
		UserID string `json:"userId"`
	}
	// Picked means that somebody has picked a card, perhaps in place of another.
	Picked struct {
		UserID string `json:"userId"`
		Card   string `json:"card"`
	}
	// Revealed turns the cards over, as everybody has picked, or as a member has asked for it.
	Revealed struct {
		By string `json:"by,omitempty"` // the member who asked; empty if everybody has picked
	}
	// TableRefreshed takes the cards of those who are there back for the next round.
	TableRefreshed struct {
		UserIDs []string `json:"userIds"`
		Title   string   `json:"title"` // of the next round's story; empty for none
	}
	// Kicked means that another member has sent somebody out, who may join again.
	Kicked struct {
		UserID string `json:"userId"`
		By     string `json:"by"`
	}
)

func (Opened) EventType() string         { return "room.opened.v2" } // the names are stored: they stay the same for good
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
