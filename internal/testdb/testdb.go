// Package testdb lends a test an empty DynamoDB: DynamoDB Local where the environment names one,
// dynamotest otherwise.
//
//	client := testdb.Client(t)
//
// Faults come from a dynamotest.Proxy in front of it:
//
//	proxy := dynamotest.NewProxy(t, testdb.Client(t))
//	client := proxy.Client(testdb.Once)
//
// So `go test ./...` needs nothing but Go and takes seconds, and `make test-all` runs the same
// tests on both. A test that is about one of the two asks for it: dynamotest.New or
// dynamolocaltest.Client.
package testdb

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/dynamolocal"
	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
)

// Client returns a client for an empty database that no other test sees.
func Client(t testing.TB) *dynamodb.Client {
	t.Helper()
	if IsLocal() {
		return dynamolocaltest.Client(t)
	}
	return dynamotest.New(t).Client()
}

// Once is an option of a client that sends each request once, so that what a fault does reaches the
// caller.
func Once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// IsLocal reports whether Client returns a client of DynamoDB Local.
func IsLocal() bool { return dynamolocal.EndpointFromEnv() != "" }
