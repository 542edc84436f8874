package sim

import (
	"context"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const rosterRow = "roster"

// owners is who owns the shards of a group and topic, as far as was seen.
type owners struct {
	last []uint64           // who owned a shard last
	who  map[uint64]*member // by number
	gone map[uint64]bool    // members that have left, or were struck off
}

// rosterChange is a write of a roster.
type rosterChange struct {
	roster      string
	owners      []uint64
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
		c.roster, c.owners = text(in.Key["pkey"]), numbersOf(values[":owners"])
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
				return rosterChange{roster: text(put.Item["pkey"]), owners: numbersOf(put.Item["owners"]), joins: []uint64{1}}, true
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
