package crashtest

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest"
)

// Service is one instance of a service, such as a *millrace.App. Run runs it until ctx ends.
type Service interface {
	Run(ctx context.Context) error
}

// Open opens an instance of a service, and does not run it. The instance uses the client for all
// requests to the database. While it runs it may serve the listener, which the fleet closes.
type Open[S Service] func(ctx context.Context, client *dynamodb.Client, listener net.Listener) (S, error)

// Fleet holds the instances of a service, and their database. It is safe for concurrent use.
type Fleet[S Service] struct {
	// Patience limits all waits: for an instance that opens, for replies, and for
	// [Fleet.Eventually]. Set it before the first Start. Default: 1 minute.
	Patience time.Duration

	t    testing.TB
	db   *dynamotest.DB
	open Open[S]
	seed uint64

	mu        sync.Mutex
	random    *rand.Rand // decides what Replace does
	stormy    bool
	calls     map[string]uint64 // how often Fault was called
	started   int
	instances []*Instance[S] // those that run
	ends      sync.WaitGroup
}

// New returns a fleet without instances, and an empty database. When the test ends, it stops all
// instances. The options are those of the database.
func New[S Service](t testing.TB, seed uint64, open Open[S], options ...dynamotest.Option) *Fleet[S] {
	t.Helper()
	f := &Fleet[S]{
		Patience: time.Minute, t: t, open: open, seed: seed,
		db:     dynamotest.New(t, append([]dynamotest.Option{dynamotest.WithSeed(seed)}, options...)...),
		random: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // not for secrets
		calls:  map[string]uint64{},
	}
	t.Cleanup(f.end)
	return f
}

// DB returns the database: to inject faults, to move its clock, and for a client of the test, which
// no crash affects.
func (f *Fleet[S]) DB() *dynamotest.DB { return f.db }

// Storm makes requests to the database and calls of other services fail until calm is called. Each
// fault of dynamotest.DB.Storm happens to a request with the given chance. Calls of other services
// fail as [Fleet.Fault] says.
func (f *Fleet[S]) Storm(chance float64) (calm func()) {
	end := f.db.Storm(chance)
	f.setStormy(true)
	return func() {
		f.setStormy(false)
		end()
	}
}

func (f *Fleet[S]) setStormy(stormy bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stormy = stormy
}

// Replace starts an instance, and then crashes or stops another one that runs. The seed decides
// which one, and how it ends. Replace waits for the end of an orderly stop.
func (f *Fleet[S]) Replace() *Instance[S] {
	f.t.Helper()
	running := f.running()
	next := f.Start()
	f.mu.Lock()
	n, crashes := f.random.Uint64(), f.random.Uint64()%2 == 0
	f.mu.Unlock()
	if len(running) == 0 {
		return next
	}
	other := running[n%uint64(len(running))]
	if crashes {
		other.Crash()
	} else if err := other.Stop(); err != nil { // faults can keep it from ending in order
		f.t.Logf("crashtest: stop instance %d: %v", other.number, err)
	}
	return next
}

// Eventually calls check with an instance that runs, until it returns nil. After [Fleet.Patience]
// it fails the test with the last error. Check can compare the state of the service with what must
// be, or wait until everything is handled.
func (f *Fleet[S]) Eventually(check func(ctx context.Context, s S) error) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), f.Patience)
	defer cancel()
	last := errNoInstance
	for n := 0; ctx.Err() == nil; n++ {
		if running := f.running(); len(running) > 0 {
			if err := check(ctx, running[n%len(running)].Service); err == nil {
				return
			} else if ctx.Err() == nil {
				last = err
			}
		}
		pause(ctx, 20*time.Millisecond)
	}
	f.t.Fatalf("crashtest: the check still fails after %v: %v", f.Patience, last)
}

func (f *Fleet[S]) running() []*Instance[S] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*Instance[S](nil), f.instances...)
}

// end stops all instances, and waits for the crashed ones.
func (f *Fleet[S]) end() {
	f.setStormy(false)
	for _, i := range f.running() {
		i.end()
	}
	f.ends.Wait()
	if f.t.Failed() {
		f.t.Logf("crashtest: the seed is %d", f.seed)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
