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

const membershipRow = "shards"

// owners holds the owners of the shards of a group and topic, as far as the oracle has seen.
type owners struct {
	// The owner of each shard, or 0 if it is free.
	now    []uint64
	epochs []uint64           // the current epoch of each shard
	last   []uint64           // the last owner of each shard
	who    map[uint64]*member // members by number
	gone   map[uint64]bool    // members that have left or were evicted
}

// membershipChange is a write of a membership.
type membershipChange struct {
	membership  string
	owners      []uint64
	epochs      []uint64
	joins, gone []uint64
	stopped     bool // by an event
}

// membershipChangeOf returns the change of a membership in a request.
func membershipChangeOf(in any) (c membershipChange, ok bool) {
	switch in := in.(type) {
	case *dynamodb.UpdateItemInput:
		values := in.ExpressionAttributeValues
		if text(in.Key["skey"]) != membershipRow || values[":owners"] == nil {
			return c, false
		}
		c.membership, c.owners, c.epochs = text(in.Key["pkey"]), numbersOf(values[":owners"]), numbersOf(values[":epochs"])
		c.stopped = values[":stopped"] != nil
		for name, value := range values {
			member, err := strconv.ParseUint(strings.TrimPrefix(name, ":m"), 10, 64)
			switch _, isCondition := value.(*types.AttributeValueMemberN); {
			case err != nil:
			// A number is the heartbeat that a condition requires: the change removes this member.
			case isCondition:
				c.gone = append(c.gone, member)
			default:
				c.joins = append(c.joins, member)
			}
		}
		return c, true
	case *dynamodb.TransactWriteItemsInput:
		for _, item := range in.TransactItems {
			if put := item.Put; put != nil && text(put.Item["skey"]) == membershipRow {
				return membershipChange{
					membership: text(put.Item["pkey"]), owners: numbersOf(put.Item["owners"]), epochs: numbersOf(put.Item["epochs"]),
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

// enrol records a change by a member. It counts the members that join and leave, and the shards
// that move from a live member or from a departed one.
func (o *oracle) enrol(by *member, c membershipChange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.memberships[c.membership]
	if known == nil {
		known = &owners{last: make([]uint64, len(c.owners)), who: map[uint64]*member{}, gone: map[uint64]bool{}}
		o.memberships[c.membership] = known
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

// robbed records that all shards of a membership were taken from their owners, see [stealLease].
func (o *oracle) robbed(membership string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.memberships[membership]
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
// the membership is now. The caller holds mu.
func (o *oracle) isCurrent(w positionWrite) bool {
	known := o.memberships[w.membership()]
	return known == nil || w.shard >= len(known.epochs) || known.epochs[w.shard] == w.epoch
}

// owns reports whether a member owns the shard of a position now. The caller holds mu.
func (o *oracle) owns(m *member, w positionWrite) bool {
	known := o.memberships[w.membership()]
	return known != nil && w.shard < len(known.now) && known.now[w.shard] != 0 && known.who[known.now[w.shard]] == m
}

// compareEpochs compares the epochs in the table at the end. It returns an error if the oracle has
// missed a change, because then it has used wrong epochs.
func (o *oracle) compareEpochs(epochs map[string][]uint64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for membership, known := range o.memberships {
		if known.epochs != nil && !slices.Equal(known.epochs, epochs[membership]) {
			return fmt.Errorf("the oracle knows the epochs %v of membership %s, the table has %v", known.epochs, membership, epochs[membership])
		}
	}
	return nil
}

// stop records since when an event has stopped a group.
func (o *oracle) stop(by *member, c membershipChange) {
	key := stream{group: groupOf(c.membership), topic: topicOf(c.membership)}
	_, known := o.stopped[key]
	switch {
	case c.stopped && !known:
		o.trace.note("stop", by.name, stream{}, 0)
		o.stopped[key] = o.trace.now()
	case !c.stopped:
		delete(o.stopped, key)
	}
}

// left returns the number of shards whose last owner was a member.
func (o *oracle) left(m *member) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, known := range o.memberships {
		for _, owner := range known.last {
			if known.who[owner] == m {
				n++
			}
		}
	}
	return n
}

// wasLast reports whether a member was the last owner of the shard of a partition, which is free.
func (o *oracle) wasLast(m *member, partition string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, shard := o.memberships[groupOf(partition)+"/"+topicOf(partition)], shardOf(partition)
	return known != nil && known.now[shard] == 0 && known.who[known.last[shard]] == m
}

// stealLease takes all shards from their owners, as another member would that wrongly evicts them:
// the epochs rise, and the shards are free. It reports whether there is a membership that it could
// change.
func stealLease(ctx context.Context, client *dynamodb.Client, group, topic string) (bool, error) {
	key := map[string]types.AttributeValue{
		"pkey": &types.AttributeValueMemberS{Value: group + "/" + topic},
		"skey": &types.AttributeValueMemberS{Value: membershipRow},
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
