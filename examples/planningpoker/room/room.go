// Package room is the domain of the example: a room in which a team plays planning poker. Its
// members pick cards face down. The cards are revealed when all members have picked, or when a
// member asks for it. They are shown until the table is refreshed for the next round. The package
// uses no database, no broker and no clock.
package room

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Definition defines the aggregate type. Its name is also the topic of its events.
var Definition = aggregate.Define[Room]("room", Opened{}, Joined{}, Left{}, Picked{}, Revealed{}, TableRefreshed{}, Kicked{}).
	WithUpcasters(upcasters...)

// Schema is the version of [Room] in snapshots. Version 1 has a title.
const Schema = 1

// Event is an event of a room.
type Event = aggregate.Event[Room]

// Events are the events that follow from a command.
type Events = aggregate.Events[Room]

// Decision decides on a command to a room. A command whose effect the room already shows changes
// nothing, so it may be sent again. [Pick], [Reveal] and [Refresh] may only be sent again with the
// number of their round. With 0 they could apply to the next round. Errors of all commands except
// [Open]: [ErrNotFound], [ErrExpired].
type Decision = aggregate.Decision[Room]

// Room is the state of a room. The zero value is the room before it is opened.
type Room struct {
	Name      string    `json:"name"`
	Deck      []string  `json:"deck"`
	ExpiresAt time.Time `json:"expiresAt"` // whole seconds, in UTC
	Round     int       `json:"round"`     // from 1
	Title     string    `json:"title"`     // title of the round's story; empty for none
	Revealed  bool      `json:"revealed"`
	// User ids of the current members, in the order in which they joined.
	Members []string `json:"members"`
	// Number of joins so far. It is limited, because the data of a user who has left stays until
	// the room expires.
	Joins int               `json:"joins"`
	Cards map[string]string `json:"cards"` // the picked cards of the members
	// User ids of kicked users who have not joined again.
	Kicked []string `json:"kicked"`
}

// Limits of a room: current members, joins so far, cards, and characters of names, cards and
// titles.
const (
	maxMembers, maxJoins, minDeck, maxDeck = 30, 300, 2, 20
	maxRoomName, maxUserName, maxCard      = 80, 40, 8
	maxTitle                               = 200
	minLifetime, maxLifetime               = time.Minute, 7 * 24 * time.Hour
)
