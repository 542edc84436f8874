// Package lanes shares workers among streams, so that those that fail do not delay the others.
package lanes

import (
	"sync"
	"time"
)

// Pool has at most max workers, called lanes. Each serves one stream at a time, and each stream is
// served by at most one lane. A T is a stream, or anything else that waits for a lane.
//
// Streams are served in the order in which they were queued. Streams that failed before have a
// queue of their own and at most half of the lanes, so they do not delay the others, however many
// they are. A failed stream that takes long, for example because its handler hangs, does not count
// for that half, so that it does not delay other failed streams. But an eighth of the lanes never
// serves failed streams.
type Pool[T any] struct {
	max   int
	serve func(T) (again bool)

	mu      sync.Mutex
	queue   []T
	failed  []T // streams that failed before
	running int
	// retrying counts the lanes that serve a stream that failed before.
	retrying int
	// hanging counts those of the retrying lanes that have served their stream for a long time.
	hanging int
	picked  int
	stopped bool
	done    sync.WaitGroup
}

// New returns a pool. The function serve serves a stream, and reports whether it must be served
// again.
func New[T any](most int, serve func(T) (again bool)) *Pool[T] {
	return &Pool[T]{max: most, serve: serve}
}

// failedTurn says that every eighth pick takes a failed stream, even while other streams wait.
const failedTurn = 8

// Run queues a stream that has something to do. It must not be queued or served already.
func (p *Pool[T]) Run(s T, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	p.add(s, failed)
	p.begin()
}

// add queues a stream. The caller of add, pick and mayRetry holds mu.
func (p *Pool[T]) add(s T, failed bool) {
	if failed {
		p.failed = append(p.failed, s)
	} else {
		p.queue = append(p.queue, s)
	}
}

// pick removes the stream that a lane serves next from its queue, if there is one.
func (p *Pool[T]) pick() (s T, failed, found bool) {
	retry := len(p.failed) > 0 && p.mayRetry()
	switch {
	case p.stopped || len(p.queue) == 0 && !retry:
		return s, false, false
	case retry && (len(p.queue) == 0 || p.picked%failedTurn == failedTurn-1):
		p.retrying++
		s, failed = first(&p.failed), true
	default:
		s = first(&p.queue)
	}
	p.picked++
	return s, failed, true
}

// mayRetry reports whether a lane may serve a stream that failed before.
func (p *Pool[T]) mayRetry() bool {
	return p.retrying-p.hanging < max(1, p.max/2) && p.retrying < p.max-p.max/8
}

// long is the time after which the serving of a failed stream counts as long.
const long = time.Second

// notice counts a lane as hanging when it serves a failed stream for a second or more (long). The
// caller calls end when the stream was served, and holds mu.
func (p *Pool[T]) notice() (end func()) {
	hangs, ended := false, false
	timer := time.AfterFunc(long, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if hangs = !ended; !hangs {
			return
		}
		p.hanging++
		p.begin()
	})
	return func() {
		timer.Stop()
		if ended = true; hangs {
			p.hanging--
		}
	}
}

// begin starts a lane if fewer than max are running and there is a stream that it may serve. The
// caller holds mu.
func (p *Pool[T]) begin() {
	if p.running >= p.max {
		return
	}
	if s, failed, found := p.pick(); found {
		p.running++
		p.done.Add(1)
		go p.work(s, failed)
	}
}

// Crowded reports whether streams wait for a lane.
func (p *Pool[T]) Crowded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue) > 0 || len(p.failed) > 0 && p.mayRetry()
}

// Busy reports whether all lanes are serving.
func (p *Pool[T]) Busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running >= p.max
}

// work runs a lane. It ends when there is nothing that it may serve.
func (p *Pool[T]) work(s T, failed bool) {
	defer p.done.Done()
	for found := true; found; {
		end := func() {}
		if failed {
			end = p.notice()
		}
		again := p.serve(s)
		s, failed, found = p.next(s, failed, again, end)
	}
}

// next ends the serving of one stream and picks the next.
func (p *Pool[T]) next(served T, wasFailed, again bool, end func()) (s T, failed, found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if end(); wasFailed {
		p.retrying--
	}
	if again && !p.stopped {
		p.add(served, false) // it is no failed stream, because it has delivered
	}
	if s, failed, found = p.pick(); !found {
		p.running--
	}
	return s, failed, found
}

// first removes the first stream from a queue.
func first[T any](queue *[]T) T {
	s := (*queue)[0]
	clear((*queue)[:1])
	*queue = (*queue)[1:]
	return s
}

// Limit changes the number of lanes. Those that are serving continue.
func (p *Pool[T]) Limit(most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.max = most
}

// Stop prevents lanes from serving further streams.
func (p *Pool[T]) Stop() {
	p.mu.Lock()
	p.stopped = true
	p.queue, p.failed = nil, nil
	p.mu.Unlock()
}

// Wait waits for the streams that are being served.
func (p *Pool[T]) Wait() { p.done.Wait() }
