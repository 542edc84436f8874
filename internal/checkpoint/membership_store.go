package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// ErrMembershipChanged reports that the membership has changed since it was read.
var ErrMembershipChanged = errors.New("the membership of the consumer group has changed meanwhile")

const (
	// membershipRow sorts after all rows of a shard, which can be in the same partition: see
	// RemoveShard.
	membershipRow     = "shards"
	registryPartition = "groups"

	attrID                = "id"
	attrChange            = "change"
	attrResets            = "resets"
	attrBase              = "base"
	attrStart             = "start_at"
	attrPaused            = "paused"
	attrStopped           = "stopped"
	attrResumed           = "resumed"
	attrExternalPositions = "external_positions"
	attrRows              = "rows"
	attrNoReplay          = "no_replay"
	attrJoined            = "joined"
	attrUnfenced          = "unfenced"
	attrEnded             = "ended"
	attrMembers           = "members"
	attrOwners            = "owners"
	attrEpochs            = "epochs"
	attrHeartbeat         = "hb"
	attrOperator          = "operator"
	attrName              = "name"
	attrLease             = "lease"
	attrToken             = "token"
	attrUntil             = "until"
	attrHanded            = "handed"
	attrBurst             = "burst_at"
	// the resets with which a new group of this name begins
	attrNext = "next_resets"
)

func (k Key) partition() string { return k.Group + "/" + k.Topic }

func (s *Store) membershipKey(k Key) item { return s.key(k.partition(), membershipRow) }

func (s *Store) registryKey(k Key) item { return s.key(registryPartition, k.partition()) }

// Keys returns the groups of the registry in the order of their names. It costs one read unit for
// about 40 groups.
func (s *Store) Keys(ctx context.Context) (keys []Key, err error) {
	err = s.readRegistry(ctx, func(k Key, row item) {
		if row[attrNext] == nil {
			keys = append(keys, k)
		}
	})
	return keys, err
}

// readRegistry passes the groups of the registry to see, also those that were removed.
func (s *Store) readRegistry(ctx context.Context, see func(Key, item)) error {
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName:                 &s.table,
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    aws.String("#pk = :pk"),
		ExpressionAttributeNames:  map[string]string{"#pk": s.keys.PartitionKey},
		ExpressionAttributeValues: item{":pk": text(registryPartition)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read registry of groups: %w", s.explain(err))
		}
		for _, row := range page.Items {
			group, topic, ok := strings.Cut(textOf(row[s.keys.SortKey]), "/")
			if ok {
				see(Key{Group: group, Topic: topic}, row)
			}
		}
	}
	return nil
}

// ReadMembership reads a membership with strong consistency, in one round trip. It returns the zero
// value if there is none.
func (s *Store) ReadMembership(ctx context.Context, k Key) (Membership, error) {
	return s.readMembership(ctx, k, true)
}

// PeekMembership is like ReadMembership, with eventual consistency, at half of the price.
func (s *Store) PeekMembership(ctx context.Context, k Key) (Membership, error) {
	return s.readMembership(ctx, k, false)
}

func (s *Store) readMembership(ctx context.Context, k Key, consistent bool) (Membership, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: s.membershipKey(k), ConsistentRead: &consistent,
	})
	if err != nil {
		return Membership{}, fmt.Errorf("read the membership of %s: %w", k.partition(), s.explain(err))
	}
	return s.membershipOf(k, out.Item)
}

// ChangeMembership replaces the membership seen by next, and returns the new membership. seen is
// the membership as the caller has read it. If the stored one differs, ChangeMembership returns the
// stored one and ErrMembershipChanged. It costs one round trip, and one write unit for each KB of
// the row. A row of about a hundred shards has 1 KB.
func (s *Store) ChangeMembership(ctx context.Context, k Key, seen, next Membership) (Membership, error) {
	next.change = s.journal.Config.NewID()
	var row item
	var err error
	if seen.Exists() {
		row, err = s.update(ctx, s.membershipUpdate(k, seen, next))
	} else {
		next.id = next.change
		row, err = s.createMembership(ctx, k, next)
	}
	if err != nil && !errors.Is(err, ErrFenced) {
		return Membership{}, fmt.Errorf("change the membership of %s: %w", k.partition(), err)
	}
	now, corrupt := s.membershipOf(k, row)
	switch {
	case corrupt != nil:
		return Membership{}, corrupt
	// In the second case the reply to the first attempt was lost.
	case err == nil, now.change == next.change:
		return now, nil
	default:
		return now, ErrMembershipChanged
	}
}

// createMembership writes a new membership and adds the group to the registry. If a group of that
// name was removed, the new group begins with a higher number of resets.
func (s *Store) createMembership(ctx context.Context, k Key, next Membership) (item, error) {
	for {
		row := s.membershipKey(k)
		members := item{}
		for m, state := range next.Members {
			members[strconv.FormatUint(m, 10)] = memberValue(state)
		}
		row[attrMembers] = &types.AttributeValueMemberM{Value: members}
		for name, value := range next.attributes() {
			if value != nil {
				row[name] = value
			}
		}
		_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{
				TableName: &s.table, Item: row,
				ConditionExpression:                 aws.String("attribute_not_exists(#pk)"),
				ExpressionAttributeNames:            map[string]string{"#pk": s.keys.PartitionKey},
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			}},
			{Put: &types.Put{
				TableName: &s.table, Item: s.registryKey(k),
				ConditionExpression:                 aws.String("attribute_not_exists(#next) OR #next = :next"),
				ExpressionAttributeNames:            map[string]string{"#next": attrNext},
				ExpressionAttributeValues:           item{":next": number(next.Resets)},
				ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
			}},
		}})
		if err == nil {
			return row, nil
		}
		exists, was := refusals(err)
		switch {
		case exists != nil:
			return exists, ErrFenced
		case was != nil:
			if next.Resets, err = uintOf(was[attrNext]); err == nil {
				next.Ended, err = endedOf(was[attrEnded])
			}
			if err != nil {
				return nil, fmt.Errorf("registry of groups: %w", err)
			}
			continue
		case !conflicts(err):
			return nil, s.explain(err)
		}
		select { // another member creates it at this moment
		case <-ctx.Done():
			return nil, s.explain(err)
		case <-time.After(rand.N(20 * time.Millisecond)):
		}
	}
}

// refusals returns the rows whose conditions refused a creation: the membership and the registry
// row.
func refusals(err error) (membership, registry item) {
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != 2 {
		return nil, nil
	}
	rows := make([]item, 2)
	for i, reason := range canceled.CancellationReasons {
		if aws.ToString(reason.Code) == "ConditionalCheckFailed" {
			rows[i] = reason.Item
		}
	}
	return rows[0], rows[1]
}

// attributes returns the attributes that a change sets, with nil for absent ones. Members are not
// among them, because their heartbeats rise meanwhile.
func (r Membership) attributes() item {
	attributes := item{
		attrID: text(r.id), attrChange: text(r.change), attrResets: number(r.Resets), attrBase: number(r.Base), attrJoined: number(r.Joined),
		attrOwners: numbers(r.Owners), attrEpochs: numbers(r.Epochs), attrStart: nil, attrPaused: nil,
		attrStopped: nil, attrResumed: nil, attrExternalPositions: nil, attrRows: nil, attrNoReplay: nil, attrUnfenced: nil, attrHanded: nil, attrBurst: nil, attrEnded: r.Ended.value(),
	}
	if len(r.Handed) > 0 {
		attributes[attrHanded] = &types.AttributeValueMemberSS{Value: r.Handed}
	}
	if !r.Burst.IsZero() {
		attributes[attrBurst] = number(r.Burst.UnixMilli())
	}
	if len(r.Unfenced) > 0 {
		attributes[attrUnfenced] = termsValue(r.Unfenced)
	}
	if !r.Start.IsZero() {
		attributes[attrStart] = number(r.Start.UnixMilli())
	}
	if r.Paused {
		attributes[attrPaused] = &types.AttributeValueMemberBOOL{Value: true}
	}
	if r.Stopped != nil {
		attributes[attrStopped] = stoppedValue(*r.Stopped)
	}
	if r.Rows != nil {
		attributes[attrRows] = r.Rows.value()
	}
	// Tools of earlier versions do not know rows. For them the positions are external.
	if r.ExternalPositions || r.Rows != nil {
		attributes[attrExternalPositions] = &types.AttributeValueMemberBOOL{Value: true}
	}
	if r.NoReplay {
		attributes[attrNoReplay] = &types.AttributeValueMemberBOOL{Value: true}
	}
	if r.Resumed > 0 {
		attributes[attrResumed] = number(r.Resumed)
	}
	return attributes
}

// membershipUpdate returns the update of everything except the members' heartbeats. Its condition
// requires that a removed member has sent no heartbeat since the row was read.
func (s *Store) membershipUpdate(k Key, seen, next Membership) *dynamodb.UpdateItemInput {
	var set, remove []string
	condition := []string{"#change = :seen"}
	names := map[string]string{}
	values := item{":seen": text(seen.change)}
	for _, name := range slices.Sorted(maps.Keys(next.attributes())) {
		names["#"+name] = name
		if value := next.attributes()[name]; value != nil {
			set = append(set, fmt.Sprintf("#%s = :%s", name, name))
			values[":"+name] = value
		} else {
			remove = append(remove, "#"+name)
		}
	}
	for m, state := range next.Members {
		if _, was := seen.Members[m]; !was {
			names["#members"], names[fmt.Sprint("#m", m)] = attrMembers, strconv.FormatUint(m, 10)
			values[fmt.Sprint(":m", m)] = memberValue(state)
			set = append(set, fmt.Sprintf("#members.#m%d = :m%d", m, m))
		}
	}
	for m, state := range seen.Members {
		if _, stays := next.Members[m]; !stays {
			names["#members"], names[fmt.Sprint("#m", m)], names["#heartbeat"] = attrMembers, strconv.FormatUint(m, 10), attrHeartbeat
			values[fmt.Sprint(":m", m)] = number(state.Heartbeat)
			remove = append(remove, fmt.Sprintf("#members.#m%d", m))
			condition = append(condition, fmt.Sprintf("#members.#m%d.#heartbeat = :m%d", m, m))
		}
	}
	expression := "SET " + strings.Join(set, ", ")
	if len(remove) > 0 {
		expression += " REMOVE " + strings.Join(remove, ", ")
	}
	return &dynamodb.UpdateItemInput{
		Key:                       s.membershipKey(k),
		UpdateExpression:          &expression,
		ConditionExpression:       aws.String(strings.Join(condition, " AND ")),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: values,
	}
}

// Heartbeat stores a heartbeat of a member and returns the membership. ErrFenced reports that the
// member was evicted.
func (s *Store) Heartbeat(ctx context.Context, k Key, r Membership, member, heartbeat uint64) (Membership, error) {
	row, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                 s.membershipKey(k),
		UpdateExpression:    aws.String("SET #members.#m.#heartbeat = :heartbeat"),
		ConditionExpression: aws.String("attribute_exists(#members.#m) AND #id = :id"),
		ExpressionAttributeNames: map[string]string{
			"#id": attrID, "#members": attrMembers, "#m": strconv.FormatUint(member, 10), "#heartbeat": attrHeartbeat,
		},
		ExpressionAttributeValues: item{":heartbeat": number(heartbeat), ":id": text(r.id)},
	})
	if err != nil {
		return Membership{}, fmt.Errorf("heartbeat of member %d of %s: %w", member, k.partition(), err)
	}
	return s.membershipOf(k, row)
}
