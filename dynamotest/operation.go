package dynamotest

import (
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
)

// operation is one of DynamoDB's.
type operation struct {
	input func() any // a new one, to be filled
	run   func(db *engine.Database, c *engine.Cost, in any, p *plan) (out any, err error)
}

// operations are those that are supported, by name.
var operations = map[string]operation{
	"CreateTable":        onTables((*engine.Database).CreateTable),
	"DescribeTable":      onTables((*engine.Database).DescribeTable),
	"UpdateTable":        onTables((*engine.Database).UpdateTable),
	"DeleteTable":        onTables((*engine.Database).DeleteTable),
	"ListTables":         onTables((*engine.Database).ListTables),
	"UpdateTimeToLive":   onTables((*engine.Database).UpdateTimeToLive),
	"DescribeTimeToLive": onTables((*engine.Database).DescribeTimeToLive),
	"GetItem":            onItems((*engine.Database).GetItem),
	"PutItem":            onItems((*engine.Database).PutItem),
	"UpdateItem":         onItems((*engine.Database).UpdateItem),
	"DeleteItem":         onItems((*engine.Database).DeleteItem),
	"Query":              onItems((*engine.Database).Query),
	"Scan":               onItems((*engine.Database).Scan),
	"BatchGetItem":       onItems((*engine.Database).BatchGetItem),
	"BatchWriteItem":     onItems((*engine.Database).BatchWriteItem),
	"TransactGetItems":   onItems((*engine.Database).TransactGetItems),
	"TransactWriteItems": {
		input: func() any { return new(dynamodb.TransactWriteItemsInput) },
		run: func(db *engine.Database, c *engine.Cost, in any, p *plan) (any, error) {
			return result(db.TransactWriteItems(c, in.(*dynamodb.TransactWriteItemsInput), p.pauses)) //nolint:forcetypeassert // made above
		},
	},
}

func onItems[In, Out any](run func(*engine.Database, *engine.Cost, *In) (*Out, error)) operation {
	return operation{
		input: func() any { return new(In) },
		run: func(db *engine.Database, c *engine.Cost, in any, _ *plan) (any, error) {
			return result(run(db, c, in.(*In))) //nolint:forcetypeassert // made above
		},
	}
}

func onTables[In, Out any](run func(*engine.Database, *In) (*Out, error)) operation {
	return onItems(func(db *engine.Database, _ *engine.Cost, in *In) (*Out, error) { return run(db, in) })
}

// result keeps a nil pointer from becoming a value that is not nil.
func result[Out any](out *Out, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return out, nil
}

// operationOf finds the operation that a request is for. The request must be signed, but any signature does.
func operationOf(header http.Header) (name string, op operation, err error) {
	const api = "DynamoDB_20120810."
	target := header.Get("X-Amz-Target")
	name, ok := strings.CutPrefix(target, api)
	op, known := operations[name]
	switch {
	case !ok || !known:
		return name, op, apierror.UnknownOperation("dynamotest does not support the operation %q", target)
	case header.Get("Authorization") == "":
		return name, op, apierror.MissingAuthentication("Request is missing Authentication Token")
	}
	return name, op, nil
}
