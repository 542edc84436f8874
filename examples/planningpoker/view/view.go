// Package view is the query side of the example: the rooms and who is in them, in one DynamoDB
// table of its own, kept up to date by the events of the rooms.
//
// [DAO.Reactions] says what each event changes, and a projection commits that together with its
// position. [DAO.GetRoom], [DAO.GetActiveUsers], [DAO.ExistRoom] and [DAO.GetUser] read. A room has
// one row, and each of its users another in the same partition. All of them expire with the room:
// what is past its time counts as gone here, even before DynamoDB deletes it, which may take days.
//
// One attribute does not follow from events: until when a user is present. [DAO.Attend] writes it
// while the user has a page open, on any server, so that all servers show the same.
package view

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/examples/internal/throttle"
	"github.com/millrace-dev/millrace/journal"
)

// ErrNoUser says that a room never had such a user, that they have left where only those who are
// there count, or that the room has expired.
var ErrNoUser = errors.New("there is no such user in the room")

// Room is a room as queries show it.
type Room struct {
	RoomID    string
	Name      string
	Deck      []string
	Round     int    // from 1
	Title     string // of the round's story; empty for none
	Revealed  bool
	ExpiresAt time.Time // seconds, UTC
	EndsSoon  bool      // in 10 minutes at most
	Version   uint64    // the number of the last event that the view has been told
	Users     []User    // who are there now, in the order in which they joined

	changed []string // the users whom that event concerned
}

// User is somebody who is in a room, or was.
type User struct {
	UserID string
	Name   string
	Card   string // empty until they pick, and after they have left
	Left   bool   // or was kicked
	// Present reports that the user has a page open, or had one less than a minute ago.
	Present bool

	joined, version         uint64 // numbers of events
	expiresAt, presentUntil time.Time
}

// DAO reads and writes the view. It is safe for concurrent use.
type DAO struct {
	client journal.Client
	table  string
	now    func() time.Time
}

// NewDAO makes a DAO on a table, by a clock that says what has expired. It makes no round trip.
func NewDAO(client journal.Client, table string, now func() time.Time) *DAO {
	return &DAO{client: client, table: table, now: now}
}

func (d *DAO) explain(doing string, err error) error {
	return fmt.Errorf("%s in table %q: %w", doing, d.table, throttle.Explain(err))
}

// assemble makes the room of all rows of a partition.
func (d *DAO) assemble(items []attributes) (r Room, found bool) {
	for _, item := range items {
		if textOf(item[attrItemType]) == itemRoom {
			r, found = roomOf(item), true
		}
	}
	for _, item := range items {
		if textOf(item[attrItemType]) == itemUser {
			r.Users = append(r.Users, d.userOf(item))
		}
	}
	return r, found
}

// torn reports that the rows are of different moments: a query may see one part of a transaction
// and not yet the other.
func (r Room) torn() bool {
	for _, u := range r.Users {
		if u.version > r.Version {
			return true
		}
	}
	return slices.ContainsFunc(r.changed, func(id string) bool {
		return !slices.ContainsFunc(r.Users, func(u User) bool { return u.UserID == id && u.version == r.Version })
	})
}

// active leaves those who are there, in the order in which they joined.
func active(users []User) []User {
	users = slices.DeleteFunc(users, func(u User) bool { return u.Left })
	slices.SortFunc(users, func(a, b User) int { return cmp.Compare(a.joined, b.joined) })
	return users
}

type attributes = map[string]types.AttributeValue
