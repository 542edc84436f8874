package dynamotest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// errLate is the error of a connection, as the SDK finds it in the chain of what it returns.
var errLate = fmt.Errorf("dynamotest: the connection was cut with the request on its way: %w", io.ErrUnexpectedEOF)

// Late breaks the connection while the request is on its way: it reaches the database, and takes
// effect, when [Injection.Arrive] is called. To the client that looks like [CutConnection]. With a
// [Pause] in which the client's context ends, the client sees that end instead. It does not happen
// to calls that another fault refuses.
func Late() Fault { return late("Late", func(strike) time.Duration { return -1 }) }

// LateBy is [Late] with requests that arrive by themselves, after a time between two bounds by the
// clock of the machine. [Injection.Arrive] lets them arrive sooner.
func LateBy(least, most time.Duration) Fault {
	checkBounds("LateBy", least, most)
	return late("LateBy", func(s strike) time.Duration { return between(s.random(), least, most) })
}

func late(name string, by func(strike) time.Duration) Fault {
	return Fault{name: name, strike: func(p *plan, s strike) bool {
		if p.ended() {
			return false
		}
		p.late = &lateness{injection: s.by, by: by(s)}
		return true
	}}
}

// lateness is that of one request.
type lateness struct {
	injection *Injection
	by        time.Duration // until it arrives by itself; never if negative
}

// lateRequests are the requests that are on their way though their clients have given them up.
type lateRequests struct {
	mu       sync.Mutex
	onTheWay []*lateRequest
	closed   bool
	arriving sync.WaitGroup // by themselves
}

type lateRequest struct {
	injection *Injection
	arrive    func(context.Context)
	timer     *time.Timer // nil if it does not arrive by itself
	cancel    context.CancelFunc
	ctx       context.Context //nolint:containedctx // of the request, without its end
}

// delay lets a request arrive late.
func (f *injector) delay(ctx context.Context, r request, p *plan) {
	late := &lateRequest{injection: p.late.injection, arrive: func(ctx context.Context) {
		call := Call{Operation: r.name, RequestBytes: len(r.body), Late: true}
		reply, err := f.to.perform(ctx, r, p, &call)
		if err != nil {
			call.Err = err
		}
		call.ReplyBytes = len(reply.body)
		call.note(p)
		f.observe(call)
	}}
	late.ctx, late.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l := &f.late
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		late.cancel()
		return
	}
	l.onTheWay = append(l.onTheWay, late)
	if p.late.by < 0 {
		return
	}
	l.arriving.Add(1)
	late.timer = time.AfterFunc(p.late.by, func() {
		defer l.arriving.Done()
		if l.take(func(other *lateRequest) bool { return other == late }) != nil {
			late.land()
		}
	})
}

// land sends the request to the database.
func (r *lateRequest) land() {
	defer r.cancel()
	r.arrive(r.ctx)
}

// take removes and returns the requests that are asked for, the oldest first.
func (l *lateRequests) take(which func(*lateRequest) bool) (taken []*lateRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onTheWay = slices.DeleteFunc(l.onTheWay, func(r *lateRequest) bool {
		if which(r) {
			taken = append(taken, r)
			return true
		}
		return false
	})
	return taken
}

// stopTimer keeps a request from arriving by itself, unless it is about to.
func (l *lateRequests) stopTimer(r *lateRequest) {
	if r.timer != nil && r.timer.Stop() {
		l.arriving.Done()
	}
}

func (l *lateRequests) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	for _, r := range l.take(func(*lateRequest) bool { return true }) {
		l.stopTimer(r)
		r.cancel()
	}
	l.arriving.Wait()
}

// Arrive delivers the delayed requests now, oldest first, and returns their number. They have taken
// effect when it returns, each as if it were sent now. [DB.Observe] and [DB.Record] show them as
// calls that are late. Other faults of a request happen when it arrives.
func (i *Injection) Arrive() (requests int) {
	l := &i.of.late
	due := l.take(func(r *lateRequest) bool { return r.injection == i })
	for _, r := range due {
		l.stopTimer(r)
		r.land()
	}
	return len(due)
}
