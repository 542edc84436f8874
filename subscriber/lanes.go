package subscriber

import (
	"sync"
	"time"
)

// lanes is a pool of at most max workers, called lanes. Each serves one stream at a time, and each
// stream is served by at most one lane.
//
// Streams are served in the order in which they were queued. Streams that failed before have a
// queue of their own and at most half of the lanes, so they do not delay the others, however many
// they are. A failed stream that takes long, for example because its handler hangs, does not count
// for that half, so that it does not delay other failed streams. But an eighth of the lanes never
// serves failed streams.
type lanes struct {
	max   int
	serve func(turn) (again bool)

	mu      sync.Mutex
	queue   []turn
	failed  []turn // streams that failed before
	running int
	// retrying counts the lanes that serve a stream that failed before.
	retrying int
	// hanging counts those of the retrying lanes that have served their stream for a long time.
	hanging int
	picked  int
	stopped bool
	done    sync.WaitGroup
}

// turn is a stream or a deferred event that waits for a lane, and its deliverer.
type turn struct {
	deliverer *deliverer
	stream    *stream
	deferred  *deferral // nil for a stream
}

// serve serves the stream or the deferred event, and reports whether the stream must be served
// again.
func (t turn) serve() (again bool) {
	if t.deferred != nil {
		t.deliverer.retry(t.deferred)
		return false
	}
	return t.deliverer.serve(t.stream)
}

// isNone reports whether there is nothing to serve.
func (t turn) isNone() bool { return t.stream == nil && t.deferred == nil }

// failedTurn says that every eighth pick takes a failed stream, even while other streams wait.
const failedTurn = 8

// run queues a stream that has something to do. It must not be queued or served already.
func (l *lanes) run(s turn, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.add(s, failed)
	l.begin()
}

// add queues a stream. The caller of add, pick and mayRetry holds mu.
func (l *lanes) add(s turn, failed bool) {
	if failed {
		l.failed = append(l.failed, s)
	} else {
		l.queue = append(l.queue, s)
	}
}

// pick removes the stream that a lane serves next from its queue, if there is one.
func (l *lanes) pick() (s turn, failed bool) {
	retry := len(l.failed) > 0 && l.mayRetry()
	switch {
	case l.stopped || len(l.queue) == 0 && !retry:
		return turn{}, false
	case retry && (len(l.queue) == 0 || l.picked%failedTurn == failedTurn-1):
		l.retrying++
		s, failed = first(&l.failed), true
	default:
		s = first(&l.queue)
	}
	l.picked++
	return s, failed
}

// mayRetry reports whether a lane may serve a stream that failed before.
func (l *lanes) mayRetry() bool {
	return l.retrying-l.hanging < max(1, l.max/2) && l.retrying < l.max-l.max/8
}

// long is the time after which the serving of a failed stream counts as long.
const long = time.Second

// notice counts a lane as hanging when it serves a failed stream for a second or more (long). The
// caller calls end when the stream was served, and holds mu.
func (l *lanes) notice() (end func()) {
	hangs, ended := false, false
	timer := time.AfterFunc(long, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if hangs = !ended; !hangs {
			return
		}
		l.hanging++
		l.begin()
	})
	return func() {
		timer.Stop()
		if ended = true; hangs {
			l.hanging--
		}
	}
}

// begin starts a lane if fewer than max are running and there is a stream that it may serve. The
// caller holds mu.
func (l *lanes) begin() {
	if l.running == l.max {
		return
	}
	if s, failed := l.pick(); !s.isNone() {
		l.running++
		l.done.Add(1)
		go l.work(s, failed)
	}
}

// crowded reports whether streams wait for a lane.
func (l *lanes) crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) > 0 || len(l.failed) > 0 && l.mayRetry()
}

// busy reports whether all lanes are serving.
func (l *lanes) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running == l.max
}

// work runs a lane. It ends when there is nothing that it may serve.
func (l *lanes) work(s turn, failed bool) {
	defer l.done.Done()
	for !s.isNone() {
		end := func() {}
		if failed {
			end = l.notice()
		}
		again := l.serve(s)
		s, failed = l.next(s, failed, again, end)
	}
}

// next ends the serving of one stream and picks the next.
func (l *lanes) next(served turn, failed, again bool, end func()) (turn, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end(); failed {
		l.retrying--
	}
	if again && !l.stopped {
		l.add(served, false) // it is no failed stream, because it has delivered
	}
	s, failed := l.pick()
	if s.isNone() {
		l.running--
	}
	return s, failed
}

// first removes the first stream from a queue.
func first(queue *[]turn) turn {
	s := (*queue)[0]
	(*queue)[0] = turn{}
	*queue = (*queue)[1:]
	return s
}

// stop prevents lanes from serving further streams. wait waits for the running ones.
func (l *lanes) stop() {
	l.mu.Lock()
	l.stopped = true
	l.queue, l.failed = nil, nil
	l.mu.Unlock()
}

func (l *lanes) wait() { l.done.Wait() }
