package dynamotest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		"the operation ExecuteStatement": done(ctx, client.ExecuteStatement, &dynamodb.ExecuteStatementInput{
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

// The decoder accepts parameters inside of a request if the SDK has them. This test lists those
// that the engine knows, so that one of a later SDK is noticed.
func TestTheSDKHasNoParameterInsideARequestThatWeDoNotKnow(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]any{
		"Item TableName ConditionExpression ExpressionAttributeNames ExpressionAttributeValues ReturnValuesOnConditionCheckFailure":                 types.Put{},
		"Key TableName UpdateExpression ConditionExpression ExpressionAttributeNames ExpressionAttributeValues ReturnValuesOnConditionCheckFailure": types.Update{},
		"Key TableName ConditionExpression ExpressionAttributeNames ExpressionAttributeValues ReturnValuesOnConditionCheckFailure":                  types.Delete{},
		"ConditionExpression Key TableName ExpressionAttributeNames ExpressionAttributeValues ReturnValuesOnConditionCheckFailure":                  types.ConditionCheck{},
		"Key TableName ExpressionAttributeNames ProjectionExpression":                                                                               types.Get{},
		"Keys AttributesToGet ConsistentRead ExpressionAttributeNames ProjectionExpression":                                                         types.KeysAndAttributes{},
		"ConditionCheck Delete Put Update": types.TransactWriteItem{},
		"Get":                              types.TransactGetItem{},
		"DeleteRequest PutRequest":         types.WriteRequest{},
		"AttributeName Enabled":            types.TimeToLiveSpecification{},
		"IndexName KeySchema Projection OnDemandThroughput ProvisionedThroughput WarmThroughput": types.GlobalSecondaryIndex{},
		"IndexName KeySchema Projection":  types.LocalSecondaryIndex{},
		"NonKeyAttributes ProjectionType": types.Projection{},
	} {
		var names []string
		for i := range reflect.TypeOf(of).NumField() {
			if field := reflect.TypeOf(of).Field(i); field.IsExported() {
				names = append(names, field.Name)
			}
		}
		assert.Equal(t, want, strings.Join(names, " "), "%T", of)
	}
}

// The Go SDK does not send such requests, but other clients can.
func TestRequestsThatLackWhatIsRequiredAreRefused(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	server := httptest.NewServer(tab.db.Handler())
	t.Cleanup(server.Close)
	const key = `"TableName":"tab","Key":{"p":{"S":"a"},"s":{"N":"1"}}`
	for body, operation := range map[string]string{
		`{}`:                       "PutItem",
		`{"TableName":"tab"}`:      "PutItem",
		`{"TableName":"tab" }`:     "GetItem",
		`{"TableName": "tab"}`:     "UpdateItem",
		`{ "TableName":"tab"}`:     "DeleteItem",
		`{"TableName" :"tab"}`:     "Query",
		`{"TransactItems":null}`:   "TransactWriteItems",
		`{"TransactItems":[{}]}`:   "TransactWriteItems",
		`{"TransactItems":[null]}`: "TransactGetItems",
		`{"TransactItems":[{"Put":{"TableName":"tab"}}]}`:      "TransactWriteItems",
		`{"TransactItems":[{"ConditionCheck":{` + key + `}}]}`: "TransactWriteItems",
		`{"TransactItems":[{"Update":{` + key + `}}]}`:         "TransactWriteItems",
		`{"TransactItems":[{"Delete":{"TableName":"tab"}}]}`:   "TransactWriteItems",
		`{"TransactItems":[{"Get":{"TableName":"tab"}}]}`:      "TransactGetItems",
		`{"RequestItems":{"tab":null}}`:                        "BatchGetItem",
		`{"RequestItems":{"tab":[]}}`:                          "BatchWriteItem",
		`{"RequestItems":{"tab":[{}]}}`:                        "BatchWriteItem",
		`{"RequestItems":{"tab":[{"PutRequest":{}}]}}`:         "BatchWriteItem",
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
		request.Header.Set("Authorization", "any")
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		reply, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusBadRequest, response.StatusCode, "%s %s", operation, body)
		assert.Contains(t, string(reply), "ValidationException", "%s %s", operation, body)
	}
}
