package story

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// throttling is the fraction of the requests that DynamoDB refuses while throttling is on.
const throttling = 0.04

// throttler throttles some of the requests of all processes of a story.
type throttler struct {
	on        atomic.Bool
	throttled atomic.Int64

	mu     sync.Mutex
	random *rand.Rand
}

func newThrottler(seed uint64) *throttler { return &throttler{random: rand.New(rand.NewPCG(seed, 1))} }

// connect returns a client of the database for one process, whose connection can be cut.
func (t *throttler) connect(to *dynamodb.Client) (*dynamodb.Client, *connection) {
	options := to.Options()
	wire := &connection{client: options.HTTPClient, throttler: t}
	options.HTTPClient = wire
	return dynamodb.New(options), wire
}

var calls = []string{"GetItem", "PutItem", "UpdateItem", "Query", "Scan", "TransactWriteItems", "TransactGetItems"}

func (t *throttler) refuses(r *http.Request) bool {
	_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !t.on.Load() || !slices.Contains(calls, call) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.random.Float64() < throttling
}

// connection is an HTTP client that can be cut off. Requests in progress may still have an effect,
// but no reply arrives: this is how a crash looks to the database.
type connection struct {
	client    dynamodb.HTTPClient
	throttler *throttler
	cut       atomic.Bool
}

var errCut = errors.New("the process has crashed")

func (c *connection) Do(r *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errCut
	}
	if c.throttler.refuses(r) {
		c.throttler.throttled.Add(1)
		return refuse(r), nil
	}
	response, err := c.client.Do(r)
	if c.cut.Load() {
		if err == nil {
			_ = response.Body.Close()
		}
		return nil, errCut
	}
	return response, err
}

// refuse replies as DynamoDB does if there is not enough capacity.
func refuse(r *http.Request) *http.Response {
	const body = `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}`
	return &http.Response{
		StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
	}
}
