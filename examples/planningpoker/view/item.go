package view

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
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

func key(roomID, itemKey string) attributes {
	return attributes{attrRoomID: text(roomID), attrItemKey: text(itemKey)}
}

func roomOf(item attributes) Room {
	return Room{
		RoomID:    textOf(item[attrRoomID]),
		Name:      textOf(item[attrName]),
		Deck:      textsOf(item[attrDeck]),
		Round:     int(numberOf(item[attrRound])),
		Title:     textOf(item[attrTitle]),
		Revealed:  textOf(item[attrStatus]) == statusRevealed,
		ExpiresAt: time.Unix(numberOf(item[attrExpiresAt]), 0).UTC(),
		Version:   uint64(numberOf(item[attrVersion])),
		changed:   textsOf(item[attrChanged]),
	}
}

func (d *DAO) userOf(item attributes) User {
	presentUntil := time.Unix(numberOf(item[attrPresent]), 0).UTC()
	return User{
		UserID:       textOf(item[attrItemKey]),
		Name:         textOf(item[attrName]),
		Card:         textOf(item[attrCard]),
		Left:         textOf(item[attrStatus]) == statusLeft,
		Present:      !d.past(presentUntil),
		presentUntil: presentUntil,
		joined:       uint64(numberOf(item[attrJoined])),
		version:      uint64(numberOf(item[attrVersion])),
		expiresAt:    time.Unix(numberOf(item[attrExpiresAt]), 0).UTC(),
	}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func texts(all []string) types.AttributeValue {
	list := make([]types.AttributeValue, len(all))
	for i, s := range all {
		list[i] = text(s)
	}
	return &types.AttributeValueMemberL{Value: list}
}

func number[N int | int64 | uint64](n N) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(n), 10)}
}

// textOf, textsOf and numberOf return the zero value for a missing attribute.

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func textsOf(v types.AttributeValue) (all []string) {
	if list, ok := v.(*types.AttributeValueMemberL); ok {
		for _, each := range list.Value {
			all = append(all, textOf(each))
		}
	}
	return all
}

func numberOf(v types.AttributeValue) int64 {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		i, _ := strconv.ParseInt(n.Value, 10, 64) // only this package writes them
		return i
	}
	return 0
}
