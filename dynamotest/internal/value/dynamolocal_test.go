package value_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
)

func TestDynamoDBLocalStoresNormalValues(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	for _, test := range normal {
		if kind := value.Type(test.in); kind == "L" || kind == "M" {
			// DynamoDB Local does not change numbers in documents. The Developer Guide says for all
			// numbers: "Leading and trailing zeroes are trimmed".
			test.want = test.in
		}
		require.NoError(t, table.put(value.Item{"v": test.in}), "%s %+v", value.Type(test.in), test.in)
		assert.Equal(t, test.want, table.get()["v"])
	}
}

func TestDynamoDBLocalRefusesTheSameValues(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	for _, test := range refused {
		err := table.put(value.Item{"v": test.in})
		var api smithy.APIError
		require.ErrorAs(t, err, &api, test.want)
		assert.Equal(t, "ValidationException", api.ErrorCode(), test.want)
		want := test.want
		switch { // DynamoDB Local has other messages
		case strings.HasPrefix(want, numeric):
			want = "A value provided cannot be converted into a number"
		case want == digits:
			want = "DynamoDB only supports precision up to 38 digits"
		}
		assert.Equal(t, want, api.ErrorMessage())
	}
}

func TestDynamoDBLocalHasTheSameSizes(t *testing.T) {
	t.Parallel()
	table := newTable(t)
	for _, test := range sizes {
		rest := value.MaxItemSize - value.ItemSize(value.Item{"k": &s{Value: key}, "filler": &s{}, "v": &s{}}) - test.want
		fits := table.put(value.Item{"v": test.v, "filler": &s{Value: strings.Repeat("x", rest)}})
		assert.NoError(t, fits, "%s %+v", value.Type(test.v), test.v)
		tooLarge := table.put(value.Item{"v": test.v, "filler": &s{Value: strings.Repeat("x", rest+1)}})
		assert.ErrorContains(t, tooLarge, "Item size has exceeded the maximum allowed size", "%s %+v", value.Type(test.v), test.v)
	}
}

const key = "key"

// table has one item.
type table struct {
	*testing.T
	client *dynamodb.Client
}

func newTable(t *testing.T) table {
	t.Helper()
	client := dynamolocaltest.Client(t)
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String("values"),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("k"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("k"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	return table{T: t, client: client}
}

func (t table) put(item value.Item) error {
	item["k"] = &s{Value: key}
	_, err := t.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("values"), Item: item})
	return err
}

func (t table) get() value.Item {
	t.Helper()
	out, err := t.client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String("values"),
		Key:       value.Item{"k": &s{Value: key}},
	})
	require.NoError(t, err)
	return out.Item
}
