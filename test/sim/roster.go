package sim

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const rosterRow = "membership"

// owners is who owns the shards of a group and topic, as far as was seen.
type owners struct {
	now    []uint64           // the owner of each shard, 0 if it is free
	epochs []uint64           // the current term of each shard
	last   []uint64           // who owned a shard last
	who    map[uint64]*member // by number
	gone   map[uint64]bool    // members that have left, or were struck off
}

// rosterChange is a write of a roster.
type rosterChange struct {
	roster      string
	owners      []uint64
	epochs      []uint64
	joins, gone []uint64
	stopped     bool // by an event
}

// rosterChangeOf returns the change of a roster in a request.
func rosterChangeOf(in any) (c rosterChange, ok bool) {
	switch in := in.(type) {
	case *dynamodb.UpdateItemInput:
		values := in.ExpressionAttributeValues
		if text(in.Key["skey"]) != rosterRow || values[":owners"] == nil {
			return c, false
		}
		c.roster, c.owners, c.epochs = text(in.Key["pkey"]), numbersOf(values[":owners"]), numbersOf(values[":epochs"])
		c.stopped = values[":stopped"] != nil
		for name, value := range values {
			member, err := strconv.ParseUint(strings.TrimPrefix(name, ":m"), 10, 64)
			switch _, isCondition := value.(*types.AttributeValueMemberN); {
			case err != nil:
			case isCondition: // on its beat: it is removed
				c.gone = append(c.gone, member)
			default:
				c.joins = append(c.joins, member)
			}
		}
		return c, true
	case *dynamodb.TransactWriteItemsInput:
		for _, item := range in.TransactItems {
			if put := item.Put; put != nil && text(put.Item["skey"]) == rosterRow {
				return rosterChange{
					roster: text(put.Item["pkey"]), owners: numbersOf(put.Item["owners"]), epochs: numbersOf(put.Item["epochs"]),
					joins: []uint64{1},
				}, true
			}
		}
	}
	return c, false
}

func numbersOf(v types.AttributeValue) (numbers []uint64) {
	if list, ok := v.(*types.AttributeValueMemberL); ok {
		for _, n := range list.Value {
			numbers = append(numbers, number(n))
		}
	}
	return numbers
}

// enrol is told of a change that a member has made. It counts who joins and leaves, and which
// shards go from one member to another that lives, or from one that is gone.
func (o *oracle) enrol(by *member, c rosterChange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.rosters[c.roster]
	if known == nil {
		known = &owners{last: make([]uint64, len(c.owners)), who: map[uint64]*member{}, gone: map[uint64]bool{}}
		o.rosters[c.roster] = known
	}
	known.now, known.epochs = c.owners, c.epochs
	o.stop(by, c)
	o.trace.seen["join"] += len(c.joins)
	o.trace.seen["leave"] += len(c.gone)
	for _, m := range c.joins {
		known.who[m] = by
	}
	for _, m := range c.gone {
		known.gone[m] = true
	}
	for shard, owner := range c.owners {
		last := known.last[shard]
		switch {
		case owner == 0:
			continue
		case last == 0 || last == owner:
		case known.gone[last]:
			o.trace.seen["take-over"]++
		default:
			o.trace.seen["hand-over"]++
		}
		known.last[shard] = owner
	}
}

// robbed is told that all shards of a roster were taken from their owners, see [stealLease].
func (o *oracle) robbed(roster string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.rosters[roster]
	if known == nil {
		return
	}
	known.now = make([]uint64, len(known.now))
	known.epochs = slices.Clone(known.epochs)
	for shard := range known.epochs {
		known.epochs[shard]++
	}
}

// isCurrent reports whether a write of a position is made under the current epoch of its shard, as
// the roster is at this moment. The caller holds mu.
func (o *oracle) isCurrent(w positionWrite) bool {
	known := o.rosters[w.roster()]
	return known == nil || w.shard >= len(known.epochs) || known.epochs[w.shard] == w.epoch
}

// owns reports whether a member owns the shard of a position at this moment. The caller holds mu.
func (o *oracle) owns(m *member, w positionWrite) bool {
	known := o.rosters[w.roster()]
	return known != nil && w.shard < len(known.now) && known.now[w.shard] != 0 && known.who[known.now[w.shard]] == m
}

// settleRosters is told of the epochs that the table has in the end. It returns an error if the
// oracle has missed a change, because then it has judged by wrong epochs.
func (o *oracle) settleRosters(epochs map[string][]uint64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for roster, known := range o.rosters {
		if known.epochs != nil && !slices.Equal(known.epochs, epochs[roster]) {
			return fmt.Errorf("the oracle knows the epochs %v of roster %s, the table has %v", known.epochs, roster, epochs[roster])
		}
	}
	return nil
}

// stop notes since when an event has a group stopped.
func (o *oracle) stop(by *member, c rosterChange) {
	key := stream{group: groupOf(c.roster), topic: topicOf(c.roster)}
	_, known := o.stopped[key]
	switch {
	case c.stopped && !known:
		o.trace.note("stop", by.name, stream{}, 0)
		o.stopped[key] = o.trace.now()
	case !c.stopped:
		delete(o.stopped, key)
	}
}

// left counts the shards that a member was the last to own.
func (o *oracle) left(m *member) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, known := range o.rosters {
		for _, owner := range known.last {
			if known.who[owner] == m {
				n++
			}
		}
	}
	return n
}

// stealLease takes all shards from whoever has them, as another member would that judged their
// owners dead: the epochs rise, and nobody owns them. It reports whether there is a roster that it
// could change.
func stealLease(ctx context.Context, client *dynamodb.Client, group, topic string) (bool, error) {
	key := map[string]types.AttributeValue{
		"pkey": &types.AttributeValueMemberS{Value: group + "/" + topic},
		"skey": &types.AttributeValueMemberS{Value: rosterRow},
	}
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(checkpointTable), Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil || out.Item == nil {
		return false, err
	}
	epochs, owners := out.Item["epochs"].(*types.AttributeValueMemberL), &types.AttributeValueMemberL{}
	for i, epoch := range epochs.Value {
		epochs.Value[i] = &types.AttributeValueMemberN{Value: strconv.FormatUint(number(epoch)+1, 10)}
		owners.Value = append(owners.Value, &types.AttributeValueMemberN{Value: "0"})
	}
	_, err = client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                aws.String(checkpointTable),
		Key:                      key,
		UpdateExpression:         aws.String("SET #e = :e, #o = :o, #c = :stolen"),
		ConditionExpression:      aws.String("#c = :seen"),
		ExpressionAttributeNames: map[string]string{"#e": "epochs", "#o": "owners", "#c": "change"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":e": epochs, ":o": owners, ":seen": out.Item["change"],
			":stolen": &types.AttributeValueMemberS{Value: text(out.Item["change"]) + "!"},
		},
	})
	if isConditionFalse(err) {
		return false, nil
	}
	return err == nil, err
}
