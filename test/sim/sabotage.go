package sim

import (
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	pm "github.com/millrace-dev/millrace/process"
)

// Sabotage is what a world can have broken on purpose, to show that the oracle notices.
type Sabotage string

// What can be broken.
const (
	// Skip: now and then an event is acked that no handler has seen, as by a subscriber that skips
	// it.
	Skip Sabotage = "skip"
	// Unfence: positions are written whatever their condition says, as by a member that is not
	// fenced.
	Unfence Sabotage = "unfence"
	// Forget: now and then a stored position is gone, as by a database that forgets.
	Forget Sabotage = "forget"
	// Shuffle: handlers get events of one aggregate side by side, as from a subscriber that does
	// not wait for acks.
	Shuffle Sabotage = "shuffle"
	// Reissue: commands have new ids each time they are sent, as from a process manager that draws
	// them.
	Reissue Sabotage = "reissue"
	// Unguard: a step is stored although one of its input was before, as by a process manager that
	// does not look.
	Unguard Sabotage = "unguard"
	// Detach: a timeout fires although it was moved or cancelled, as by a process manager that goes
	// by its name alone.
	Detach Sabotage = "detach"
	// Strand: what a process manager has taken up and not done is not due again, as if it had been
	// done.
	Strand Sabotage = "strand"
	// Unrecord: what is skipped leaves no record, as by a subscriber that only moves the position.
	Unrecord Sabotage = "unrecord"
	// Rehandle: what is skipped comes again though there is a record of it, as by a subscriber that
	// writes the position later.
	Rehandle Sabotage = "rehandle"
	// Unstop: a group that an event has stopped is not paused, as by a subscriber that says so and
	// goes on.
	Unstop Sabotage = "unstop"
	// Blink: the first trailing reads find nothing, as if there were only the last ones. No event
	// is lost by that, but some come late.
	Blink Sabotage = "blink"
	// Overlook: the last trailing reads find nothing, as if there were only the first ones. Where
	// nothing is swept, what comes late to the index is lost.
	Overlook Sabotage = "overlook"
	// Unrevise: entries of the list of those behind are written and removed by anybody whose epoch
	// is not older, as by a subscriber whose writes have no revision.
	Unrevise Sabotage = "unrevise"
	// Rewind: who claims a position is told that there is none, as a subscriber that does not read
	// it would begin at 0.
	Rewind Sabotage = "rewind"
	// Recall: who claims a position is told the one that it knew last, as a subscriber that keeps
	// positions when it loses a shard.
	Recall Sabotage = "recall"
	// Overrun: members are told that aggregates are truncated one event further than they are, as
	// by a subscriber that passes over one more than was removed.
	Overrun Sabotage = "overrun"
	// Omit: now and then an export is told that an aggregate has one event less than it has, as if
	// it had read an index.
	Omit Sabotage = "omit"
	// Revive: heads are written whatever they are, as by a journal that does not look whether the
	// aggregate was deleted.
	Revive Sabotage = "revive"
)

// Sabotages are all of them.
var Sabotages = []Sabotage{Skip, Unfence, Forget, Shuffle, Reissue, Unguard, Detach, Strand, Unrecord, Rehandle, Unstop, Blink, Overlook, Unrevise, Rewind, Recall, Overrun, Omit, Revive}

// disruption is the one that a sabotage needs in order to show, empty for none.
func (s Sabotage) disruption() Disruption {
	return map[Sabotage]Disruption{Unrevise: Outages, Overrun: Truncations, Omit: Exports, Revive: Deletions}[s]
}

// ofSagas reports whether only process managers suffer.
func (s Sabotage) ofSagas() bool {
	return slices.Contains([]Sabotage{Reissue, Unguard, Detach, Strand}, s)
}

// ofSkips reports whether only groups that skip events suffer.
func (s Sabotage) ofSkips() bool { return s == Unrecord || s == Rehandle }

// spoil changes a request.
func (s Sabotage) spoil(in any) any {
	switch in := in.(type) {
	case *dynamodb.UpdateItemInput:
		spoiled := *in
		s.spoilUpdate(&spoiled)
		return &spoiled
	case *dynamodb.DeleteItemInput:
		if s == Unrevise && requestOf(in) == listRequests {
			spoiled := *in
			spoiled.ConditionExpression = aws.String(byEpoch)
			return &spoiled
		}
	case *dynamodb.TransactWriteItemsInput:
		if len(recordWrites(in)) > 0 && s.ofSkips() {
			return s.spoilSkip(in)
		}
		spoiled := *in
		spoiled.TransactItems = slices.Clone(in.TransactItems)
		for i := range spoiled.TransactItems {
			s.spoilAction(&spoiled.TransactItems[i])
		}
		return &spoiled
	}
	return in
}

func (s Sabotage) spoilUpdate(u *dynamodb.UpdateItemInput) {
	switch {
	case s == Unrevise && requestOf(u) == listRequests:
		u.ConditionExpression = aws.String(byEpoch)
	case s == Unfence && len(positionWrites(u)) > 0:
		u.ConditionExpression = always(u.ConditionExpression)
	case s == Unstop && u.ExpressionAttributeValues[":stopped"] != nil:
		u.ExpressionAttributeValues = maps.Clone(u.ExpressionAttributeValues)
		u.ExpressionAttributeValues[":paused"] = &types.AttributeValueMemberBOOL{}
	case s == Strand && aws.ToString(u.TableName) == pm.DefaultTable:
		u.ExpressionAttributeValues = map[string]types.AttributeValue{":seen": u.ExpressionAttributeValues[":seen"], ":later": numberValue(farOff)}
	}
}

// byEpoch is the condition of an entry of the list without its revision. It names that all the
// same, as DynamoDB refuses names that are not used.
const byEpoch = "(attribute_not_exists(#e) OR #e <= :e) OR (#e <= :e AND #r = :r)"

// spoilSkip takes the record out of a transaction, or the position.
func (s Sabotage) spoilSkip(in *dynamodb.TransactWriteItemsInput) *dynamodb.TransactWriteItemsInput {
	spoiled := *in
	spoiled.TransactItems = slices.DeleteFunc(slices.Clone(in.TransactItems), func(item types.TransactWriteItem) bool {
		isRecord := item.Put != nil && isRecord(item.Put)
		return isRecord == (s == Unrecord)
	})
	return &spoiled
}

const farOff = 1 << 50 // ms since 1970

func (s Sabotage) spoilAction(action *types.TransactWriteItem) {
	switch {
	case s == Unfence && action.Update != nil && isPosition(action.Update),
		s == Revive && action.Update != nil && aws.ToString(action.Update.TableName) == snapshotTable:
		u := *action.Update
		u.ConditionExpression, action.Update = always(u.ConditionExpression), &u
	case s == Unguard && action.Put != nil && action.Put.Item["command_id"] != nil,
		s == Detach && action.Put != nil && isTimeout(action.Put.TableName, action.Put.Item):
		p := *action.Put
		p.ConditionExpression, action.Put = always(p.ConditionExpression), &p
	case s == Detach && action.Delete != nil && isTimeout(action.Delete.TableName, action.Delete.Key):
		d := *action.Delete
		d.ConditionExpression, action.Delete = always(d.ConditionExpression), &d
	}
}

func isPosition(u *types.Update) bool {
	_, ok := positionOf(u.TableName, u.Key, u.ExpressionAttributeValues)
	return ok
}

func isTimeout(table *string, key map[string]types.AttributeValue) bool {
	return aws.ToString(table) == pm.DefaultTable && strings.HasPrefix(text(key["skey"]), "timeout/")
}

// always is a condition that is true whatever another says.
func always(condition *string) *string {
	if condition == nil {
		return nil
	}
	return aws.String(*condition + " OR attribute_exists(pkey) OR attribute_not_exists(pkey)")
}
