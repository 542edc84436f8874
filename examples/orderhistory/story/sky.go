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

// throttling is the part of the calls that DynamoDB refuses in a storm.
const throttling = 0.04

// sky is what the processes of a story have over them: in a storm their calls of DynamoDB are
// throttled now and then.
type sky struct {
	storm     atomic.Bool
	throttled atomic.Int64

	mu     sync.Mutex
	random *rand.Rand
}

func newSky(seed uint64) *sky { return &sky{random: rand.New(rand.NewPCG(seed, 1))} }

// connect returns a process's own way to the database, which can be cut off.
func (s *sky) connect(to *dynamodb.Client) (*dynamodb.Client, *connection) {
	options := to.Options()
	wire := &connection{client: options.HTTPClient, sky: s}
	options.HTTPClient = wire
	return dynamodb.New(options), wire
}

var calls = []string{"GetItem", "PutItem", "UpdateItem", "Query", "Scan", "TransactWriteItems", "TransactGetItems"}

func (s *sky) strikes(r *http.Request) bool {
	_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !s.storm.Load() || !slices.Contains(calls, call) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.Float64() < throttling
}

// connection is an HTTP client that can be cut off. What is under way then may still have an
// effect, but no reply comes back: that is how a crash looks to the database.
type connection struct {
	client dynamodb.HTTPClient
	sky    *sky
	cut    atomic.Bool
}

var errCut = errors.New("the process has crashed")

func (c *connection) Do(r *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errCut
	}
	if c.sky.strikes(r) {
		c.sky.throttled.Add(1)
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

// refuse answers as DynamoDB does for want of capacity.
func refuse(r *http.Request) *http.Response {
	const body = `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow down"}`
	return &http.Response{
		StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
	}
}
