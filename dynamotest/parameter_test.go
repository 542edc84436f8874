package dynamotest_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
)

func TestWhatIsNotSupportedIsRefusedByName(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	ctx, client := t.Context(), tab.client
	expected := map[string]types.ExpectedAttributeValue{"x": {Exists: aws.Bool(false)}}
	condition := map[string]types.Condition{"p": {
		ComparisonOperator: types.ComparisonOperatorEq, AttributeValueList: []types.AttributeValue{s("a")},
	}}
	for want, err := range map[string]error{
		"the parameter Expected of PutItem: use ConditionExpression": done(ctx, client.PutItem, &dynamodb.PutItemInput{
			TableName: aws.String("tab"), Item: keyOf("a", 1), Expected: expected,
		}),
		"the parameter Expected of DeleteItem: use ConditionExpression": done(ctx, client.DeleteItem, &dynamodb.DeleteItemInput{
			TableName: aws.String("tab"), Key: keyOf("a", 1), Expected: expected,
		}),
		"the parameter AttributeUpdates of UpdateItem: use UpdateExpression": done(ctx, client.UpdateItem, &dynamodb.UpdateItemInput{
			TableName: aws.String("tab"), Key: keyOf("a", 1), AttributeUpdates: map[string]types.AttributeValueUpdate{"x": {Value: n(1)}},
		}),
		"the parameter AttributesToGet of GetItem: use ProjectionExpression": done(ctx, client.GetItem, &dynamodb.GetItemInput{
			TableName: aws.String("tab"), Key: keyOf("a", 1), AttributesToGet: []string{"x"},
		}),
		"the parameter AttributesToGet of BatchGetItem: use ProjectionExpression": done(ctx, client.BatchGetItem, &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{"tab": {
				Keys: []map[string]types.AttributeValue{keyOf("a", 1)}, AttributesToGet: []string{"x"},
			}},
		}),
		"the parameter KeyConditions of Query: use KeyConditionExpression": done(ctx, client.Query, &dynamodb.QueryInput{
			TableName: aws.String("tab"), KeyConditions: condition,
		}),
		"the parameter ScanFilter of Scan: use FilterExpression": done(ctx, client.Scan, &dynamodb.ScanInput{
			TableName: aws.String("tab"), ScanFilter: condition,
		}),
		"the parameter WarmThroughput of UpdateTable": done(ctx, client.UpdateTable, &dynamodb.UpdateTableInput{
			TableName: aws.String("tab"), WarmThroughput: &types.WarmThroughput{ReadUnitsPerSecond: aws.Int64(1)},
		}),
		`the operation "DynamoDB_20120810.ExecuteStatement"`: done(ctx, client.ExecuteStatement, &dynamodb.ExecuteStatementInput{
			Statement: aws.String("SELECT * FROM tab"),
		}),
	} {
		assert.ErrorContains(t, err, "dynamotest does not support "+want)
	}
}

func TestAValueThatDoesNotExistIsRefused(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	in := putting("a", 1, nil)
	in.ReturnConsumedCapacity = "EVERYTHING"
	assert.ErrorContains(t, done(t.Context(), tab.client.PutItem, in),
		"Value 'EVERYTHING' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum value set: [INDEXES, TOTAL, NONE]")
}
