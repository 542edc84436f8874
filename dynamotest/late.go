package dynamotest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// errLate is a connection error in the chain of the SDK's error.
var errLate = fmt.Errorf("dynamotest: the connection was cut with the request on its way: %w", io.ErrUnexpectedEOF)

// Late breaks the connection while the request is under way. The request reaches the database and
// takes effect when [Injection.Arrive] is called. To the client this looks like [CutConnection].
// With a [Pause] in which the client's context ends, the client gets the error of the context
// instead. It does not happen to calls that another fault refuses.
func Late() Fault {
	return late("Late", func(strike) lateness { return lateness{by: -1, cuts: true} })
}

// LateBy does the same as [Late], but the request arrives by itself, after a random time between
// least and most by the clock of the machine. [Injection.Arrive] lets it arrive sooner.
func LateBy(least, most time.Duration) Fault {
	checkBounds("LateBy", least, most)
	return late("LateBy", func(s strike) lateness { return lateness{by: between(s.random(), least, most), cuts: true} })
}

// Congestion delays the request like [LateBy], but the connection stays open. A client that waits
// gets the reply. If the client gives up because its context ends, the request still reaches the
// database. It does not happen to calls that another fault refuses.
func Congestion(least, most time.Duration) Fault {
	checkBounds("Congestion", least, most)
	return late("Congestion", func(s strike) lateness { return lateness{by: between(s.random(), least, most)} })
}

func late(name string, how func(strike) lateness) Fault {
	return Fault{name: name, strike: func(p *plan, s strike) bool {
		if p.ended() {
			return false
		}
		l := how(s)
		l.injection = s.by
		p.late = &l
		return true
	}}
}

// lateness is the delay of one request.
type lateness struct {
	injection *Injection
	by        time.Duration // time until it arrives by itself; never if negative
	cuts      bool          // whether it breaks the connection, so that the client does not wait
	sent      *lateRequest
}

// lateRequests are the delayed requests. Their clients may have given up.
type lateRequests struct {
	mu       sync.Mutex
	onTheWay []*lateRequest
	closed   bool
	arriving sync.WaitGroup // requests that arrive by themselves
}

type lateRequest struct {
	injection *Injection
	perform   func(context.Context) lateReply
	observe   func(Call)
	replies   chan lateReply // to the client; closed if the request is dropped
	gone      chan struct{}  // closed when the client no longer waits for the reply
	timer     *time.Timer    // nil if it does not arrive by itself
	cancel    context.CancelFunc
	ctx       context.Context //nolint:containedctx // of the request, without its cancellation
}

type lateReply struct {
	answer answer
	err    error
	call   Call
}

// delay makes a request arrive late.
func (f *injector) delay(ctx context.Context, r request, p *plan) *lateRequest {
	late := &lateRequest{
		injection: p.late.injection, observe: f.observe,
		replies: make(chan lateReply), gone: make(chan struct{}),
		perform: func(ctx context.Context) lateReply {
			reply := lateReply{call: Call{Operation: r.name, RequestBytes: len(r.body)}}
			reply.answer, reply.err = f.to.perform(ctx, r, p, &reply.call)
			if reply.err != nil {
				reply.call.Err = reply.err
			}
			reply.call.ReplyBytes = len(reply.answer.body)
			reply.call.note(p)
			return reply
		},
	}
	late.ctx, late.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l := &f.late
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		late.drop()
		return late
	}
	l.onTheWay = append(l.onTheWay, late)
	if p.late.by < 0 {
		return late
	}
	l.arriving.Add(1)
	late.timer = time.AfterFunc(p.late.by, func() {
		defer l.arriving.Done()
		if l.take(func(other *lateRequest) bool { return other == late }) != nil {
			late.land()
		}
	})
	return late
}

// giveUp marks that the client no longer waits for a late request. The client may not have begun to
// wait.
func (f *injector) giveUp(ctx context.Context, r request, p *plan) {
	if p.late == nil {
		return
	}
	if p.late.sent == nil {
		p.late.sent = f.delay(ctx, r, p)
	}
	close(p.late.sent.gone)
}

// wait returns the reply, unless the client gives up first.
func (r *lateRequest) wait(ctx context.Context, call *Call) (answer, error) {
	select {
	case reply, ok := <-r.replies:
		if !ok {
			return answer{}, ErrClosed
		}
		*call = reply.call
		return reply.answer, reply.err
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

// land executes the request, and passes its reply to the client if it still waits.
func (r *lateRequest) land() {
	defer r.cancel()
	reply := r.perform(r.ctx)
	select {
	case r.replies <- reply:
	case <-r.gone:
		reply.call.Late = true
		r.observe(reply.call)
	}
}

// drop ends a request that has not arrived.
func (r *lateRequest) drop() {
	r.cancel()
	close(r.replies)
}

// take removes and returns the selected requests, the oldest first.
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

// stopTimer prevents a request from arriving by itself, unless it is arriving already.
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
		r.drop()
	}
	l.arriving.Wait()
}

// Arrive delivers the delayed requests now, the oldest first, and returns their number. When it
// returns, they have taken effect, each as if it were sent now. Other faults of a request happen
// when it arrives. If the client has given up, [DB.Observe] and [DB.Record] show the request as a
// call that is late.
func (i *Injection) Arrive() (requests int) {
	l := &i.of.late
	due := l.take(func(r *lateRequest) bool { return r.injection == i })
	for _, r := range due {
		l.stopTimer(r)
		r.land()
	}
	return len(due)
}
