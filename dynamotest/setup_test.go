package dynamotest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

type object = map[string]types.AttributeValue

func s(text string) types.AttributeValue { return &types.AttributeValueMemberS{Value: text} }
func n(number any) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(number)}
}

// fill returns a value that fills an item up to bytes. Its other attributes take others bytes.
func fill(bytes, others int) types.AttributeValue {
	return s(strings.Repeat("x", bytes-others-len("fill")))
}

// table is a database with a table "tab": partition key p, sort key s, a global index "global" on g
// that projects the keys and "kept", and a local index "local" on l that projects the keys.
type table struct {
	*testing.T
	db     *dynamotest.DB
	client *dynamodb.Client
}

func newTable(t *testing.T, options ...dynamotest.Option) *table {
	t.Helper()
	db := dynamotest.New(t, options...)
	tab := &table{T: t, db: db, client: db.Client()}
	tab.create("tab")
	return tab
}

func (t *table) create(name string) {
	t.Helper()
	key := func(hash, sort string) []types.KeySchemaElement {
		schema := []types.KeySchemaElement{{AttributeName: aws.String(hash), KeyType: types.KeyTypeHash}}
		if sort != "" {
			schema = append(schema, types.KeySchemaElement{AttributeName: aws.String(sort), KeyType: types.KeyTypeRange})
		}
		return schema
	}
	attribute := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind}
	}
	_, err := t.client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:   aws.String(name),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			attribute("p", types.ScalarAttributeTypeS), attribute("s", types.ScalarAttributeTypeN),
			attribute("g", types.ScalarAttributeTypeS), attribute("l", types.ScalarAttributeTypeS),
		},
		KeySchema: key("p", "s"),
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("global"), KeySchema: key("g", ""),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"kept"}},
		}},
		LocalSecondaryIndexes: []types.LocalSecondaryIndex{{
			IndexName: aws.String("local"), KeySchema: key("p", "l"),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	})
	require.NoError(t, err)
}

func keyOf(p string, number int) object { return object{"p": s(p), "s": n(number)} }

// putting returns a request that puts an item with attributes beside its key.
func putting(p string, number int, more object) *dynamodb.PutItemInput {
	item := keyOf(p, number)
	for name, v := range more {
		item[name] = v
	}
	return &dynamodb.PutItemInput{TableName: aws.String("tab"), Item: item}
}

func (t *table) put(p string, number int, more object) {
	t.Helper()
	_, err := t.client.PutItem(t.Context(), putting(p, number, more))
	require.NoError(t, err)
}

func (t *table) get(p string, number int) object {
	t.Helper()
	out, err := t.client.GetItem(t.Context(), getting(p, number))
	require.NoError(t, err)
	return out.Item
}

func getting(p string, number int) *dynamodb.GetItemInput {
	return &dynamodb.GetItemInput{TableName: aws.String("tab"), Key: keyOf(p, number), ConsistentRead: aws.Bool(true)}
}

func setting(p string, number int, update string, values object) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: aws.String("tab"), Key: keyOf(p, number),
		UpdateExpression: aws.String(update), ExpressionAttributeValues: values,
	}
}

func deleting(p string, number int) *dynamodb.DeleteItemInput {
	return &dynamodb.DeleteItemInput{TableName: aws.String("tab"), Key: keyOf(p, number)}
}

// querying returns a query of a partition of the table or of an index.
func querying(index, partition string) *dynamodb.QueryInput {
	in := &dynamodb.QueryInput{
		TableName: aws.String("tab"), KeyConditionExpression: aws.String("p = :p"),
		ExpressionAttributeValues: object{":p": s(partition)},
	}
	if index != "" {
		in.IndexName = aws.String(index)
	}
	if index == "global" {
		in.KeyConditionExpression = aws.String("g = :p")
	}
	return in
}

// adding returns a transaction that adds to the numbers of some items.
func adding(amount int, partitions ...string) *dynamodb.TransactWriteItemsInput {
	in := &dynamodb.TransactWriteItemsInput{}
	for _, p := range partitions {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Update: &types.Update{
			TableName: aws.String("tab"), Key: keyOf(p, 1),
			UpdateExpression: aws.String("ADD amount :a"), ExpressionAttributeValues: object{":a": n(amount)},
		}})
	}
	return in
}

func (t *table) amount(p string) string {
	t.Helper()
	if v, ok := t.get(p, 1)["amount"].(*types.AttributeValueMemberN); ok {
		return v.Value
	}
	return ""
}

// once returns a client that makes one attempt.
func (t *table) once() *dynamodb.Client {
	return t.db.Client(func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
}

// done runs a call and returns its error.
func done[In, Out any](
	ctx context.Context, call func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error), in *In,
) error {
	_, err := call(ctx, in)
	return err
}
