package subscriber

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
)

// Burst runs a router until its consumer groups have nothing more to handle. It is for processes
// that do not run for long, such as functions in AWS Lambda. Groups and positions are the same as
// in a process that runs for months. A group may move from one to the other at any time.
//
// A burst with Hints reads the events of these aggregates by their keys, after the positions of the
// groups. It handles them and what its own handlers commit, and reads no tail. A burst without
// Hints is a sweep. It reads the tail from the stored cursors on, and handles what it finds,
// aggregates that wait for another attempt, and deferred events. Hints may be lost, so run a sweep
// on a schedule, for example each minute.
//
// A burst visits shards: it takes those on which no one works, and frees them at its end. A process
// that runs for long keeps its shards, and finds the events by its own reads. If another burst
// works on a shard, this one hands the shard over to it for a sweep, or the aggregates of its
// hints, up to 50 at a time. The other burst handles them before it ends.
//
// The first burst creates a new group. A group that starts [Now] begins at that time, so run a
// sweep when you deploy the group.
type Burst struct {
	// Hints are aggregates that may have new events. If there are none, the burst is a sweep.
	Hints []Hint
	// Also holds functions that run during the burst and commit events or commands, such as
	// process.Manager.Fire. The burst handles these too. Their context ends in time for
	// [Burst.Run] to return before the deadline.
	Also []func(context.Context) error
}

// Hint says that an aggregate may have new events. It is not trusted: a wrong hint costs a read
// unit or two for each group.
type Hint struct {
	Aggregate aggregate.ID
	Version   uint64 // of the last event that is known; 0 if none is known
}

// Left is what a [Burst] has left to others.
type Left struct {
	// Aggregates counts aggregates with unhandled events: they wait for another attempt, the time
	// was too short, or another process works on their shards. It does not count those on shards
	// that have nothing to do before Due.
	Aggregates int
	// Due is the time of the next attempt at an event. It may be in the past, and is zero if none
	// is known. A sweep handles what is due. The timeouts of process managers are not part of it:
	// see process.Backlog.Due.
	Due time.Time
	// Late reports that there was no time for some of the aggregates.
	Late bool
}

// defaultBurst limits a burst whose context has no deadline.
const defaultBurst = time.Minute

// Run runs the router until its groups have nothing more to handle, or until shortly before the
// deadline of ctx. Without a deadline it runs for up to a minute. Nothing runs after it has
// returned. A router runs once, and may close the subscribers of its handlers, so make both for
// each burst.
//
// A handler has [Config.CloseTimeout] to end, or a quarter of the time before the deadline if that
// is shorter. Run stops deliveries that much before the deadline, and a second earlier to store
// positions. A message that was delivered in the first quarter of the time before this stop, and
// that is not answered when deliveries stop, has failed, as after [Config.AckDeadline].
//
// Errors: those of [Subscriber.Subscribe], of requests to DynamoDB, and of Also. Work that is left
// is no error.
func (b Burst) Run(ctx context.Context, router *message.Router) (Left, error) {
	deadline, limited := ctx.Deadline()
	if !limited {
		deadline = time.Now().Add(defaultBurst)
	}
	if time.Until(deadline) <= 0 {
		return Left{Aggregates: max(1, len(b.Hints)), Late: true}, nil
	}
	r := &burst{
		began: time.Now(), deadline: deadline, sweep: len(b.Hints) == 0, hints: b.Hints, working: 1,
		done: make(chan struct{}), begun: make(chan struct{}), ended: make(chan struct{}),
	}
	ctx, cancel := context.WithDeadline(context.WithValue(ctx, burstKey{}, r), deadline)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.run(ctx, router, b.Also)
	}()
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		r.failed(errLate)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left, errors.Join(r.errs...)
}

var (
	errLate             = errors.New("burst: something still runs at the deadline: does each handler end within CloseTimeout?")
	errBurstEnded       = errors.New("the burst of the context has ended: subscribe with another context")
	errBroadcastInBurst = errors.New("a broadcast has no position, so it cannot work in bursts: subscribe without the context of a burst")
)

// burst is a running [Burst].
type burst struct {
	began         time.Time
	deadline      time.Time
	sweep         bool
	hints         []Hint
	subscriptions sync.WaitGroup

	mu      sync.Mutex
	working int           // number of workers: inboxes with hints, and functions that may commit
	done    chan struct{} // closed when no one works
	begun   chan struct{} // closed when all subscriptions receive what others commit
	ended   chan struct{} // closed when all subscriptions have ended, except for their outputs
	left    Left
	errs    []error
}

// run is [Burst.Run] without its limit.
func (b *burst) run(ctx context.Context, router *message.Router, also []func(context.Context) error) {
	empty := len(router.Handlers()) == 0
	routed := make(chan error, 1)
	// A router reports an error if its messages end before its context does.
	routing, stop := context.WithCancel(ctx)
	end := func() {
		b.subscriptions.Wait()
		stop()
		close(b.ended)
	}
	go func() { routed <- router.Run(routing) }()
	var others sync.WaitGroup
	select {
	case err := <-routed: // a handler cannot subscribe; the router ends the others
		b.failed(err)
		close(b.begun)
		b.add(-1)
		end()
		return
	case <-router.Running():
		close(b.begun)
		until, cancel := context.WithDeadline(ctx, b.deadline.Add(-b.reserve(0)))
		defer cancel()
		for _, work := range also {
			b.add(1)
			others.Add(1)
			go func() {
				defer others.Done()
				defer b.add(-1)
				b.failed(work(until))
			}()
		}
	}
	b.add(-1) // all subscriptions and others are counted now
	others.Wait()
	select {
	case <-b.done:
	case <-ctx.Done():
	}
	end()
	if empty { // a router without handlers does not end by itself
		b.failed(router.Close())
	}
	b.failed(<-routed)
}

type burstKey struct{}

// burstOf returns the burst to which the context of a subscription belongs, or nil.
func burstOf(ctx context.Context) *burst {
	b, _ := ctx.Value(burstKey{}).(*burst)
	return b
}

// add changes the number of workers. Only a worker adds others, so when the number is 0, it stays
// 0.
func (b *burst) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.working += n; b.working == 0 {
		close(b.done)
	}
}

// join is add(1) for the inbox of a new subscription, or for one that works again because of a
// commit. Any goroutine of the process may commit, or subscribe with the context of a message, at
// any time. So join returns false if the burst has ended.
func (b *burst) join(subscriptions int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.working == 0 {
		return false
	}
	b.working++
	b.subscriptions.Add(subscriptions)
	return true
}

// reserve returns the time before the deadline at which deliveries stop, for a CloseTimeout.
func (b *burst) reserve(closeTimeout time.Duration) time.Duration {
	return closeTimeout + b.writes() + min(100*time.Millisecond, b.quarter()/10)
}

// ackDeadline returns the AckDeadline of a message that is delivered now, or 0 for none. limit is
// the configured one. An attempt of a handler that hangs must have failed before deliveries stop,
// so that it is counted. A handler that begins late may only need more time, so it gets no other
// deadline.
func (b *burst) ackDeadline(limit, closeTimeout time.Duration) time.Duration {
	stops := b.deadline.Add(-b.reserve(closeTimeout) - b.quarter()/10)
	if rest := time.Until(stops); rest >= stops.Sub(b.began)*3/4 && (limit == 0 || rest < limit) {
		return rest
	}
	return limit
}

// writes returns the time for writes at the end.
func (b *burst) writes() time.Duration { return min(writeOnClose, b.quarter()) }

// quarter returns a quarter of the time that the burst has.
func (b *burst) quarter() time.Duration { return b.deadline.Sub(b.began) / 4 }

// mostErrors is the maximum number of errors that a burst returns. Otherwise each hint could add
// one.
const mostErrors = 10

// failed records an error, unless it is nil or there are many.
func (b *burst) failed(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil && len(b.errs) < mostErrors {
		b.errs = append(b.errs, err)
	}
}

// leave records what is left of a shard.
func (b *burst) leave(aggregates int, due time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left.Aggregates += aggregates
	b.left.Due = firstOf(b.left.Due, due)
}

// leaveLate is leave for aggregates for which there was no time.
func (b *burst) leaveLate(aggregates int, due time.Time) {
	b.leave(aggregates, due)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left.Late = b.left.Late || aggregates > 0
}

// hintsOf returns the hints about aggregates of a type.
func (b *burst) hintsOf(topic string) map[aggregate.ID]uint64 {
	hints := map[aggregate.ID]uint64{}
	for _, h := range b.hints {
		if h.Aggregate.Type == topic && h.Aggregate.Validate() == nil {
			version := h.Version
			if version == 0 { // there may be any event
				version = math.MaxUint64
			}
			hints[h.Aggregate] = max(hints[h.Aggregate], version)
		}
	}
	return hints
}

// inbox holds the hints about which a subscription has done nothing yet. It counts as working in
// its burst until the subscription finds it empty.
type inbox struct {
	burst   *burst
	arrived chan struct{}

	mu           sync.Mutex
	works, ended bool
	hints        map[aggregate.ID]uint64
}

// newInbox returns an inbox that works. The caller has joined for it.
func (b *burst) newInbox(topic string) *inbox {
	return &inbox{burst: b, arrived: make(chan struct{}, 1), works: true, hints: b.hintsOf(topic)}
}

// add adds a hint.
func (i *inbox) add(id aggregate.ID, version uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ended {
		return
	}
	if !i.works {
		if !i.burst.join(0) {
			return
		}
		i.works = true
		i.arrived <- struct{}{}
	}
	i.hints[id] = max(1, version, i.hints[id])
}

// take removes at most a number of hints. If there are none, it no longer counts as working.
func (i *inbox) take(most int) (hints map[aggregate.ID]uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	hints = map[aggregate.ID]uint64{}
	for id, version := range i.hints {
		if len(hints) == most {
			break
		}
		hints[id] = version
		delete(i.hints, id)
	}
	if len(hints) == 0 {
		i.rest()
	}
	return hints
}

// rest stops counting as working. The caller holds mu.
func (i *inbox) rest() {
	if i.works {
		i.works = false
		i.burst.add(-1)
	}
}

// end drops all hints, and those that come later.
func (i *inbox) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended = true
	if len(i.hints) > 0 {
		i.burst.leaveLate(len(i.hints), time.Now())
	}
	i.rest()
}
