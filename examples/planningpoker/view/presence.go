package view

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/projection"
)

// A user is present for presenceTimeout after each report of an open page, so a reload or a short
// visit to another tab does not show the user as away. The stream of a page reports with each state
// that it sends, at least every 25 seconds. A report within reportInterval of the last one is not
// written.
const (
	presenceTimeout = 45 * time.Second
	reportInterval  = 10 * time.Second
)

// Attend records that a user has a page of the room open, if the user is in the room. Arrived
// reports whether the user was away before. The room then changes to show the user as present.
// Errors: journal.ErrThrottled.
func (d *DAO) Attend(ctx context.Context, r Room, userID string) (arrived bool, err error) {
	for i := range r.Users {
		u := &r.Users[i]
		until := d.now().Add(presenceTimeout)
		if u.UserID != userID || until.Sub(u.presentUntil) < reportInterval {
			continue
		}
		switch written, err := d.setPresent(ctx, r.RoomID, userID, until); {
		case err == nil && !written:
			// The user has left, or the room has expired.
			return false, nil
		case errors.As(err, new(*types.TransactionConflictException)):
			// An event changes the row, and shows the room again.
			return false, nil
		case err != nil:
			return false, d.explain("note that "+userID+" is present in room "+r.RoomID, err)
		}
		arrived, u.Present, u.presentUntil = !u.Present, true, until
	}
	return arrived, nil
}

// setPresent changes the row of a user who has not left, and reports whether there is one.
// Reactions to events do not read the changed attribute.
func (d *DAO) setPresent(ctx context.Context, roomID, userID string, until time.Time) (written bool, err error) {
	change, condition := "SET #present_until = :until", "#status <> :left AND #item_type = :type"
	_, err = d.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &d.rows.Table.Name, Key: d.rows.Table.Key(roomID, userID), UpdateExpression: &change, ConditionExpression: &condition,
		ExpressionAttributeNames: names(change + condition),
		ExpressionAttributeValues: attributes{
			":until": projection.Number(until.Unix()), ":left": projection.Text(statusLeft), ":type": projection.Text(itemUser),
		},
	})
	if errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return false, nil
	}
	return err == nil, err
}
