// Package testdb gives a test an empty DynamoDB: DynamoDB Local where the environment names one, dynamotest
// otherwise.
//
//	client := testdb.Client(t)
//
// So `go test ./...` needs nothing but Go and takes seconds, and `make test` runs the same tests on both. A test that
// is about one of the two asks for it: dynamotest.New or dynamolocaltest.Client.
package testdb

import (
	"testing"

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

// IsLocal tells whether Client gives DynamoDB Local.
func IsLocal() bool { return dynamolocal.EndpointFromEnv() != "" }
