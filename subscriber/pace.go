package subscriber

import (
	"sync"
	"time"
)

// pace limits how often aggregates that keep failing are tried again. A subscription has one for
// all of its shards, and a visit has one for each shard. Each attempt reads the event again. In an
// outage all aggregates fail, and their attempts would cost more than the work that they try to do.
//
// An attempt takes a credit. A few credits come with time, so there are always probes. An aggregate
// that continues earns two more. So when the outage ends, the number of attempts doubles with each
// round of attempts, until all aggregates have continued.
type pace struct {
	mu       sync.Mutex
	credit   float64
	refilled time.Time
	// waiting contains the streams by their number of failures, and otherwise in the order in which
	// they became due. Streams with fewer failures go first, so one that begins to fail passes
	// those that are blocked. From mostFailures on, streams take turns.
	waiting [mostFailures + 1][]turn
	timer   *time.Timer
	stopped bool
}

const (
	// freeFailures is the number of failures in a row up to which an aggregate needs no credits,
	// unless a policy gives up after more attempts. See pacedAfter.
	freeFailures = 3
	// mostFailures is the number of failures after which pauses have their default maximum.
	mostFailures = 10
	// probesPerSecond is the number of credits that come with time. They add up to maxCredit.
	probesPerSecond = 10
	maxCredit       = 100
	// refill is the time in which maxCredit credits come.
	refill = maxCredit * time.Second / probesPerSecond
	// leastOfVisit is the minimum number of credits with which a visit of a shard begins. The
	// shards of a visit share maxCredit.
	leastOfVisit = 25
	// earned is the number of credits for an aggregate that continues.
	earned = 2
)

func newPace(credits int) *pace { return &pace{credit: float64(credits), refilled: time.Now()} }

// stop ends the timer, and prevents others.
func (p *pace) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped = true; p.timer != nil {
		p.timer.Stop()
	}
}

// wait returns a stream to the workers when there is a credit for it.
func (p *pace) wait(t turn, failures int) {
	p.update(func() { p.add(t, failures) })
}

// add queues a stream. The caller holds mu.
func (p *pace) add(t turn, failures int) {
	queue := &p.waiting[min(failures, mostFailures)]
	*queue = append(*queue, t)
}

// earn adds the credits for a stream that has continued after a failure.
func (p *pace) earn() {
	p.update(func() { p.credit += earned })
}

// update changes the pace, and returns streams to the workers for which there are credits. The
// streams of a shard that stops need none.
func (p *pace) update(change func()) {
	for _, t := range p.take(change) {
		t.deliverer.sequencer.Resume(t.stream)
	}
}

func (p *pace) take(change func()) (due []turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.credit += now.Sub(p.refilled).Seconds() * probesPerSecond
	p.refilled = now
	change()
	for i := range p.waiting {
		queue := &p.waiting[i]
		for len(*queue) > 0 {
			if !(*queue)[0].deliverer.isStopping() {
				if p.credit < 1 {
					p.refillLater()
					return due
				}
				p.credit--
			}
			due = append(due, (*queue)[0])
			(*queue)[0], *queue = turn{}, (*queue)[1:]
		}
		*queue = nil
	}
	p.credit = min(p.credit, maxCredit)
	return due
}

// refillLater calls update when there is a credit. The caller holds mu.
func (p *pace) refillLater() {
	if p.stopped {
		return
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	p.timer = time.AfterFunc(time.Second/probesPerSecond, func() { p.update(func() {}) })
}
