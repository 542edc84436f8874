package sim

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Sabotage is what a world can have broken on purpose, to show that the oracle notices.
type Sabotage string

// What can be broken.
const (
	// Skip: now and then an event is acked that no handler has seen, as by a subscriber that skips it.
	Skip Sabotage = "skip"
	// Unfence: positions are written whatever their condition says, as by a member that is not fenced.
	Unfence Sabotage = "unfence"
	// Forget: now and then a stored position is gone, as by a database that forgets.
	Forget Sabotage = "forget"
	// Shuffle: handlers get events of one aggregate side by side, as from a subscriber that does not wait for acks.
	Shuffle Sabotage = "shuffle"
)

// Sabotages are all of them.
var Sabotages = []Sabotage{Skip, Unfence, Forget, Shuffle}

// sabotage is how a wire takes part.
type sabotage struct{ unfence bool }

// spoil changes a request.
func (s sabotage) spoil(in any) any {
	if !s.unfence || len(positionWrites(in)) == 0 {
		return in
	}
	const always = " OR attribute_exists(pkey) OR attribute_not_exists(pkey)"
	switch in := in.(type) {
	case *dynamodb.UpdateItemInput:
		spoiled := *in
		spoiled.ConditionExpression = aws.String(aws.ToString(in.ConditionExpression) + always)
		return &spoiled
	case *dynamodb.TransactWriteItemsInput:
		spoiled := *in
		spoiled.TransactItems = slices.Clone(in.TransactItems)
		for i, item := range spoiled.TransactItems {
			if u := item.Update; u != nil && aws.ToString(u.TableName) == checkpointTable {
				update := *u
				update.ConditionExpression = aws.String(aws.ToString(u.ConditionExpression) + always)
				spoiled.TransactItems[i].Update = &update
			}
		}
		return &spoiled
	}
	return in
}
