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

// Client returns a client for an empty database that no other test uses while this one runs. So
// tests may run in parallel and use the same table names. The cleanup of the test deletes the
// tables, and another test can use the database then. To create a second client for the same
// database with other options, call dynamodb.New(client.Options(), ...).
//
// Without an endpoint in the environment, it skips the test.
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
		// A leak check would report the goroutines of idle connections.
		defer closeIdle(keys.list)
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

// releaseTimeout limits how long a test waits for an emulator that hangs or has ended.
const releaseTimeout = time.Minute

func closeIdle(client *dynamodb.Client) {
	if c, ok := client.Options().HTTPClient.(*http.Client); ok {
		c.CloseIdleConnections()
	}
}

// limited is the transport of a client that stops working after its test has ended. Goroutines that
// the test has left running must not write into the tables of the next test.
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

// CloseIdleConnections is the method that http.Client calls on its transport.
func (l *limited) CloseIdleConnections() { l.RoundTripper.(*http.Transport).CloseIdleConnections() }

// Endpoint returns the URL of the emulator, for a test that needs more than a client. It skips and
// fails tests like Client.
func Endpoint(t testing.TB) string {
	t.Helper()
	endpoint := dynamolocal.EndpointFromEnv()
	if endpoint == "" {
		t.Skipf("needs DynamoDB Local: run `make test`, which starts it, or set %s to the URL of one", dynamolocal.EndpointEnv)
	}
	if err := check(endpoint); err != nil {
		t.Fatalf("%s: %v", dynamolocal.EndpointEnv, err)
	}
	return endpoint
}

// Maps an endpoint to a func() error, so that a test binary checks it once.
var checked sync.Map

func check(endpoint string) error {
	once, _ := checked.LoadOrStore(endpoint, sync.OnceValue(func() error {
		return dynamolocal.Check(context.Background(), endpoint)
	}))
	return once.(func() error)()
}
