package dynamolocaltest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/internal/dynamolocal"
)

// Client returns a client for an empty database that no other test uses while this one runs, so
// tests may run in parallel without table names of their own. The cleanup of the test deletes the
// tables, and another test is then given the database. A second client for the same database, with
// options of its own, is dynamodb.New(client.Options(), ...).
//
// Without an endpoint in the environment it skips the test under -short and fails it otherwise.
func Client(t testing.TB) *dynamodb.Client {
	t.Helper()
	endpoint := Endpoint(t)
	keys, err := keysOf(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keys.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := dynamodb.New(dynamolocal.NewClient(endpoint, key).Options(), withOwnTokens(rand.Text()))
	connections := limit(client)
	t.Cleanup(func() {
		defer closeIdle(keys.list) // idle connections have goroutines that look like leaks of the test
		defer closeIdle(client)
		connections.end()
		if t.Failed() {
			return // its goroutines may still run, and would disturb the next test
		}
		ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
		defer cancel()
		database := dynamolocal.NewClient(endpoint, key)
		defer closeIdle(database)
		if err := keys.release(ctx, database, key); err != nil {
			t.Logf("the database is not used again: %v", err)
		}
	})
	return client
}

// releaseTimeout bounds what a test waits for an emulator that hangs or has ended.
const releaseTimeout = time.Minute

func closeIdle(client *dynamodb.Client) {
	if c, ok := client.Options().HTTPClient.(*http.Client); ok {
		c.CloseIdleConnections()
	}
}

// limited is the transport of a client that no longer works once its test has ended: what the test
// has left running must not write into the next test's tables.
type limited struct {
	http.RoundTripper
	ended atomic.Bool
}

func limit(client *dynamodb.Client) *limited {
	c := client.Options().HTTPClient.(*http.Client)
	l := &limited{RoundTripper: c.Transport}
	c.Transport = l
	return l
}

func (l *limited) end() { l.ended.Store(true) }

func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.ended.Load() {
		return nil, errors.New("the test that this client was made for has ended")
	}
	return l.RoundTripper.RoundTrip(r)
}

// CloseIdleConnections is what http.Client looks for in its transport.
func (l *limited) CloseIdleConnections() { l.RoundTripper.(*http.Transport).CloseIdleConnections() }

// Endpoint returns the URL of the emulator, for a test that needs more than a client. It skips and
// fails as Client does.
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
