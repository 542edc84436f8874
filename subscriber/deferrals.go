package subscriber

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/retry"
)

// deferrals holds the deferred events of a shard and the times of their next attempts. All records
// are in the checkpoint table. Memory holds those that are due first.
type deferrals struct {
	*term
	fresh bool // the shard had no owner before, so the table has no records
	// ready passes an event to a worker, which retries it. It is called with the mutex held.
	ready func(*deferral)
	wake  chan struct{} // signals that an event may be due earlier than run expects

	mu      sync.Mutex
	held    map[deferredEvent]*deferral
	waiting deferralQueue
	working int  // number of events that workers are retrying
	more    bool // the table may have records that memory lacks
	givenUp int  // records of events that were given up: at the last scan and since
}

// deferredEvent identifies an event of a topic.
type deferredEvent struct {
	value  string // the value of the aggregate's id
	number uint64
}

// deferral is a deferred event.
type deferral struct {
	deferredEvent
	due      time.Time
	handled  bool // acked; only the record must still be deleted
	failures int  // consecutive failures to reach the store
	index    int  // index in the queue; -1 while a worker retries the event
}

func newDeferrals(t *term, fresh bool, ready func(*deferral)) *deferrals {
	return &deferrals{
		term: t, fresh: fresh, ready: ready, wake: make(chan struct{}, 1), held: map[deferredEvent]*deferral{},
	}
}

// run reads the records, and passes events that are due to workers, until ctx ends.
func (f *deferrals) run(ctx context.Context) {
	scanAt, next, failures := time.Now(), f.limits.rescanSoon, 0
	if f.fresh {
		scanAt, next = scanAt.Add(next), f.rescanInterval()
	}
	timer := time.NewTimer(retry.Soon)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-f.wake:
		}
		if now := time.Now(); !scanAt.After(now) || failures == 0 && f.lacks() {
			err := f.scan(ctx)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				failures++
				f.logger.Error("Cannot read which events are deferred, will try again", err, watermill.LogFields{"shard": f.number})
				scanAt = now.Add(retry.Backoff(minFailurePause, maxFailurePause, failures))
			default:
				failures = 0
				scanAt, next = now.Add(next), f.rescanInterval()
			}
		}
		timer.Reset(max(min(time.Until(scanAt), f.release()), retry.Soon))
	}
}

// rescanInterval returns the time between scans. Without the policy [Defer], records become due
// only by groups.Groups.RetrySkipped. That takes the shard from its owner, and the next owner scans
// the records.
func (f *deferrals) rescanInterval() time.Duration {
	if f.config.Failures.kind == deferEvents {
		return f.limits.rescanInterval
	}
	return 365 * 24 * time.Hour
}

// lacks reports whether memory has room for records that are only in the table. It waits until half
// of the memory is free, so that one scan serves many retries.
func (f *deferrals) lacks() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.more && len(f.held) <= f.limits.maxDeferred/2
}

// scan reads the records of the shard. It costs a read unit for each 4 KB, and at least one.
func (f *deferrals) scan(ctx context.Context) error {
	most := f.limits.maxDeferred
	var found []checkpoint.Skipped
	more, givenUp := false, 0
	earliest := func() {
		slices.SortFunc(found, func(a, b checkpoint.Skipped) int { return a.Due.Compare(b.Due) })
		if len(found) > most {
			found, more = slices.Delete(found, most, len(found)), true
		}
	}
	for e, err := range f.checkpoint.Skipped(ctx, f.key) {
		if err != nil {
			return err
		}
		if e.Due.IsZero() {
			givenUp++
			continue
		}
		e.Due, e.Reason, e.EventType = e.DueBy(f.now()), "", "" // memory needs no texts
		if found = append(found, e); len(found) >= 2*most {
			earliest()
		}
	}
	earliest()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.more, f.givenUp = more, givenUp
	for _, e := range found {
		f.hold(deferredEvent{e.Aggregate.Value, e.Number}, e.Due)
	}
	return nil
}

// hold stores in memory when an event is due. The caller holds mu.
func (f *deferrals) hold(event deferredEvent, due time.Time) {
	e := f.held[event]
	switch {
	case e == nil && len(f.held) >= f.limits.maxDeferred:
		f.more = true
	case e == nil:
		e = &deferral{deferredEvent: event, due: due}
		f.held[event] = e
		heap.Push(&f.waiting, e)
	case e.index >= 0 && !e.handled:
		e.due = due
		heap.Fix(&f.waiting, e.index)
	}
}

// add adds an event that was just deferred.
func (f *deferrals) add(id aggregate.ID, number uint64, due time.Time) {
	f.mu.Lock()
	f.hold(deferredEvent{id.Value, number}, due)
	f.mu.Unlock()
	f.wakeRun()
}

// wakeRun makes run check again whether something is due.
func (f *deferrals) wakeRun() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// isFull reports that no more events may be deferred. This limits the records of a shard, even in
// an outage in which events are given up. Events that fail then block their aggregates, and finally
// stop the reading of the shard.
func (f *deferrals) isFull() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.more || len(f.held)+f.givenUp >= f.limits.maxDeferred
}

// release passes events that are due to workers, and returns the time until the next event is due.
// It releases at most as many events at a time as messages may be in flight.
func (f *deferrals) release() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.waiting) > 0 && f.working < f.config.MaxInFlight {
		e := f.waiting[0]
		if wait := e.due.Sub(f.now()); wait > 0 {
			return min(wait, time.Second) // the clock may be changed meanwhile
		}
		heap.Pop(&f.waiting)
		f.working++
		f.ready(e)
	}
	return time.Hour // wakeRun ends the wait earlier
}

// isSettled reports that no event is being retried or is due.
func (f *deferrals) isSettled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.working == 0 && (len(f.waiting) == 0 || f.waiting[0].due.After(f.now()))
}

// nextDue returns the time at which the next event is due, or a past time if memory lacks records.
// It is zero if there is none.
func (f *deferrals) nextDue() (due time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) > 0 {
		due = f.waiting[0].due
	}
	if f.more || f.working > 0 {
		due = time.UnixMilli(1)
	}
	return due
}

// again queues an event that a worker could not finish.
func (f *deferrals) again(e *deferral, due time.Time) {
	f.mu.Lock()
	e.due = due
	f.working--
	if f.more && !e.handled {
		delete(f.held, e.deferredEvent) // a later scan reads its record again
	} else {
		heap.Push(&f.waiting, e)
	}
	f.mu.Unlock()
	f.wakeRun()
}

// done removes an event that a worker has finished.
func (f *deferrals) done(e *deferral) {
	f.mu.Lock()
	delete(f.held, e.deferredEvent)
	f.working--
	f.mu.Unlock()
	f.wakeRun()
}

// gaveUp counts an event that is no longer retried. Its record stays.
func (f *deferrals) gaveUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.givenUp++
}

// deferralQueue orders events by their due times. It implements heap.Interface.
type deferralQueue []*deferral

func (q deferralQueue) Len() int { return len(q) }
func (q deferralQueue) Less(i, j int) bool {
	return cmp.Or(q[i].due.Compare(q[j].due), cmp.Compare(q[i].value, q[j].value), cmp.Compare(q[i].number, q[j].number)) < 0
}

func (q deferralQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *deferralQueue) Push(e any) {
	added := e.(*deferral)
	added.index = len(*q)
	*q = append(*q, added)
}

func (q *deferralQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	e.index = -1
	return e
}
