package readmodel

import (
	"context"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/tables"
	"github.com/millrace-dev/millrace/internal/units"
	"github.com/millrace-dev/millrace/journal"
)

// DefaultTable is the default of [Config].Table.
const DefaultTable = "readmodel"

// CreateTable creates the table if it is missing and waits until it is active. It compares the keys
// of an existing table. Name is [Config].Table. Errors: [*journal.DescriptorMismatchError] if the
// table exists with other keys, [journal.ErrAccess].
func CreateTable(ctx context.Context, client journal.Client, name string) error {
	return tables.Create(ctx, client, TableSchema(name))
}

// TableSchema describes the table that [CreateTable] makes.
func TableSchema(name string) journal.TableSchema {
	if name == "" {
		name = DefaultTable
	}
	return journal.TableSchema{Input: &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(keyAttribute), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(keyAttribute), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	}}
}

const (
	keyAttribute = "name"
	// The id of the last change, and the condition of the next.
	changeAttribute = "change"
	// Ids of earlier changes, so that a change whose reply was lost is recognised even after
	// another one.
	earlierAttribute  = "earlier"
	servingAttribute  = "serving"
	previousAttribute = "previous"
	lastAttribute     = "last"
	liveAttribute     = "live"
	// The forms of the live generations, by number. Items from before there were forms lack it.
	formsAttribute = "forms"
)

type item = map[string]types.AttributeValue

func (m *Model) write(ctx context.Context, seen, next state) error {
	live := &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
	for _, n := range next.live {
		live.Value = append(live.Value, number(n))
	}
	forms := item{}
	for n, form := range next.forms {
		forms[strconv.FormatUint(n, 10)] = text(form)
	}
	earlier := &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
	for _, change := range next.earlier {
		earlier.Value = append(earlier.Value, text(change))
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &m.config.Table, Key: m.key(),
		UpdateExpression:    aws.String("SET #c = :c, #e = :e, #s = :s, #p = :p, #n = :n, #l = :l, #f = :f"),
		ConditionExpression: aws.String("attribute_not_exists(#c)"),
		ExpressionAttributeNames: map[string]string{
			"#c": changeAttribute, "#e": earlierAttribute, "#s": servingAttribute, "#p": previousAttribute, "#n": lastAttribute, "#l": liveAttribute,
			"#f": formsAttribute,
		},
		ExpressionAttributeValues: item{
			":c": text(next.change), ":e": earlier, ":s": number(next.serving), ":p": number(next.previous), ":n": number(next.last), ":l": live,
			":f": &types.AttributeValueMemberM{Value: forms},
		},
	}
	if seen.exists() {
		in.ConditionExpression = aws.String("#c = :seen")
		in.ExpressionAttributeValues[":seen"] = text(seen.change)
	}
	_, err := units.Send(ctx, in, m.client.UpdateItem, nil)
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
	if s.forms, err = formsOf(row[formsAttribute]); err != nil {
		return state{}, fmt.Errorf("%w: %s of %q in table %q: %w", ErrCorrupt, formsAttribute, m.config.Name, m.config.Table, err)
	}
	return s, nil
}

func formsOf(v types.AttributeValue) (forms map[uint64]string, err error) {
	if v == nil {
		return nil, nil
	}
	byNumber, ok := v.(*types.AttributeValueMemberM)
	if !ok {
		return nil, fmt.Errorf("%T is not a map", v)
	}
	forms = map[uint64]string{}
	for key, v := range byNumber.Value {
		n, err := strconv.ParseUint(key, 10, 64)
		if err != nil {
			return nil, err
		}
		form, ok := v.(*types.AttributeValueMemberS)
		if !ok {
			return nil, fmt.Errorf("%T is not a text", v)
		}
		forms[n] = form.Value
	}
	return forms, nil
}

func (m *Model) explain(what string, err error) error {
	return fmt.Errorf("%s read model %q: %w", what, m.config.Name, explain(err, m.config.Table))
}

// explain calls [tables.Explain] for a table of this package.
func explain(err error, table string) error {
	return tables.Explain(err, table, "readmodel.CreateTable")
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n uint64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatUint(n, 10)}
}

func numberOf(v types.AttributeValue) (uint64, error) {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("%T is not a number", v)
	}
	return strconv.ParseUint(n.Value, 10, 64)
}
