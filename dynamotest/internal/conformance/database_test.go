package conformance_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
)

// database has the tables "items" with the partition key p, and "sorted" with the partition key p
// and the number s as its sort key. Each case has a partition of its own.
type database struct {
	*testing.T
	client *dynamodb.Client
	cases  int
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	db := &database{T: t, client: testdb.Client(t)}
	db.create("items", "p:S", "")
	db.create("sorted", "p:S", "s:N")
	return db
}

// create creates a table whose keys have the form name:type.
func (db *database) create(name, partition, sort string) {
	db.Helper()
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest}
	in.KeySchema, in.AttributeDefinitions = schema(partition, sort)
	_, err := db.client.CreateTable(db.Context(), in)
	require.NoError(db, err)
}

func schema(partition, sort string) (key []types.KeySchemaElement, definitions []types.AttributeDefinition) {
	kind := types.KeyTypeHash
	for _, attribute := range []string{partition, sort} {
		if attribute == "" {
			break
		}
		name, scalar, _ := strings.Cut(attribute, ":")
		key = append(key, types.KeySchemaElement{AttributeName: &name, KeyType: kind})
		definitions = append(definitions, types.AttributeDefinition{
			AttributeName: &name, AttributeType: types.ScalarAttributeType(scalar),
		})
		kind = types.KeyTypeRange
	}
	return key, definitions
}

// partition returns a partition key that no other case has.
func (db *database) partition() string {
	db.cases++
	return fmt.Sprint("case ", db.cases)
}

// run runs a case. local says what DynamoDB Local does instead; it is empty if it does the same.
func (db *database) run(name, local string, check func() error) {
	db.Run(name, func(t *testing.T) {
		t.Helper()
		err := check()
		switch {
		case local != "" && testdb.IsLocal():
			if err == nil {
				t.Errorf("DynamoDB Local does what AWS does: remove the mark %q", local)
			}
		case err != nil:
			t.Error(err)
		}
	})
}

func (db *database) put(table string, item m) error {
	_, err := db.client.PutItem(db.Context(), &dynamodb.PutItemInput{TableName: &table, Item: attributes(item)})
	return err
}

// get returns the text of an item, "none" if there is none.
func (db *database) get(table string, key m) (string, error) {
	out, err := db.client.GetItem(db.Context(), &dynamodb.GetItemInput{
		TableName: &table, Key: attributes(key), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return "", err
	}
	return text(out.Item), nil
}

// refused reports an error unless a request is invalid, with a part of its message. DynamoDB Local
// has other messages.
func refused(err error, with string) error {
	if testdb.IsLocal() {
		with = "ValidationException"
	}
	if err == nil {
		return fmt.Errorf("it succeeds, but must fail with %q", with)
	}
	if !strings.Contains(err.Error(), with) {
		return fmt.Errorf("it must fail with %q, but fails with: %w", with, err)
	}
	return nil
}

func same(want, got string) error {
	if want != got {
		return fmt.Errorf("want %s\n got %s", want, got)
	}
	return nil
}

// m is an item or another map with values of Go: string, int, bool, nil, []byte, number, list, set,
// numbers and m.
type (
	m       = map[string]any
	list    = []any
	number  string
	set     []string
	numbers []string
	object  = map[string]types.AttributeValue
)

func attributes(from m) object {
	if from == nil {
		return nil
	}
	item := object{}
	for name, v := range from {
		item[name] = attribute(v)
	}
	return item
}

func attribute(v any) types.AttributeValue {
	switch v := v.(type) {
	case string:
		return &types.AttributeValueMemberS{Value: v}
	case int:
		return &types.AttributeValueMemberN{Value: fmt.Sprint(v)}
	case number:
		return &types.AttributeValueMemberN{Value: string(v)}
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	case []byte:
		return &types.AttributeValueMemberB{Value: v}
	case set:
		return &types.AttributeValueMemberSS{Value: v}
	case numbers:
		return &types.AttributeValueMemberNS{Value: v}
	case m:
		return &types.AttributeValueMemberM{Value: attributes(v)}
	case list:
		l := &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
		for _, element := range v {
			l.Value = append(l.Value, attribute(element))
		}
		return l
	}
	return &types.AttributeValueMemberNULL{Value: true}
}

// text returns an item as text, with the elements of sets in order.
func text(item object) string {
	if item == nil {
		return "none"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(item)) {
		parts = append(parts, name+":"+textOf(item[name]))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func textOf(v types.AttributeValue) string {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return fmt.Sprintf("%q", v.Value)
	case *types.AttributeValueMemberN:
		return v.Value
	case *types.AttributeValueMemberB:
		return fmt.Sprintf("%x", v.Value)
	case *types.AttributeValueMemberBOOL:
		return fmt.Sprint(v.Value)
	case *types.AttributeValueMemberSS:
		return fmt.Sprintf("SS%q", slices.Sorted(slices.Values(v.Value)))
	case *types.AttributeValueMemberNS:
		return fmt.Sprintf("NS%v", slices.Sorted(slices.Values(v.Value)))
	case *types.AttributeValueMemberM:
		return text(v.Value)
	case *types.AttributeValueMemberL:
		var parts []string
		for _, element := range v.Value {
			parts = append(parts, textOf(element))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return "null"
}

// split returns the names (#) and the values (:) of an expression.
func split(parameters m) (names map[string]string, values object) {
	for name, v := range parameters {
		if strings.HasPrefix(name, ":") {
			if values == nil {
				values = object{}
			}
			values[name] = attribute(v)
			continue
		}
		if names == nil {
			names = map[string]string{}
		}
		names[name] = v.(string) //nolint:forcetypeassert // a mistake in a case
	}
	return names, values
}

// with returns an item with more attributes.
func with(key, more m) m {
	all := maps.Clone(key)
	maps.Copy(all, more)
	return all
}

// outcome returns "true" or "false" for a condition, or its error.
func outcome(err error) string {
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return "true"
	case errors.As(err, &failed):
		return "false"
	}
	return err.Error()
}
