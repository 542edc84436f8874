package dynamotest

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
)

// operation is an operation of DynamoDB.
type operation struct {
	input      func() any // returns a new input
	output     func() any // returns a new output
	parameters parameters
	run        func(db *engine.Database, c *engine.Cost, in any, f *engine.Interference) (out any, err error)
}

// Parameters that several operations have in common.
var (
	reading = []string{"TableName", "ConsistentRead", "ExpressionAttributeNames", "ProjectionExpression", "ReturnConsumedCapacity"}
	paging  = slices.Concat(reading, []string{
		"IndexName", "Select", "Limit", "ExclusiveStartKey", "FilterExpression", "ExpressionAttributeValues",
	})
	writing = []string{
		"TableName", "ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues",
		"ReturnConsumedCapacity", "ReturnItemCollectionMetrics", "ReturnValues", "ReturnValuesOnConditionCheckFailure",
	}
)

// operations are the supported operations by name, with their parameters. The engine refuses some
// values of CreateTable and UpdateTable.
var operations = map[string]operation{
	"CreateTable": onTables((*engine.Database).CreateTable, "TableName", "AttributeDefinitions", "BillingMode",
		"DeletionProtectionEnabled", "GlobalSecondaryIndexes", "KeySchema", "LocalSecondaryIndexes", "OnDemandThroughput",
		"ProvisionedThroughput", "SSESpecification", "StreamSpecification", "TableClass", "Tags"),
	"DescribeTable": onTables((*engine.Database).DescribeTable, "TableName"),
	"UpdateTable": onTables((*engine.Database).UpdateTable, "TableName", "AttributeDefinitions", "BillingMode",
		"DeletionProtectionEnabled", "GlobalSecondaryIndexUpdates", "OnDemandThroughput", "ProvisionedThroughput", "ReplicaUpdates",
		"SSESpecification", "StreamSpecification", "TableClass"),
	"DeleteTable":        onTables((*engine.Database).DeleteTable, "TableName"),
	"ListTables":         onTables((*engine.Database).ListTables, "ExclusiveStartTableName", "Limit"),
	"UpdateTimeToLive":   onTables((*engine.Database).UpdateTimeToLive, "TableName", "TimeToLiveSpecification"),
	"DescribeTimeToLive": onTables((*engine.Database).DescribeTimeToLive, "TableName"),

	"GetItem":    withInterference((*engine.Database).GetItem, slices.Concat(reading, []string{"Key"})...),
	"Query":      withInterference((*engine.Database).Query, slices.Concat(paging, []string{"KeyConditionExpression", "ScanIndexForward"})...),
	"Scan":       withInterference((*engine.Database).Scan, slices.Concat(paging, []string{"Segment", "TotalSegments"})...),
	"PutItem":    onItems((*engine.Database).PutItem, slices.Concat(writing, []string{"Item"})...),
	"UpdateItem": onItems((*engine.Database).UpdateItem, slices.Concat(writing, []string{"Key", "UpdateExpression"})...),
	"DeleteItem": onItems((*engine.Database).DeleteItem, slices.Concat(writing, []string{"Key"})...),

	"BatchGetItem": withInterference((*engine.Database).BatchGetItem, "RequestItems", "ReturnConsumedCapacity"),
	"BatchWriteItem": withInterference((*engine.Database).BatchWriteItem,
		"RequestItems", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics"),
	"TransactGetItems": onItems((*engine.Database).TransactGetItems, "TransactItems", "ReturnConsumedCapacity"),
	"TransactWriteItems": withInterference((*engine.Database).TransactWriteItems,
		"TransactItems", "ClientRequestToken", "ReturnConsumedCapacity", "ReturnItemCollectionMetrics"),
}

func withInterference[In, Out any](run func(*engine.Database, *engine.Cost, *In, *engine.Interference) (*Out, error), supported ...string) operation {
	return operation{
		input:      func() any { return new(In) },
		output:     func() any { return new(Out) },
		parameters: parametersOf(reflect.TypeFor[In](), supported),
		run: func(db *engine.Database, c *engine.Cost, in any, f *engine.Interference) (any, error) {
			return result(run(db, c, in.(*In), f)) //nolint:forcetypeassert // input makes it
		},
	}
}

func onItems[In, Out any](run func(*engine.Database, *engine.Cost, *In) (*Out, error), supported ...string) operation {
	return withInterference(func(db *engine.Database, c *engine.Cost, in *In, _ *engine.Interference) (*Out, error) {
		return run(db, c, in)
	}, supported...)
}

func onTables[In, Out any](run func(*engine.Database, *In) (*Out, error), supported ...string) operation {
	return onItems(func(db *engine.Database, _ *engine.Cost, in *In) (*Out, error) { return run(db, in) }, supported...)
}

// result prevents a nil pointer from becoming a value that is not nil.
func result[Out any](out *Out, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return out, nil
}

// operationOf returns the operation of a request. The request must have a signature, which is not
// verified.
func operationOf(header http.Header) (name string, op operation, err error) {
	name, isDynamoDB := nameOf(header)
	op, known := operations[name]
	switch {
	case isStreams(header):
		return name, op, apierror.UnknownOperation("dynamotest has no streams: it does not support %s", header.Get("X-Amz-Target"))
	case !isDynamoDB:
		return name, op, apierror.UnknownOperation("this is not a request to DynamoDB: it has no header X-Amz-Target such as %sListTables", api)
	case !known:
		return name, op, apierror.UnknownOperation("dynamotest does not support the operation %s", name)
	case header.Get("Authorization") == "":
		return name, op, apierror.MissingAuthentication("Request is missing Authentication Token")
	}
	return name, op, nil
}

const api = "DynamoDB_20120810."

// isStreams reports whether a request is to DynamoDB Streams, an API of its own at another host.
func isStreams(header http.Header) bool {
	return strings.HasPrefix(header.Get("X-Amz-Target"), "DynamoDBStreams_20120810.")
}

// nameOf returns the name of the operation of a request.
func nameOf(header http.Header) (name string, isDynamoDB bool) {
	return strings.CutPrefix(header.Get("X-Amz-Target"), api)
}
