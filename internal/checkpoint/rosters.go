package checkpoint

import (
	"context"
	"encoding/binary"
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

// ErrRosterMoved means that the roster is not any more as it was seen.
var ErrRosterMoved = errors.New("the roster of the consumer group has changed meanwhile")

const (
	rosterRow         = "roster"
	registryPartition = "groups"

	attrID        = "id"
	attrChange    = "change"
	attrResets    = "generation"
	attrBase      = "base"
	attrStart     = "start_at"
	attrPaused    = "paused"
	attrStopped   = "stopped"
	attrResumed   = "resumed"
	attrElsewhere = "positions_elsewhere"
	attrJoined    = "joined"
	attrUnsettled = "unsettled"
	attrMembers   = "members"
	attrOwners    = "owners"
	attrEpochs    = "epochs"
	attrBeat      = "beat"
	attrOperator  = "operator"
	attrName      = "name"
	attrLease     = "lease"
	attrToken     = "token"
	attrNext      = "next_generation" // of a group that was removed
)

func (k Key) partition() string { return k.Group + "/" + k.Topic }

func (s *Store) rosterKey(k Key) item { return s.key(k.partition(), rosterRow) }

func (s *Store) registryKey(k Key) item { return s.key(registryPartition, k.partition()) }

// registryRow is what stays of a group that was removed.
func registryRow(key item, next uint64) item {
	key[attrNext] = number(next)
	return key
}

// Keys returns the groups of the registry, in the order of their names: one read unit for some 40
// of them.
func (s *Store) Keys(ctx context.Context) ([]Key, error) {
	var keys []Key
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
			return nil, fmt.Errorf("read registry of groups: %w", s.explain(err))
		}
		for _, row := range page.Items {
			if group, topic, ok := strings.Cut(textOf(row[s.keys.SortKey]), "/"); ok && row[attrNext] == nil {
				keys = append(keys, Key{Group: group, Topic: topic})
			}
		}
	}
	return keys, nil
}

// ReadRoster reads a roster, strongly consistent: one round trip. One that does not exist is the
// zero value.
func (s *Store) ReadRoster(ctx context.Context, k Key) (Roster, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: s.rosterKey(k), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return Roster{}, fmt.Errorf("read roster of %s: %w", k.partition(), s.explain(err))
	}
	return s.rosterOf(k, out.Item)
}

// ChangeRoster replaces a roster as it was seen by the next one, and gives that. With
// ErrRosterMoved it gives the roster as it is. One round trip; one write unit for each KB, which is
// a roster of about a hundred shards.
func (s *Store) ChangeRoster(ctx context.Context, k Key, seen, next Roster) (Roster, error) {
	next.change = s.journal.Config().NewID()
	var row item
	var err error
	if seen.Exists() {
		row, err = s.update(ctx, s.rosterUpdate(k, seen, next))
	} else {
		next.id = next.change
		row, err = s.createRoster(ctx, k, next)
	}
	if err != nil && !errors.Is(err, ErrFenced) {
		return Roster{}, fmt.Errorf("change roster of %s: %w", k.partition(), err)
	}
	now, corrupt := s.rosterOf(k, row)
	switch {
	case corrupt != nil:
		return Roster{}, corrupt
	case err == nil, now.change == next.change: // the latter where the reply to the first attempt was lost
		return now, nil
	default:
		return now, ErrRosterMoved
	}
}

// createRoster writes a new roster, and enters the group in the registry. Where a group of that
// name was removed, it begins with a higher count of resets.
func (s *Store) createRoster(ctx context.Context, k Key, next Roster) (item, error) {
	for {
		row := s.rosterKey(k)
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
			if next.Resets, err = uintOf(was[attrNext]); err != nil {
				return nil, fmt.Errorf("registry of groups: %w", err)
			}
			continue
		case !conflicts(err):
			return nil, s.explain(err)
		}
		select { // another member makes it at this moment
		case <-ctx.Done():
			return nil, s.explain(err)
		case <-time.After(rand.N(20 * time.Millisecond)):
		}
	}
}

// refusals returns the rows that refused a creation: the roster, the registry's.
func refusals(err error) (roster, registry item) {
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

// attributes are those of a roster that one change sets; nil for what is absent. Members are not
// among them: their beats rise meanwhile.
func (r Roster) attributes() item {
	attributes := item{
		attrID: text(r.id), attrChange: text(r.change), attrResets: number(r.Resets), attrBase: number(r.Base), attrJoined: number(r.Joined),
		attrOwners: numbers(r.Owners), attrEpochs: numbers(r.Epochs), attrStart: nil, attrPaused: nil,
		attrStopped: nil, attrResumed: nil, attrElsewhere: nil, attrUnsettled: nil,
	}
	if len(r.Unsettled) > 0 {
		attributes[attrUnsettled] = termsValue(r.Unsettled)
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
	if r.Elsewhere {
		attributes[attrElsewhere] = &types.AttributeValueMemberBOOL{Value: true}
	}
	if r.Resumed > 0 {
		attributes[attrResumed] = number(r.Resumed)
	}
	return attributes
}

// rosterUpdate sets everything but the members' beats. A member that is removed must not have shown
// a sign of life since it was seen.
func (s *Store) rosterUpdate(k Key, seen, next Roster) *dynamodb.UpdateItemInput {
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
			names["#members"], names[fmt.Sprint("#m", m)], names["#beat"] = attrMembers, strconv.FormatUint(m, 10), attrBeat
			values[fmt.Sprint(":m", m)] = number(state.Beat)
			remove = append(remove, fmt.Sprintf("#members.#m%d", m))
			condition = append(condition, fmt.Sprintf("#members.#m%d.#beat = :m%d", m, m))
		}
	}
	expression := "SET " + strings.Join(set, ", ")
	if len(remove) > 0 {
		expression += " REMOVE " + strings.Join(remove, ", ")
	}
	return &dynamodb.UpdateItemInput{
		Key:                       s.rosterKey(k),
		UpdateExpression:          &expression,
		ConditionExpression:       aws.String(strings.Join(condition, " AND ")),
		ExpressionAttributeNames:  names,
		ExpressionAttributeValues: values,
	}
}

// Beat shows that a member of a roster lives, and gives the roster as it is. ErrFenced: it is no
// member any more.
func (s *Store) Beat(ctx context.Context, k Key, r Roster, member, beat uint64) (Roster, error) {
	row, err := s.update(ctx, &dynamodb.UpdateItemInput{
		Key:                 s.rosterKey(k),
		UpdateExpression:    aws.String("SET #members.#m.#beat = :beat"),
		ConditionExpression: aws.String("attribute_exists(#members.#m) AND #id = :id"),
		ExpressionAttributeNames: map[string]string{
			"#id": attrID, "#members": attrMembers, "#m": strconv.FormatUint(member, 10), "#beat": attrBeat,
		},
		ExpressionAttributeValues: item{":beat": number(beat), ":id": text(r.id)},
	})
	if err != nil {
		return Roster{}, fmt.Errorf("beat of member %d of %s: %w", member, k.partition(), err)
	}
	return s.rosterOf(k, row)
}

func memberValue(m Member) types.AttributeValue {
	value := item{attrBeat: number(m.Beat)}
	if m.Lease > 0 {
		value[attrLease] = number(m.Lease.Milliseconds())
	}
	if m.Token > 0 {
		value[attrToken] = number(m.Token)
	}
	if m.Operator {
		value[attrOperator] = &types.AttributeValueMemberBOOL{Value: true}
	}
	if m.Name != "" {
		value[attrName] = text(m.Name)
	}
	return &types.AttributeValueMemberM{Value: value}
}

func numbers(list []uint64) types.AttributeValue {
	value := &types.AttributeValueMemberL{Value: make([]types.AttributeValue, len(list))}
	for i, n := range list {
		value.Value[i] = number(n)
	}
	return value
}

// rosterOf reads a row. None is the zero value.
func (s *Store) rosterOf(k Key, row item) (Roster, error) {
	if len(row) == 0 {
		return Roster{}, nil
	}
	r := Roster{Members: map[uint64]Member{}, id: textOf(row[attrID]), change: textOf(row[attrChange])}
	var errs []error
	uintOf := func(v types.AttributeValue) uint64 {
		n, err := uintOf(v)
		errs = append(errs, err)
		return n
	}
	r.Resets, r.Base, r.Joined = uintOf(row[attrResets]), uintOf(row[attrBase]), uintOf(row[attrJoined])
	r.Resumed = uintOf(row[attrResumed])
	var err error
	r.Start, err = timeOf(row[attrStart])
	errs = append(errs, err)
	r.Paused, r.Elsewhere = isTrue(row[attrPaused]), isTrue(row[attrElsewhere])
	if why, ok := row[attrStopped].(*types.AttributeValueMemberM); ok {
		r.Stopped, err = stoppedOf(k.Topic, why.Value)
		errs = append(errs, err)
	}
	members, _ := row[attrMembers].(*types.AttributeValueMemberM)
	if members != nil {
		for name, value := range members.Value {
			m, err := strconv.ParseUint(name, 10, 64)
			state, ok := value.(*types.AttributeValueMemberM)
			if err != nil || !ok {
				errs = append(errs, fmt.Errorf("%w: member %q", ErrCorrupt, name))
				continue
			}
			r.Members[m] = Member{
				Beat: uintOf(state.Value[attrBeat]), Operator: isTrue(state.Value[attrOperator]),
				Lease: time.Duration(uintOf(state.Value[attrLease])) * time.Millisecond, Token: uintOf(state.Value[attrToken]),
				Name: textOf(state.Value[attrName]),
			}
		}
	}
	for _, list := range []struct {
		name string
		into *[]uint64
	}{{attrOwners, &r.Owners}, {attrEpochs, &r.Epochs}} {
		if value, ok := row[list.name].(*types.AttributeValueMemberL); ok {
			for _, n := range value.Value {
				*list.into = append(*list.into, uintOf(n))
			}
		}
	}
	r.Unsettled, err = termsOf(row[attrUnsettled], s.journal.Shards())
	errs = append(errs, err)
	if shards := s.journal.Shards(); r.change == "" || len(r.Owners) != shards || len(r.Epochs) != shards {
		errs = append(errs, fmt.Errorf("%w: it has owners of %d shards and epochs of %d, where there are %d", ErrCorrupt, len(r.Owners), len(r.Epochs), shards))
	}
	if err := errors.Join(errs...); err != nil {
		return Roster{}, fmt.Errorf("roster of %s in table %q: %w", k.partition(), s.table, err)
	}
	return r, nil
}

// termsValue is three numbers for each term, as varints: mostly four bytes, where a list of numbers
// would take ten. The roster is written with every heartbeat.
func termsValue(terms []Term) types.AttributeValue {
	var value []byte
	for _, t := range terms {
		value = binary.AppendUvarint(value, uint64(t.Shard))
		value = binary.AppendUvarint(value, t.Epoch)
		value = binary.AppendUvarint(value, t.Member)
	}
	return &types.AttributeValueMemberB{Value: value}
}

func termsOf(v types.AttributeValue, shards int) (terms []Term, err error) {
	b, _ := v.(*types.AttributeValueMemberB)
	if b == nil {
		return nil, nil
	}
	for rest := b.Value; len(rest) > 0; {
		var numbers [3]uint64
		for i := range numbers {
			n, size := binary.Uvarint(rest)
			if size <= 0 {
				return nil, fmt.Errorf("%w: its unsettled terms are %x", ErrCorrupt, b.Value)
			}
			numbers[i], rest = n, rest[size:]
		}
		if numbers[0] >= uint64(shards) {
			return nil, fmt.Errorf("%w: it has an unsettled term of shard %d, where there are %d shards", ErrCorrupt, numbers[0], shards)
		}
		terms = append(terms, Term{Shard: int(numbers[0]), Epoch: numbers[1], Member: numbers[2]})
	}
	return terms, nil
}

func isTrue(v types.AttributeValue) bool {
	b, ok := v.(*types.AttributeValueMemberBOOL)
	return ok && b.Value
}
