package view

import (
	"context"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/projection"
)

// consistencyTimeout limits how long a query that saw half a transaction is repeated. Usually the
// other half is visible within milliseconds. After the timeout the incomplete result is returned.
const consistencyTimeout = time.Second

// A room is reported to end soon when its remaining time is at most soon.
const soon = 10 * time.Minute

// GetRoom returns a room with its current users, as it was after one event. It is strongly
// consistent, and costs one read unit for each 4 KB of the room's rows, including those of users
// who have left. It shows only events that the projection has applied. Errors: room.ErrNotFound,
// room.ErrExpired, journal.ErrThrottled.
func (d *DAO) GetRoom(ctx context.Context, roomID string) (r Room, err error) {
	err = untilConsistent(ctx, func() (bool, error) {
		rows, err := d.query(ctx, roomID)
		if err != nil {
			return false, d.explain("get room "+roomID, err)
		}
		seen, found := d.assemble(rows)
		switch {
		case !found:
			return false, room.ErrNotFound
		case d.past(seen.ExpiresAt):
			return false, room.Expired(seen.ExpiresAt)
		}
		r = seen
		return !r.torn(), nil
	})
	if err != nil {
		return Room{}, err
	}
	r.Users = active(r.Users)
	r.EndsSoon = d.past(r.ExpiresAt.Add(-soon))
	return r, nil
}

// WaitConsistent waits until queries show an event of a room that the projection has applied. A
// reader can see the position a moment before the rows, although one transaction writes both.
// Errors: journal.ErrThrottled, and the error of ctx.
func (d *DAO) WaitConsistent(ctx context.Context, roomID string, version uint64) error {
	return untilConsistent(ctx, func() (bool, error) {
		row, _, err := d.rows.Get(ctx, roomID, roomID)
		if err != nil {
			return false, d.explain("get room "+roomID, err)
		}
		r := roomOf(row)
		return r.Version >= version || d.past(r.ExpiresAt), nil // also for a room that is gone
	})
}

func untilConsistent(ctx context.Context, read func() (consistent bool, err error)) error {
	waited := time.Duration(0)
	for pause := 2 * time.Millisecond; ; pause *= 2 {
		if consistent, err := read(); consistent || err != nil || waited >= consistencyTimeout {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
			waited += pause
		}
	}
}

// GetActiveUsers returns the current users of a room, in the order in which they joined. It returns
// none if there is no such room, or if it has expired. Strongly consistent. Errors:
// journal.ErrThrottled.
func (d *DAO) GetActiveUsers(ctx context.Context, roomID string) (users []User, err error) {
	rows, err := d.query(ctx, roomID, projection.Where(attrStatus, "<>", projection.Text(statusLeft)), projection.Where(attrItemType, "=", projection.Text(itemUser)))
	if err != nil {
		return nil, d.explain("get active users of room "+roomID, err)
	}
	for _, row := range rows {
		users = append(users, d.userOf(row))
	}
	users = slices.DeleteFunc(users, func(u User) bool { return d.past(u.expiresAt) })
	return active(users), nil
}

// ExistRoom reports whether a room exists, strongly consistent. Errors: room.ErrExpired while the
// row of an expired room still exists, journal.ErrThrottled.
func (d *DAO) ExistRoom(ctx context.Context, roomID string) (bool, error) {
	row, found, err := d.rows.Get(ctx, roomID, roomID)
	if err != nil || !found {
		return false, d.explain("look for room "+roomID, err)
	}
	if r := roomOf(row); d.past(r.ExpiresAt) {
		return false, room.Expired(r.ExpiresAt)
	}
	return true, nil
}

// GetUser returns a current or former user of a room, strongly consistent. Errors: [ErrNoUser],
// also when the room has expired; journal.ErrThrottled.
func (d *DAO) GetUser(ctx context.Context, roomID, userID string) (User, error) {
	row, _, err := d.rows.Get(ctx, roomID, userID)
	if err != nil {
		return User{}, d.explain("get user "+userID+" of room "+roomID, err)
	}
	if u := d.userOf(row); row.Text(attrItemType) == itemUser && !d.past(u.expiresAt) {
		return u, nil
	}
	return User{}, ErrNoUser
}

// query returns all rows of a room for which some filters hold.
func (d *DAO) query(ctx context.Context, roomID string, filters ...projection.Filter) (rows []projection.Row, err error) {
	for row, err := range d.rows.All(ctx, projection.Query{Partition: roomID, Filters: filters, Consistent: true}) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func (d *DAO) past(at time.Time) bool { return !d.now().Before(at) }
