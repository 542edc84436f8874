// Package room is the domain of the example: a room in which a team plays planning poker. Its
// members pick cards face down. The cards are revealed when all have picked, or when a member asks
// for it, until the table is refreshed for the next round. The package knows no database, no broker
// and no clock.
package room

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Definition makes rooms an aggregate type. Its name is also the topic of their events.
var Definition = aggregate.Define[Room]("room", Opened{}, Joined{}, Left{}, Picked{}, Revealed{}, TableRefreshed{}, Kicked{}).
	WithUpcasters(upcasters...)

// Schema is the version of [Room] as it is stored in snapshots. Version 1 has a title.
const Schema = 1

// Event is anything that happens to a room.
type Event = aggregate.Event[Room]

// Events are what follows from a command.
type Events = aggregate.Events[Room]

// Decision is a command to a room. It changes nothing if the room is already as it asks, so it may
// be sent again. [Pick], [Reveal] and [Refresh] may only be sent again with their round, as they
// could otherwise apply to the next one. Errors of all except [Open]: [ErrNotFound], [ErrExpired].
type Decision = aggregate.Decision[Room]

// Room is the state of a room. The zero value is the room before it is opened.
type Room struct {
	Name      string            `json:"name"`
	Deck      []string          `json:"deck"`
	ExpiresAt time.Time         `json:"expiresAt"` // seconds, UTC
	Round     int               `json:"round"`     // from 1
	Title     string            `json:"title"`     // of the round's story; empty for none
	Revealed  bool              `json:"revealed"`
	Members   []string          `json:"members"` // user ids of those who are there now, in the order in which they joined
	Joins     int               `json:"joins"`   // so far: the data of a user stays as long as the room
	Cards     map[string]string `json:"cards"`   // that members have picked
	Kicked    []string          `json:"kicked"`  // user ids of those who were kicked and have not joined again
}

// Limits of a room: members at once, joins ever, cards, and characters of names, cards and
// titles.
const (
	maxMembers, maxJoins, minDeck, maxDeck = 30, 300, 2, 20
	maxRoomName, maxUserName, maxCard      = 80, 40, 8
	maxTitle                               = 200
	minLifetime, maxLifetime               = time.Minute, 7 * 24 * time.Hour
)
