package scale

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/test/draw"
)

// wire is the connection of a process to the database. A request takes a whole number of
// milliseconds, so that many requests arrive at the same time and use all processors.
type wire struct {
	next http.RoundTripper

	mu     sync.Mutex
	random *rand.Rand
}

// Number of milliseconds that requests take.
const (
	leastRequest, mostRequest   = 3, 8
	leastTransact, mostTransact = 10, 20
)

// newWire returns a client that repeats requests as the SDK does by default.
func newWire(db *dynamotest.DB, seed uint64) *dynamodb.Client {
	return db.Client(func(o *dynamodb.Options) {
		o.HTTPClient = &wire{
			next:   o.HTTPClient.(*http.Client).Transport, //nolint:forcetypeassert // as dynamotest makes it
			random: draw.New(seed, 0),
		}
		o.Retryer = sdkretry.NewStandard()
		// Computing digests would take longer than the database does.
		o.DisableValidateResponseChecksum = true
		o.APIOptions = append(o.APIOptions, v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware)
	})
}

// Do sends a request.
func (w *wire) Do(request *http.Request) (*http.Response, error) {
	least, most := leastRequest, mostRequest
	if strings.HasSuffix(request.Header.Get("X-Amz-Target"), ".TransactWriteItems") {
		least, most = leastTransact, mostTransact
	}
	w.mu.Lock()
	ms := least + w.random.IntN(most-least+1)
	w.mu.Unlock()
	if ctx := request.Context(); !retry.Sleep(ctx, time.Duration(ms)*time.Millisecond) {
		return nil, ctx.Err()
	}
	return w.next.RoundTrip(request)
}
