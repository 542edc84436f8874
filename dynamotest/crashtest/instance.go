package crashtest

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest"
)

// openAttempts limits how often an instance is opened while requests fail.
const openAttempts = 100

// Instance is one process of the service.
type Instance[S Service] struct {
	// Service is what the function of [New] has returned.
	Service S
	// Proxy is the connection to the database. Inject faults here to disturb this instance only.
	Proxy *dynamotest.Proxy

	fleet    *Fleet[S]
	number   int
	fuse     *fuse
	listener *listener
	cancel   context.CancelFunc
	crashed  atomic.Bool
	refuses  atomic.Bool // requests to the database
	stopped  atomic.Bool
	ended    chan struct{}
	err      error // of Run, when ended is closed
}

// Start opens another instance and runs it. An instance that cannot be opened is opened again, as
// platforms do, up to 100 times: requests of the start can fail, too.
func (f *Fleet[S]) Start() *Instance[S] {
	f.t.Helper()
	f.mu.Lock()
	f.started++
	i := &Instance[S]{fleet: f, number: f.started, ended: make(chan struct{})}
	f.mu.Unlock()
	i.Proxy = dynamotest.NewProxy(f.t, f.db.Client(), dynamotest.WithSeed(f.seed))
	client := i.Proxy.Client(func(o *dynamodb.Options) {
		i.fuse = &fuse{next: o.HTTPClient, refuses: &i.refuses}
		o.HTTPClient = i.fuse
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	i.cancel = cancel
	if err := i.open(ctx, client); err != nil {
		cancel()
		f.t.Fatalf("crashtest: instance %d cannot be opened: %v", i.number, err)
	}
	f.mu.Lock()
	f.instances = append(f.instances, i)
	f.mu.Unlock()
	f.ends.Add(1)
	go i.run(ctx)
	return i
}

func (i *Instance[S]) open(ctx context.Context, client *dynamodb.Client) error {
	ctx, cancel := context.WithTimeout(ctx, i.fleet.Patience)
	defer cancel()
	var err error
	for range openAttempts {
		var socket net.Listener
		if socket, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
			return err
		}
		i.listener = &listener{Listener: socket, open: map[net.Conn]bool{}}
		if i.Service, err = i.fleet.open(ctx, client, i.listener); err == nil {
			return nil
		}
		i.listener.cut()
		pause(ctx, 10*time.Millisecond)
		if ctx.Err() != nil {
			break
		}
	}
	return err
}

func (i *Instance[S]) run(ctx context.Context) {
	defer i.fleet.ends.Done()
	defer close(i.ended)
	i.err = i.Service.Run(ctx)
	expected := i.crashed.Load() || i.stopped.Load()
	i.leave()
	i.listener.cut()
	i.Proxy.Close()
	i.cancel()
	if !expected {
		i.fleet.t.Errorf("crashtest: instance %d has ended by itself: %v", i.number, i.err)
	}
}

// leave takes the instance out of the fleet, so it gets no more requests.
func (i *Instance[S]) leave() {
	i.fleet.mu.Lock()
	defer i.fleet.mu.Unlock()
	i.fleet.instances = slices.DeleteFunc(i.fleet.instances, func(other *Instance[S]) bool { return other == i })
}

// URL returns the address of the instance. [Fleet.Client] knows it.
func (i *Instance[S]) URL() string { return "http://" + i.listener.Addr().String() }

// Crash ends the instance at once, in the middle of its work: its requests to the database fail,
// and its connections to clients break. It does not wait, see [Instance.Ended].
func (i *Instance[S]) Crash() {
	i.crashed.Store(true)
	i.leave()
	i.listener.cut() // before requests fail, so that no client gets a reply about that
	i.refuses.Store(true)
	i.Proxy.Close()
	i.cancel()
}

// CrashAfter crashes the instance after that many more requests to the database. The request after
// them either takes effect, and its reply is lost, or it does not arrive. The seed decides which.
func (i *Instance[S]) CrashAfter(requests int) {
	i.fuse.light(requests, draw(i.fleet.seed, "crash", uint64(requests)) < 0.5, i.Crash) //nolint:gosec // not negative
}

// Stop stops the instance in order, and returns the error of its Run.
func (i *Instance[S]) Stop() error {
	i.end()
	<-i.ended
	return i.err
}

// end makes Run end.
func (i *Instance[S]) end() {
	i.stopped.Store(true)
	i.leave()
	i.cancel()
}

// Ended returns a channel that is closed when Run has returned, after a crash or a stop.
func (i *Instance[S]) Ended() <-chan struct{} { return i.ended }

// fuse counts the requests of an instance until it crashes. It refuses later requests, so
// that what remains of the instance in memory does not repeat them until it gives up.
type fuse struct {
	next    dynamodb.HTTPClient
	refuses *atomic.Bool

	mu      sync.Mutex
	left    int
	arrives bool   // whether the request of the crash takes effect
	crash   func() // nil if no crash is planned
}

func (f *fuse) light(requests int, arrives bool, crash func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left, f.arrives, f.crash = requests, arrives, crash
}

// burn counts a request. It returns the crash if it is the last one.
func (f *fuse) burn() (crash func(), arrives bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crash == nil {
		return nil, false
	}
	if f.left > 0 {
		f.left--
		return nil, false
	}
	crash, f.crash = f.crash, nil
	return crash, f.arrives
}

// Do implements dynamodb.HTTPClient.
func (f *fuse) Do(r *http.Request) (*http.Response, error) {
	if f.refuses.Load() {
		return refusal(), nil
	}
	crash, arrives := f.burn()
	if crash == nil {
		return f.next.Do(r)
	}
	if arrives {
		if response, err := f.next.Do(r); err == nil {
			_ = response.Body.Close()
		}
	}
	crash()
	return nil, dynamotest.ErrClosed
}

// refusal returns a reply that clients do not answer with a repetition.
func refusal() *http.Response {
	const body = `{"__type": "com.amazonaws.dynamodb.v20120810#AccessDeniedException", "message": "crashtest: the instance has crashed"}`
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}
}
