package dynamotest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
	"github.com/millrace-dev/millrace/dynamotest/internal/wire"
)

// injector applies faults to the requests of a [DB] or a [Proxy], and passes its calls to
// observers.
type injector struct {
	to       destination
	isRemote bool // it belongs to a Proxy and has no engine
	seed     uint64
	closed   atomic.Bool
	drew     atomic.Bool // whether random decisions were made
	late     lateRequests

	// mu is held to change the fields below, never to read them.
	mu         sync.Mutex
	injected   uint64 // number of injections so far
	injections atomic.Pointer[[]*Injection]
	observers  atomic.Pointer[[]*observer]
}

// destination receives the requests.
type destination interface {
	// touches returns what a request accesses, as [engine.Touches] does. Undescribed maps names of
	// tables to the errors with which they could not be described. It does not contain tables that
	// do not exist.
	touches(ctx context.Context, in any) (touches []engine.Touch, undescribed map[string]error)
	hasIndex(ctx context.Context, table, index string) (bool, error)
	// remember makes the database keep earlier states; see [engine.Database.Remember].
	remember(d time.Duration)
	// perform executes a request as the plan changes it, and sets the consumed capacity and the
	// error of the call. An error means that there is no answer.
	perform(ctx context.Context, r request, p *plan, c *Call) (answer, error)
}

// request is a received request.
type request struct {
	name string
	op   operation
	in   any
	body []byte
	sent *http.Request // nil if it came to a DB
}

// start prepares an injector for use.
func (f *injector) start(to destination, isRemote bool, s settings) {
	f.to, f.isRemote, f.seed = to, isRemote, s.seed
	f.injections.Store(&[]*Injection{})
	f.observers.Store(&[]*observer{})
}

// Close makes every later call fail with [ErrClosed], so that programs that run longer than their
// test are noticed. It drops the requests that [Late] has delayed, and waits for those that are
// arriving.
func (f *injector) Close() {
	f.closed.Store(true)
	f.late.close()
}

// closeWith closes the injector when a test ends, and logs information about a failure.
func (f *injector) closeWith(t TB) {
	t.Helper()
	t.Cleanup(func() {
		f.Close()
		if !t.Failed() {
			return
		}
		if f.drew.Load() {
			t.Logf("dynamotest: faults were drawn with dynamotest.WithSeed(%d)", f.seed)
		}
		if names := f.neverFired(); len(names) > 0 {
			t.Logf("dynamotest: these faults were injected but did not happen: %s", strings.Join(names, ", "))
		}
	})
}

// serve answers a request and applies faults to it. An error means that there is no answer: the
// connection broke, or the faults cannot be decided.
func (f *injector) serve(ctx context.Context, r request) (answer, error) {
	call := Call{Operation: r.name, RequestBytes: len(r.body)}
	p, err := f.plan(ctx, r.name, r.in)
	var reply answer
	if err == nil {
		reply, err = f.attempt(ctx, r, p, &call)
	}
	if err != nil {
		call.Err = err
	}
	call.ReplyBytes = len(reply.body)
	call.note(p)
	f.observe(call)
	f.giveUp(ctx, r, p)
	return reply, err
}

func (f *injector) attempt(ctx context.Context, r request, p *plan, call *Call) (answer, error) {
	if err := p.onTheWay(ctx); err != nil {
		return answer{}, err
	}
	if refusal := p.refusal; refusal != nil {
		call.Err = refusal
		return refused(refusal), nil
	}
	reply, err := f.send(ctx, r, p, call)
	if err == nil {
		err = p.onTheWayBack(ctx)
	}
	if err != nil {
		return answer{}, err
	}
	return reply, nil
}

// send sends a request to the database, and waits for its answer.
func (f *injector) send(ctx context.Context, r request, p *plan, call *Call) (answer, error) {
	if p.late == nil {
		return f.to.perform(ctx, r, p, call)
	}
	p.late.sent = f.delay(ctx, r, p)
	return p.late.sent.wait(ctx, call)
}

// refused returns the answer for an error.
func refused(err error) answer {
	status, body := wire.EncodeError(err)
	return answer{status: status, body: body}
}

type observer struct{ see func(Call) }

// Observe calls see after each call, until stop is called. Calls that are under way at that time
// may still be observed. see runs in the goroutine that serves the call, before the client gets the
// reply.
func (f *injector) Observe(see func(Call)) (stop func()) {
	o := &observer{see}
	f.mu.Lock()
	defer f.mu.Unlock()
	all := append(slices.Clone(*f.observers.Load()), o)
	f.observers.Store(&all)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		left := slices.DeleteFunc(slices.Clone(*f.observers.Load()), func(other *observer) bool { return other == o })
		f.observers.Store(&left)
	}
}

func (f *injector) observe(c Call) {
	for _, o := range *f.observers.Load() {
		o.see(c)
	}
}
