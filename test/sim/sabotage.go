package sim

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	pm "github.com/millrace-dev/millrace/process"
)

// Sabotage is a deliberate mistake in a world, to show that the oracle finds it.
type Sabotage string

// Kinds of sabotage.
const (
	// Skip: some events are acked without a handler, as by a subscriber that skips them.
	Skip Sabotage = "skip"
	// Unfence: positions are written without their condition, as by a member that is not fenced.
	Unfence Sabotage = "unfence"
	// Forget: some stored positions disappear, as in a database that forgets.
	Forget Sabotage = "forget"
	// Shuffle: handlers receive events of one aggregate concurrently, as from a subscriber that
	// does not wait for acks.
	Shuffle Sabotage = "shuffle"
	// Reissue: commands have new ids each time they are sent, as from a process manager that draws
	// them.
	Reissue Sabotage = "reissue"
	// Unguard: a step is stored although a step for its input was stored before, as by a process
	// manager that does not check.
	Unguard Sabotage = "unguard"
	// Detach: a timeout fires although it was moved or cancelled, as by a process manager that
	// identifies it by its name alone.
	Detach Sabotage = "detach"
	// Strand: a failed attempt of a process manager is not repeated, as if it had succeeded.
	Strand Sabotage = "strand"
	// Unrecord: skipped events leave no record, as by a subscriber that only moves the position.
	Unrecord Sabotage = "unrecord"
	// Rehandle: a skipped event is delivered again although there is a record of it, as by a
	// subscriber that writes the position later.
	Rehandle Sabotage = "rehandle"
	// Unstop: a group that an event has stopped is not paused, as by a subscriber that reports it
	// and continues.
	Unstop Sabotage = "unstop"
	// Blink: the first trailing reads find nothing, as if there were only the last ones. No event
	// is lost, but some are late.
	Blink Sabotage = "blink"
	// Overlook: the last trailing reads find nothing, as if there were only the first ones. Without
	// reconciliation, late entries of the index are lost.
	Overlook Sabotage = "overlook"
	// Unrevise: entries of the list of aggregates behind can be written and removed under any epoch
	// that is not older, as by a subscriber whose writes have no revision.
	Unrevise Sabotage = "unrevise"
	// Rewind: a claim reports no position, as if a subscriber did not read it and began at 0.
	Rewind Sabotage = "rewind"
	// Recall: a claim reports the position that the member knew last, as in a subscriber that keeps
	// positions when it loses a shard.
	Recall Sabotage = "recall"
	// Overrun: members read that aggregates are truncated one event further than they are, as if a
	// subscriber passed over one event more than was removed.
	Overrun Sabotage = "overrun"
	// Omit: some exports read that an aggregate has one event less than it has, as if they had read
	// an index.
	Omit Sabotage = "omit"
	// Revive: heads are written without a condition, as by a journal that does not check whether
	// the aggregate was deleted.
	Revive Sabotage = "revive"
	// Prune: after a reset or a removal the positions from before are deleted at once, so that
	// nothing fences late transactions.
	Prune Sabotage = "prune"
	// Believe: a hint counts as a commit of the process, as in a subscriber that believes the
	// version that a hint claims.
	Believe Sabotage = "believe"
	// Ignore: hints cause nothing. No event is lost, but some are late where idle shards are polled
	// rarely.
	Ignore Sabotage = "ignore"
	// Overtake: in sweeps, the cursor is stored beyond events that are not handled.
	Overtake Sabotage = "overtake"
	// Presume: a burst with hints moves the cursors of the shards that it has visited, as if it had
	// read their tails.
	Presume Sabotage = "presume"
	// Unstamp: rows that are positions are written whatever their epoch is.
	Unstamp Sabotage = "unstamp"
	// Inherit: rows that are positions are written whatever reset they are of.
	Inherit Sabotage = "inherit"
)

// Sabotages lists all kinds of sabotage.
var Sabotages = []Sabotage{Skip, Unfence, Forget, Shuffle, Reissue, Unguard, Detach, Strand, Unrecord, Rehandle, Unstop, Blink, Overlook, Unrevise, Rewind, Recall, Overrun, Omit, Revive, Prune, Believe, Ignore, Overtake, Presume, Unstamp, Inherit}

// disruption returns the disruption that a sabotage needs to be visible, or "" for none.
func (s Sabotage) disruption() Disruption {
	return map[Sabotage]Disruption{Unrevise: Outages, Overrun: Truncations, Omit: Exports, Revive: Deletions, Prune: Rebuilds, Believe: Hints, Ignore: Hints, Overtake: Bursts, Presume: Bursts, Unstamp: Rebuilds, Inherit: Rebuilds}[s]
}

// ofSagas reports whether the sabotage affects only process managers.
func (s Sabotage) ofSagas() bool {
	return slices.Contains([]Sabotage{Reissue, Unguard, Detach, Strand}, s)
}

// ofRows reports whether the sabotage affects only rows that are positions.
func (s Sabotage) ofRows() bool { return s == Unstamp || s == Inherit }

// ofSkips reports whether the sabotage affects only groups that skip events.
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
	case s.ofRows() && aws.ToString(u.TableName) == rowTable.Table.Name:
		s.spoilRow(u)
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

// byEpoch is the condition of an entry of the list without its revision. It mentions the revision,
// since DynamoDB refuses unused names.
const byEpoch = "(attribute_not_exists(#e) OR #e <= :e) OR (#e <= :e AND #r = :r)"

// spoilSkip removes the record from a transaction, or the position.
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

// presume moves the cursors of those shards up to now of which a burst was the last owner.
func (w *world) presume(burst *member) {
	ctx := context.Background()
	now := numberValue(uint64(time.Now().UnixMilli())) //nolint:gosec // a time
	_ = scan(ctx, w.clean, checkpointTable, func(row map[string]types.AttributeValue) {
		if partition := text(row["pkey"]); text(row["skey"]) != cursorRow || !w.oracle.wasLast(burst, partition) {
			return
		}
		_, _ = w.clean.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: aws.String(checkpointTable), Key: map[string]types.AttributeValue{"pkey": row["pkey"], "skey": row["skey"]},
			UpdateExpression: aws.String("SET #c = " + valueCursor), ExpressionAttributeNames: map[string]string{"#c": attrCursor},
			ExpressionAttributeValues: map[string]types.AttributeValue{valueCursor: now},
		})
	})
}

// always returns a condition that is always true.
func always(condition *string) *string {
	if condition == nil {
		return nil
	}
	return aws.String(*condition + " OR attribute_exists(pkey) OR attribute_not_exists(pkey)")
}
