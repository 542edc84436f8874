package dynamotest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
)

// null is a transport that answers immediately, to measure the cost of the client.
type null struct{ reply string }

func (n null) RoundTrip(request *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, request.Body)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: request,
		Body: io.NopCloser(bytes.NewReader([]byte(n.reply))),
	}, nil
}

// each runs a benchmark on a database and on a transport that answers immediately.
func each(b *testing.B, reply string, run func(b *testing.B, client *dynamodb.Client)) {
	b.Helper()
	b.Run("dynamotest", func(b *testing.B) {
		client := dynamotest.New(b).Client()
		_, err := client.CreateTable(b.Context(), &dynamodb.CreateTableInput{
			TableName:   aws.String("table"),
			BillingMode: types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{
				{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS},
				{AttributeName: aws.String("sk"), AttributeType: types.ScalarAttributeTypeN},
			},
			KeySchema: []types.KeySchemaElement{
				{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash},
				{AttributeName: aws.String("sk"), KeyType: types.KeyTypeRange},
			},
		})
		require.NoError(b, err)
		run(b, client)
	})
	b.Run("null", func(b *testing.B) {
		run(b, dynamotest.New(b).Client(func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: null{reply}} }))
	})
}

func item(n int) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk":      &types.AttributeValueMemberS{Value: "customer-1"},
		"sk":      &types.AttributeValueMemberN{Value: fmt.Sprint(n)},
		"payload": &types.AttributeValueMemberB{Value: bytes.Repeat([]byte("x"), 200)},
		"type":    &types.AttributeValueMemberS{Value: "order.placed.v1"},
	}
}

func BenchmarkGetItem(b *testing.B) {
	each(b, `{"Item":{"pk":{"S":"customer-1"},"sk":{"N":"7"},"type":{"S":"order.placed.v1"}}}`, func(b *testing.B, client *dynamodb.Client) {
		_, err := client.PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String("table"), Item: item(7)})
		require.NoError(b, err)
		in := &dynamodb.GetItemInput{TableName: aws.String("table"), Key: map[string]types.AttributeValue{"pk": item(7)["pk"], "sk": item(7)["sk"]}}
		b.ReportAllocs()
		for b.Loop() {
			_, err := client.GetItem(b.Context(), in)
			require.NoError(b, err)
		}
	})
}

func BenchmarkPutItem(b *testing.B) {
	each(b, `{}`, func(b *testing.B, client *dynamodb.Client) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			n++
			_, err := client.PutItem(b.Context(), &dynamodb.PutItemInput{
				TableName: aws.String("table"), Item: item(n), ConditionExpression: aws.String("attribute_not_exists(pk)"),
			})
			require.NoError(b, err)
		}
	})
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		dynamotest.Open().Client()
	}
}

// A commit of one event, as the journal makes it.
func BenchmarkTransactWriteItems(b *testing.B) {
	each(b, `{}`, func(b *testing.B, client *dynamodb.Client) {
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			n++
			_, err := client.TransactWriteItems(b.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
				{Update: &types.Update{
					TableName:                aws.String("table"),
					Key:                      map[string]types.AttributeValue{"pk": item(0)["pk"], "sk": item(0)["sk"]},
					UpdateExpression:         aws.String("SET #v = :next"),
					ConditionExpression:      aws.String("attribute_not_exists(#v) OR #v = :expected"),
					ExpressionAttributeNames: map[string]string{"#v": "version"},
					ExpressionAttributeValues: map[string]types.AttributeValue{
						":next": &types.AttributeValueMemberN{Value: fmt.Sprint(n)}, ":expected": &types.AttributeValueMemberN{Value: fmt.Sprint(n - 1)},
					},
				}},
				{Put: &types.Put{TableName: aws.String("table"), Item: item(n), ConditionExpression: aws.String("attribute_not_exists(pk)")}},
			}})
			require.NoError(b, err)
		}
	})
}
