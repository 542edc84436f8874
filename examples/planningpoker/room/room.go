// Package room is the domain of the example: a room in which a team plays planning poker. Its
// members pick cards face down, which are revealed when all have picked, until the table is
// refreshed for the next round. It knows no database, no broker and no clock.
package room

import (
	"errors"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Definition makes rooms an aggregate type. Its name is also the topic of their events.
var Definition = aggregate.Define[Room]("room", Opened{}, Joined{}, Left{}, Picked{}, Revealed{}, TableRefreshed{}, Kicked{})

// Event is anything that happens to a room.
type Event = aggregate.Event[Room]

// Events are what follows from a command.
type Events = aggregate.Events[Room]

// Decision is a command to a room. One that asks for what is so already changes nothing. It may be
// sent again, but [Pick] and [Refresh] only with their round, lest they meet the next one. Errors
// of all but [Open]: [ErrNotFound], [ErrExpired].
type Decision = aggregate.Decision[Room]

// Room is the state of a room. The zero value is the room before it is opened.
type Room struct {
	Name      string            `json:"name"`
	Deck      []string          `json:"deck"`
	ExpiresAt time.Time         `json:"expiresAt"` // seconds, UTC
	Round     int               `json:"round"`     // from 1
	Revealed  bool              `json:"revealed"`
	Members   []string          `json:"members"` // user ids of those who are there now, in the order in which they joined
	Joins     int               `json:"joins"`   // ever, as what is known of a user stays as long as the room
	Cards     map[string]string `json:"cards"`   // that members have picked
	Kicked    []string          `json:"kicked"`  // user ids of those who may not return
}

// Limits of a room: members at once, joins ever, cards, and bytes of names and cards. A character
// has up to four.
const (
	maxMembers, maxJoins, minDeck, maxDeck = 30, 300, 2, 20
	maxRoomName, maxUserName, maxCard      = 240, 120, 8
	minLifetime, maxLifetime               = time.Minute, 7 * 24 * time.Hour
)

// Why a command is refused, for errors.Is.
var (
	ErrNotFound  = errors.New("there is no such room")
	ErrExists    = errors.New("the room is open already")
	ErrExpired   = errors.New("the room has expired")
	ErrInvalid   = errors.New("invalid")
	ErrNotMember = errors.New("you are not in the room, join it first")
	ErrNotThere  = errors.New("there is no such user in the room")
	ErrKicked    = errors.New("you were kicked out of the room and cannot join it again")
	ErrFull      = errors.New("the room is full, or too many have come and gone: open another one")
	ErrRevealed  = errors.New("the cards are revealed, refresh the table to pick again")
	ErrRoundOver = errors.New("the round is over, pick in the present one")
)
