// Package history returns the rounds of a room: their stories, and the cards that were picked when
// they were revealed. No table stores them: [Read] replays the events of the room. Picks that were
// never revealed are left out.
package history

import (
	"slices"
	"time"

	"github.com/millrace-dev/millrace/examples/planningpoker/room"
)

// Page is the maximum number of rounds that are read at once.
const Page = 50

// Round is a round that was revealed, or that ended before it was revealed.
type Round struct {
	Number int    `json:"round"` // from 1
	Title  string `json:"title"` // title of the story; empty for none
	// Zero if the table was refreshed before the cards were revealed.
	RevealedAt time.Time `json:"revealedAt,omitzero"`
	// The revealed cards, in the order of picking.
	Picks []Pick `json:"picks,omitempty"`
}

// Pick is a card with the member who picked it. The member may have left since.
type Pick struct {
	UserID string `json:"userId"`
	Name   string `json:"name"`
	Card   string `json:"card"`
}

// Rounds computes the rounds of a room from its events, starting with the first. The zero value has
// no rounds.
type Rounds struct {
	over    []Round // the last rounds, at most Page
	current Round
	names   map[string]string // names of the members
	picks   []Pick            // face down, in the current round
}

// Apply adds an event and its time.
func (r *Rounds) Apply(event room.Event, at time.Time) {
	switch e := event.(type) {
	case room.Opened:
		r.begin(1, e.Title)
	case room.Joined:
		r.join(e)
	case room.Left:
		r.remove(e.UserID)
	case room.Kicked:
		r.remove(e.UserID)
	case room.Picked:
		r.pick(e)
	case room.Revealed:
		r.current.RevealedAt, r.current.Picks = at, slices.Clone(r.picks)
	case room.TableRefreshed:
		r.keep(r.current)
		r.begin(r.current.Number+1, e.Title)
	}
}

func (r *Rounds) begin(number int, title string) {
	r.current, r.picks = Round{Number: number, Title: title}, nil
}

func (r *Rounds) keep(round Round) {
	if len(r.over) == Page {
		r.over = slices.Delete(r.over, 0, 1)
	}
	r.over = append(r.over, round)
}

func (r *Rounds) join(e room.Joined) {
	if r.names == nil {
		r.names = map[string]string{}
	}
	r.names[e.UserID] = e.Name
}

func (r *Rounds) pick(e room.Picked) {
	picked := Pick{e.UserID, r.names[e.UserID], e.Card}
	if i := r.find(e.UserID); i >= 0 {
		r.picks[i] = picked
	} else {
		r.picks = append(r.picks, picked)
	}
}

func (r *Rounds) remove(userID string) {
	delete(r.names, userID)
	if i := r.find(userID); i >= 0 {
		r.picks = slices.Delete(r.picks, i, i+1)
	}
}

func (r *Rounds) find(userID string) int {
	return slices.IndexFunc(r.picks, func(p Pick) bool { return p.UserID == userID })
}

// Newest returns the last rounds that are revealed or over, the newest first, at most [Page].
func (r *Rounds) Newest() []Round {
	newest := slices.Clone(r.over)
	if !r.current.RevealedAt.IsZero() {
		newest = append(newest, r.current)
	}
	slices.Reverse(newest)
	return newest[:min(len(newest), Page)]
}
