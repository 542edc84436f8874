// Package testdb provides an empty DynamoDB for a test. This is DynamoDB Local if the environment
// names one, and dynamotest otherwise.
//
//	client := testdb.Client(t)
//
// A dynamotest.Proxy in front of it injects faults:
//
//	proxy := dynamotest.NewProxy(t, testdb.Client(t))
//	client := proxy.Client(testdb.Once)
//
// So `go test ./...` needs only Go and takes seconds, and `make test` runs the same tests on both
// databases. A test for only one of them uses dynamotest.New or dynamolocaltest.Client.
package testdb

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/dynamolocal"
	"github.com/millrace-dev/millrace/internal/dynamolocal/dynamolocaltest"
)

// Client returns a client for an empty database that no other test uses.
func Client(t testing.TB) *dynamodb.Client {
	t.Helper()
	if IsLocal() {
		return dynamolocaltest.Client(t)
	}
	return dynamotest.New(t).Client()
}

// Once is a client option that turns retries off, so that the caller sees the effect of a fault.
func Once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// Seeds returns the number of seeds of a test. With the race detector it is a quarter of all: the
// test finds races with a few, and the check runs the same packages without the detector too.
func Seeds(all uint64) uint64 {
	if Race {
		return (all + 3) / 4
	}
	return all
}

// IsLocal reports whether Client returns a client of DynamoDB Local.
func IsLocal() bool { return dynamolocal.EndpointFromEnv() != "" }
