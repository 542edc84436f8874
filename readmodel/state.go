package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/journal"
)

// DefaultTable is the table of a [Config] that names none.
const DefaultTable = "readmodel"

// CreateTable makes the table where it is missing and waits until it is active; one that exists is compared. Name is that of [Config].Table.
// Errors: those of [journal.EnsureTable].
func CreateTable(ctx context.Context, client journal.Client, name string) error {
	if name == "" {
		name = DefaultTable
	}
	return journal.EnsureTable(ctx, client, &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(keyAttribute), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(keyAttribute), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	})
}

const (
	keyAttribute      = "name"
	changeAttribute   = "change"  // the id of the last one, and the condition of the next
	earlierAttribute  = "earlier" // ids of those before it, so that whose reply was lost is known though another has followed
	servingAttribute  = "serving"
	previousAttribute = "previous"
	lastAttribute     = "last"
	liveAttribute     = "live"
)

type item = map[string]types.AttributeValue

// state is what the item of a read model says.
type state struct {
	change            string
	earlier           []string // newest first
	serving, previous uint64
	last              uint64 // the highest number that was given
	live              []uint64
}

func (s state) exists() bool { return s.change != "" }

// made tells that a change was made. It is forgotten when maxEarlier others have followed.
func (s state) made(change string) bool {
	return change != "" && (s.change == change || slices.Contains(s.earlier, change))
}

const maxEarlier = attempts

func (s state) isLive(number uint64) bool { return slices.Contains(s.live, number) }

// current reads it where it must be there.
func (m *Model) current(ctx context.Context) (state, error) {
	s, err := m.read(ctx)
	if err == nil && !s.exists() {
		err = fmt.Errorf("%w: %q is not in table %q any more: open it anew if that is meant", ErrCorrupt, m.config.Name, m.config.Table)
	}
	return s, err
}

// readTimeout bounds a request, so that a dead connection holds up nobody for long.
const readTimeout = 5 * time.Second

// read reads it, strongly consistent.
func (m *Model) read(ctx context.Context) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	now := time.Now()
	out, err := m.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &m.config.Table, Key: m.key(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return state{}, m.explain("read", err)
	}
	s, err := m.stateOf(out.Item)
	if err != nil {
		return state{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.exists() {
		m.cached, m.readAt = s, now
	}
	return s, nil
}

var errUnchanged = errors.New("nothing to change")

// attempts bounds how often a change is made anew because somebody else was faster.
const attempts = 10

// change makes a change on what is there. errUnchanged of the function is no error.
func (m *Model) change(ctx context.Context, what string, create bool, change func(state) (state, error)) (state, error) {
	var next state
	for range attempts {
		seen, err := m.read(ctx)
		if err != nil {
			return state{}, err
		}
		if seen.made(next.change) {
			return next, nil // the reply to it was lost
		}
		if !seen.exists() && !create {
			_, err = m.current(ctx)
			return state{}, err
		}
		next, err = change(seen)
		if errors.Is(err, errUnchanged) {
			return seen, nil
		}
		if err != nil {
			return state{}, fmt.Errorf("%s read model %q: %w", what, m.config.Name, err)
		}
		next.change = uuid.NewString()
		if seen.exists() {
			next.earlier = append([]string{seen.change}, seen.earlier[:min(len(seen.earlier), maxEarlier-1)]...)
		}
		err = m.write(ctx, seen, next)
		var moved *types.ConditionalCheckFailedException
		if errors.As(err, &moved) {
			continue
		}
		if err != nil {
			return state{}, m.explain(what, err)
		}
		m.mu.Lock()
		m.cached, m.readAt = next, time.Now()
		m.mu.Unlock()
		return next, nil
	}
	return state{}, fmt.Errorf("%s read model %q: %w", what, m.config.Name, ErrChanged)
}

func (m *Model) write(ctx context.Context, seen, next state) error {
	live := &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
	for _, n := range next.live {
		live.Value = append(live.Value, number(n))
	}
	earlier := &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
	for _, change := range next.earlier {
		earlier.Value = append(earlier.Value, text(change))
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &m.config.Table, Key: m.key(),
		UpdateExpression:    aws.String("SET #c = :c, #e = :e, #s = :s, #p = :p, #n = :n, #l = :l"),
		ConditionExpression: aws.String("attribute_not_exists(#c)"),
		ExpressionAttributeNames: map[string]string{
			"#c": changeAttribute, "#e": earlierAttribute, "#s": servingAttribute, "#p": previousAttribute, "#n": lastAttribute, "#l": liveAttribute,
		},
		ExpressionAttributeValues: item{
			":c": text(next.change), ":e": earlier, ":s": number(next.serving), ":p": number(next.previous), ":n": number(next.last), ":l": live,
		},
	}
	if seen.exists() {
		in.ConditionExpression = aws.String("#c = :seen")
		in.ExpressionAttributeValues[":seen"] = text(seen.change)
	}
	_, err := m.client.UpdateItem(ctx, in)
	return err
}

func (m *Model) key() item {
	return item{keyAttribute: text(m.config.Name)}
}

func (m *Model) stateOf(row item) (s state, err error) {
	if len(row) == 0 {
		return s, nil
	}
	for name, field := range map[string]*uint64{
		servingAttribute: &s.serving, previousAttribute: &s.previous, lastAttribute: &s.last,
	} {
		if *field, err = numberOf(row[name]); err != nil {
			return state{}, fmt.Errorf("%w: %s of %q in table %q: %w", ErrCorrupt, name, m.config.Name, m.config.Table, err)
		}
	}
	if change, ok := row[changeAttribute].(*types.AttributeValueMemberS); ok {
		s.change = change.Value
	}
	if earlier, ok := row[earlierAttribute].(*types.AttributeValueMemberL); ok {
		for _, v := range earlier.Value {
			if change, ok := v.(*types.AttributeValueMemberS); ok {
				s.earlier = append(s.earlier, change.Value)
			}
		}
	}
	live, ok := row[liveAttribute].(*types.AttributeValueMemberL)
	if !ok || !s.exists() || s.serving == 0 {
		return state{}, fmt.Errorf("%w: %q in table %q lacks attributes", ErrCorrupt, m.config.Name, m.config.Table)
	}
	for _, v := range live.Value {
		n, err := numberOf(v)
		if err != nil {
			return state{}, fmt.Errorf("%w: %s of %q in table %q: %w", ErrCorrupt, liveAttribute, m.config.Name, m.config.Table, err)
		}
		s.live = append(s.live, n)
	}
	return s, nil
}

func (m *Model) explain(what string, err error) error {
	return fmt.Errorf("%s read model %q: %w", what, m.config.Name, explain(err, m.config.Table))
}

// explain is journal.Explain for the table of read models.
func explain(err error, table string) error {
	var missing *types.ResourceNotFoundException
	if errors.As(err, &missing) {
		return fmt.Errorf("%w: %q (readmodel.CreateTable makes it): %w", journal.ErrTableMissing, table, err)
	}
	return journal.Explain(err, table)
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
}

func numberOf(v types.AttributeValue) (uint64, error) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("%T is no number", v)
	}
	return strconv.ParseUint(n.Value, 10, 64)
}
