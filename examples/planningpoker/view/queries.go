package view

import (
	"context"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/examples/planningpoker/room"
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
		items, err := d.query(ctx, roomID, "", nil)
		if err != nil {
			return false, d.explain("get room "+roomID, err)
		}
		seen, found := d.assemble(items)
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
		out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{
			TableName: &d.table, Key: key(roomID, roomID), ConsistentRead: aws.Bool(true),
		})
		if err != nil {
			return false, d.explain("get room "+roomID, err)
		}
		r := roomOf(out.Item)
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
	items, err := d.query(ctx, roomID, "#status <> :left AND #item_type = :user", attributes{":left": text(statusLeft), ":user": text(itemUser)})
	if err != nil {
		return nil, d.explain("get active users of room "+roomID, err)
	}
	for _, item := range items {
		users = append(users, d.userOf(item))
	}
	users = slices.DeleteFunc(users, func(u User) bool { return d.past(u.expiresAt) })
	return active(users), nil
}

// ExistRoom reports whether a room exists, strongly consistent. Errors: room.ErrExpired while the
// row of an expired room still exists, journal.ErrThrottled.
func (d *DAO) ExistRoom(ctx context.Context, roomID string) (bool, error) {
	items, err := d.query(ctx, roomID, "#item_type = :room", attributes{":room": text(itemRoom)})
	if err != nil {
		return false, d.explain("look for room "+roomID, err)
	}
	if len(items) == 0 {
		return false, nil
	}
	if r := roomOf(items[0]); d.past(r.ExpiresAt) {
		return false, room.Expired(r.ExpiresAt)
	}
	return true, nil
}

// GetUser returns a current or former user of a room, strongly consistent. Errors: [ErrNoUser],
// also when the room has expired; journal.ErrThrottled.
func (d *DAO) GetUser(ctx context.Context, roomID, userID string) (User, error) {
	if userID == "" || len(userID) > maxSortKey {
		return User{}, ErrNoUser
	}
	out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &d.table, Key: key(roomID, userID), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return User{}, d.explain("get user "+userID+" of room "+roomID, err)
	}
	if u := d.userOf(out.Item); textOf(out.Item[attrItemType]) == itemUser && !d.past(u.expiresAt) {
		return u, nil
	}
	return User{}, ErrNoUser
}

// maxSortKey is the maximum size of a sort key in DynamoDB, in bytes.
const maxSortKey = 1024

// query returns all rows of a room that match a filter.
func (d *DAO) query(ctx context.Context, roomID, filter string, values attributes) (items []attributes, err error) {
	in := &dynamodb.QueryInput{
		TableName:                 &d.table,
		KeyConditionExpression:    aws.String("room_id = :id"),
		ExpressionAttributeValues: attributes{":id": text(roomID)},
		ConsistentRead:            aws.Bool(true),
	}
	if filter != "" {
		in.FilterExpression = &filter
		in.ExpressionAttributeNames = names(filter)
		for name, value := range values {
			in.ExpressionAttributeValues[name] = value
		}
	}
	for pages := dynamodb.NewQueryPaginator(d.client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
	}
	return items, nil
}

func (d *DAO) past(at time.Time) bool { return !d.now().Before(at) }
