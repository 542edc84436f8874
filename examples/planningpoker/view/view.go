// Package view is the query side of the example: the rooms and their users, in one DynamoDB table.
// The events of the rooms keep it up to date.
//
// [DAO.Reactions] returns the changes for each event, and a projection commits them together with
// its position. [DAO.GetRoom], [DAO.GetActiveUsers], [DAO.ExistRoom] and [DAO.GetUser] answer
// queries. A room has one row, and each of its users has another row in the same partition. All of
// them expire with the room. Queries ignore expired rows, even before DynamoDB deletes them, which
// may take days.
//
// One attribute does not follow from events: the time until which a user is present. [DAO.Attend]
// writes it while the user has a page open, on any server, so that all servers show the same.
package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/examples/internal/throttle"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
)

// ErrNoUser reports that a room never had such a user, that the user has left, if only current
// users count, or that the room has expired.
var ErrNoUser = errors.New("there is no such user in the room")

// Room is the result of a query about a room.
type Room struct {
	RoomID    string
	Name      string
	Deck      []string
	Round     int    // from 1
	Title     string // title of the round's story; empty for none
	Revealed  bool
	ExpiresAt time.Time // whole seconds, in UTC
	EndsSoon  bool      // in 10 minutes at most
	// The number of the last event in the view.
	Version uint64
	// The current users, in the order in which they joined.
	Users []User

	changed []string // the users of that event
}

// User is a current or former user of a room.
type User struct {
	UserID string
	Name   string
	// Empty until the user picks, and after the user has left.
	Card string
	Left bool // or was kicked
	// Present reports whether the user has a page open, or had one less than a minute ago.
	Present bool

	joined, version         uint64 // numbers of events
	expiresAt, presentUntil time.Time
}

// DAO reads and writes the view. It is safe for concurrent use.
type DAO struct {
	client journal.Client
	rows   projection.Reader[projection.Row]
	now    func() time.Time
}

// NewDAO returns a DAO for a table. Now is the clock for expiry. NewDAO makes no request.
func NewDAO(client journal.Client, table string, now func() time.Time) *DAO {
	rows := projection.Reader[projection.Row]{
		Client: client, Decode: func(row projection.Row) (projection.Row, error) { return row, nil },
		Table: projection.Table{Name: table, PartitionKey: attrRoomID, SortKey: attrItemKey, TimeToLive: attrExpiresAt},
	}
	return &DAO{client: client, rows: rows, now: now}
}

// CreateTable creates the table if it is missing, waits until it is active, and enables its time to
// live. It may be called again, and by several processes at once. Errors:
// *journal.DescriptorMismatchError for a table with another purpose, journal.ErrAccess.
func (d *DAO) CreateTable(ctx context.Context) error {
	return projection.CreateTable(ctx, d.client, d.rows.Table)
}

func (d *DAO) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s in table %q: %w", doing, d.rows.Table.Name, throttle.Explain(err))
}

// assemble makes a room from all rows of a partition.
func (d *DAO) assemble(rows []projection.Row) (r Room, found bool) {
	for _, row := range rows {
		if row.Text(attrItemType) == itemRoom {
			r, found = roomOf(row), true
		}
	}
	for _, row := range rows {
		if row.Text(attrItemType) == itemUser {
			r.Users = append(r.Users, d.userOf(row))
		}
	}
	return r, found
}

// torn reports whether the rows are from different moments: a query may see one part of a
// transaction before the other.
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

// active returns the current users, in the order in which they joined.
func active(users []User) []User {
	users = slices.DeleteFunc(users, func(u User) bool { return u.Left })
	slices.SortFunc(users, func(a, b User) int { return cmp.Compare(a.joined, b.joined) })
	return users
}

type attributes = map[string]types.AttributeValue
