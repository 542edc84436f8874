package view

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/projection"
)

// Attributes of the table. The first five are fixed by its design. The sort key is a user id, or
// the id of the room for the row of the room.
const (
	attrRoomID    = "room_id"
	attrItemKey   = "item_key"
	attrItemType  = "item_type"
	attrStatus    = "status"
	attrExpiresAt = "expiration_unix_timestamp" // Unix time in seconds; time to live
	attrName      = "name"
	// The number of the last event that changed the row.
	attrVersion = "version"
	attrDeck    = "deck"
	attrRound   = "round"
	attrTitle   = "title" // title of the round's story
	// The users whose rows that event changed too.
	attrChanged = "changed"
	attrCard    = "card"
	// The number of the event by which a user joined.
	attrJoined = "joined"
	// Unix time in seconds. A user without a page open by then is away.
	attrPresent = "present_until"
)

// These are the types of rows, and the statuses of rooms and users.
const (
	itemRoom       = "ROOM"
	itemUser       = "USER"
	statusPicking  = "PICKING"
	statusRevealed = "REVEALED"
	statusActive   = "ACTIVE"
	statusLeft     = "LEAVED"
)

func roomOf(row projection.Row) Room {
	return Room{
		RoomID:    row.Text(attrRoomID),
		Name:      row.Text(attrName),
		Deck:      textsOf(row[attrDeck]),
		Round:     int(row.Number(attrRound)),
		Title:     row.Text(attrTitle),
		Revealed:  row.Text(attrStatus) == statusRevealed,
		ExpiresAt: time.Unix(row.Number(attrExpiresAt), 0).UTC(),
		Version:   uint64(row.Number(attrVersion)),
		changed:   textsOf(row[attrChanged]),
	}
}

func (d *DAO) userOf(row projection.Row) User {
	presentUntil := time.Unix(row.Number(attrPresent), 0).UTC()
	return User{
		UserID:       row.Text(attrItemKey),
		Name:         row.Text(attrName),
		Card:         row.Text(attrCard),
		Left:         row.Text(attrStatus) == statusLeft,
		Present:      !d.past(presentUntil),
		presentUntil: presentUntil,
		joined:       uint64(row.Number(attrJoined)),
		version:      uint64(row.Number(attrVersion)),
		expiresAt:    time.Unix(row.Number(attrExpiresAt), 0).UTC(),
	}
}

func texts(all []string) types.AttributeValue {
	list := make([]types.AttributeValue, len(all))
	for i, s := range all {
		list[i] = projection.Text(s)
	}
	return &types.AttributeValueMemberL{Value: list}
}

func textsOf(v types.AttributeValue) (all []string) {
	if list, ok := v.(*types.AttributeValueMemberL); ok {
		for _, each := range list.Value {
			if s, ok := each.(*types.AttributeValueMemberS); ok {
				all = append(all, s.Value)
			}
		}
	}
	return all
}
