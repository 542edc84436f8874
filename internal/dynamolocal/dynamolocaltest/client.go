package dynamolocaltest

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
)

// Client returns a client for an empty database that nobody else sees; tests may run in parallel without
// table names of their own. Each call makes another database, which costs the emulator about six threads
// and 2 MB until it ends: fine for each test, too much for each iteration of a loop. A second client for
// the same database, with options of its own, is dynamodb.New(client.Options(), ...).
//
// Without an endpoint in the environment it skips the test under -short and fails it otherwise.
func Client(t testing.TB) *dynamodb.Client {
	t.Helper()
	// The text has 26 letters and digits, the only characters that the emulator takes in an access key.
	client := dynamolocal.NewClient(Endpoint(t), rand.Text())
	t.Cleanup(func() {
		if c, ok := client.Options().HTTPClient.(*http.Client); ok {
			c.CloseIdleConnections() // else their goroutines look like leaks of the test
		}
	})
	return client
}

// Endpoint returns the URL of the emulator, for a test that needs more than a client. It skips and fails as
// Client does.
func Endpoint(t testing.TB) string {
	t.Helper()
	endpoint := dynamolocal.EndpointFromEnv()
	switch {
	case endpoint != "":
		if err := check(endpoint); err != nil {
			t.Fatalf("%s: %v", dynamolocal.EndpointEnv, err)
		}
	case testing.Short():
		t.Skip("needs DynamoDB Local, which -short leaves out")
	default:
		t.Fatalf("this test needs DynamoDB Local: `make test` starts it by itself; "+
			"else set %s to the URL of one, or pass -short to leave such tests out", dynamolocal.EndpointEnv)
	}
	return endpoint
}

var checked sync.Map // endpoint -> func() error, so that a test binary asks once

func check(endpoint string) error {
	once, _ := checked.LoadOrStore(endpoint, sync.OnceValue(func() error {
		return dynamolocal.Check(context.Background(), endpoint)
	}))
	return once.(func() error)()
}
