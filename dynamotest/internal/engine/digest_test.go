package engine

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/dynamotest/internal/value"
)

func TestADigestIsTheSameForEqualTransactionsOnly(t *testing.T) {
	t.Parallel()
	update := func(change func(*types.Update)) []types.TransactWriteItem {
		u := &types.Update{
			TableName: aws.String("table"), UpdateExpression: aws.String("SET a = :a"), ConditionExpression: aws.String("b = :b"),
			Key:                      value.Item{"p": &types.AttributeValueMemberS{Value: "1"}, "s": &types.AttributeValueMemberN{Value: "1"}},
			ExpressionAttributeNames: map[string]string{"#x": "x", "#y": "y"},
			ExpressionAttributeValues: value.Item{
				":a": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberBOOL{Value: true}}},
				":b": &types.AttributeValueMemberBS{Value: [][]byte{{1}, {2, 3}}},
			},
		}
		if change != nil {
			change(u)
		}
		return []types.TransactWriteItem{{Update: u}}
	}
	want := digestOf(update(nil))
	for range 20 { // maps have another order each time
		assert.Equal(t, want, digestOf(update(nil)))
	}
	assert.Equal(t, want, digestOf(update(func(u *types.Update) {
		u.ExpressionAttributeValues[":b"] = &types.AttributeValueMemberBS{Value: [][]byte{{2, 3}, {1}}}
	})), "a set has no order")
	for name, change := range map[string]func(*types.Update){
		"table":          func(u *types.Update) { u.TableName = aws.String("other") },
		"update":         func(u *types.Update) { u.UpdateExpression = aws.String("SET a = :b") },
		"condition":      func(u *types.Update) { u.ConditionExpression = nil },
		"type of a key":  func(u *types.Update) { u.Key["p"] = &types.AttributeValueMemberN{Value: "1"} },
		"values swapped": func(u *types.Update) { u.Key["p"], u.Key["s"] = u.Key["s"], u.Key["p"] },
		"a name":         func(u *types.Update) { u.ExpressionAttributeNames["#x"] = "z" },
		"names swapped":  func(u *types.Update) { u.ExpressionAttributeNames = map[string]string{"#x": "y", "#y": "x"} },
		"a value":        func(u *types.Update) { u.ExpressionAttributeValues[":a"] = &types.AttributeValueMemberL{} },
		"a boolean": func(u *types.Update) {
			u.ExpressionAttributeValues[":a"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberBOOL{}}}
		},
		"what is where in a set": func(u *types.Update) {
			u.ExpressionAttributeValues[":b"] = &types.AttributeValueMemberBS{Value: [][]byte{{1, 2}, {3}}}
		},
		"return values": func(u *types.Update) {
			u.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
		},
	} {
		assert.NotEqual(t, want, digestOf(update(change)), name)
	}
	key := value.Item{"p": &types.AttributeValueMemberS{Value: "1"}}
	kinds := map[uint64]bool{}
	for _, action := range []types.TransactWriteItem{
		{Put: &types.Put{TableName: aws.String("table"), Item: key}},
		{Update: &types.Update{TableName: aws.String("table"), Key: key}},
		{Delete: &types.Delete{TableName: aws.String("table"), Key: key}},
		{ConditionCheck: &types.ConditionCheck{TableName: aws.String("table"), Key: key}},
	} {
		kinds[digestOf([]types.TransactWriteItem{action})] = true
	}
	assert.Len(t, kinds, 4)
}
