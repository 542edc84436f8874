package wire_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest/internal/wire"
)

func BenchmarkDecodeTransactWriteItems(b *testing.B) {
	item := types.TransactWriteItem{Put: &types.Put{
		TableName:           aws.String("journal"),
		Item:                itemOf(8),
		ConditionExpression: aws.String("attribute_not_exists(a0)"),
	}}
	stub := &stub{status: http.StatusOK, body: []byte("{}")}
	_, err := stub.client().TransactWriteItems(b.Context(), &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{item, item},
	})
	require.NoError(b, err)
	benchmarkDecode[dynamodb.TransactWriteItemsInput](b, stub.sent)
}

func BenchmarkDecodePutItem(b *testing.B) {
	b.Run("small", func(b *testing.B) { benchmarkDecode[dynamodb.PutItemInput](b, putItem(b, itemOf(8))) })
	b.Run("large", func(b *testing.B) {
		large := map[string]types.AttributeValue{"b": &types.AttributeValueMemberB{Value: make([]byte, 400<<10)}}
		benchmarkDecode[dynamodb.PutItemInput](b, putItem(b, large))
	})
}

func BenchmarkEncodeGetItem(b *testing.B) {
	for name, item := range map[string]map[string]types.AttributeValue{
		"small": itemOf(8),
		"large": {"b": &types.AttributeValueMemberB{Value: make([]byte, 400<<10)}},
	} {
		b.Run(name, func(b *testing.B) {
			out := &dynamodb.GetItemOutput{Item: item, ConsumedCapacity: &types.ConsumedCapacity{
				TableName: aws.String("journal"), CapacityUnits: aws.Float64(0.5),
			}}
			buf := wire.AppendTo(nil, out)
			b.SetBytes(int64(len(buf)))
			b.ReportAllocs()
			for b.Loop() {
				buf = wire.AppendTo(buf[:0], out)
			}
		})
	}
}

func benchmarkDecode[In any](b *testing.B, body []byte) {
	b.Helper()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := wire.Decode(body, new(In)); err != nil {
			b.Fatal(err)
		}
	}
}

func putItem(b *testing.B, item map[string]types.AttributeValue) []byte {
	b.Helper()
	stub := &stub{status: http.StatusOK, body: []byte("{}")}
	_, err := stub.client().PutItem(b.Context(), &dynamodb.PutItemInput{TableName: aws.String("journal"), Item: item})
	require.NoError(b, err)
	return stub.sent
}

func itemOf(attributes int) map[string]types.AttributeValue {
	item := map[string]types.AttributeValue{}
	for i := range attributes {
		name := fmt.Sprintf("a%d", i)
		switch i % 4 {
		case 0, 1:
			item[name] = &types.AttributeValueMemberS{Value: "an-aggregate-of-some-length"}
		case 2:
			item[name] = &types.AttributeValueMemberN{Value: "1234567890"}
		default:
			item[name] = &types.AttributeValueMemberB{Value: make([]byte, 40)}
		}
	}
	return item
}
