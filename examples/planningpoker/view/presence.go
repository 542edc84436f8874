package view

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// A user is present for grace after each report of an open page, so that neither a reload nor a
// short look into another tab shows them as away. The stream of a page reports it with every state
// that it sends, at least every 25 seconds. A report within beat of the last one is not written.
const (
	grace = 45 * time.Second
	beat  = 10 * time.Second
)

// Attend notes that a user has a page of the room open, if they are in it. It reports whether they
// were away before. The room is changed to show the user as present. Errors: journal.ErrThrottled.
func (d *DAO) Attend(ctx context.Context, r Room, userID string) (arrived bool, err error) {
	for i := range r.Users {
		u := &r.Users[i]
		until := d.now().Add(grace)
		if u.UserID != userID || until.Sub(u.presentUntil) < beat {
			continue
		}
		switch written, err := d.setPresent(ctx, r.RoomID, userID, until); {
		case err == nil && !written:
			return false, nil // they have left, or the room has expired
		case errors.As(err, new(*types.TransactionConflictException)):
			return false, nil // an event is changing the row, and shows the room again
		case err != nil:
			return false, d.explain("note that "+userID+" is present in room "+r.RoomID, err)
		}
		arrived, u.Present, u.presentUntil = !u.Present, true, until
	}
	return arrived, nil
}

// setPresent changes the row of a user who has not left, and reports whether there is one. Events
// do not look at what it changes.
func (d *DAO) setPresent(ctx context.Context, roomID, userID string, until time.Time) (written bool, err error) {
	change, condition := "SET #present_until = :until", "#status <> :left AND #item_type = :type"
	_, err = d.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &d.table, Key: key(roomID, userID), UpdateExpression: &change, ConditionExpression: &condition,
		ExpressionAttributeNames: names(change + condition),
		ExpressionAttributeValues: attributes{
			":until": number(until.Unix()), ":left": text(statusLeft), ":type": text(itemUser),
		},
	})
	if errors.As(err, new(*types.ConditionalCheckFailedException)) {
		return false, nil
	}
	return err == nil, err
}
