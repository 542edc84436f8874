package subscriber

import (
	"sync"
	"time"
)

// lanes serve streams side by side: up to max at a time, each stream by one lane at a time, first
// come first served within a queue. Streams that failed before have a queue of their own and half
// of the lanes at most, so that they do not hold up the others, however many they are. One that
// takes long, such as with a handler that hangs, does not count for that half any more, or it would
// hold up the other ones that failed. But an eighth of the lanes stays free of them.
type lanes struct {
	max   int
	serve func(turn) (again bool)

	mu       sync.Mutex
	queue    []turn
	failed   []turn // those that failed before
	running  int
	retrying int // lanes that serve a stream that failed before
	hanging  int // those of them that have done so for long
	picked   int
	stopped  bool
	done     sync.WaitGroup
}

// turn is the turn of a stream, or of a deferred event, and who serves it.
type turn struct {
	deliverer *deliverer
	stream    *stream
	deferred  *deferral // nil for that of a stream
}

// serve takes the turn, and reports whether the stream is to have another.
func (t turn) serve() (again bool) {
	if t.deferred != nil {
		t.deliverer.retry(t.deferred)
		return false
	}
	return t.deliverer.serve(t.stream)
}

// isNone reports that there is nothing to serve.
func (t turn) isNone() bool { return t.stream == nil && t.deferred == nil }

// failedTurn: every eighth pick takes a failed stream, even while others wait.
const failedTurn = 8

// run queues a stream that has something to do. The stream must not be queued or served.
func (l *lanes) run(s turn, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.add(s, failed)
	l.begin()
}

// add queues a stream. The caller holds mu, as in pick and mayRetry.
func (l *lanes) add(s turn, failed bool) {
	if failed {
		l.failed = append(l.failed, s)
	} else {
		l.queue = append(l.queue, s)
	}
}

// pick takes the stream that a lane serves next, if there is one, off its queue.
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

// mayRetry reports that a lane may serve a stream that failed before.
func (l *lanes) mayRetry() bool {
	return l.retrying-l.hanging < max(1, l.max/2) && l.retrying < l.max-l.max/8
}

// long is after what time the serving of a stream that failed before is called long.
const long = time.Second

// notice counts a serving as hanging once it takes long. The function that it returns ends that.
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
	return func() { // the caller holds mu
		timer.Stop()
		if ended = true; hangs {
			l.hanging--
		}
	}
}

// begin begins a lane if one is free, and there is a stream that it may serve. The caller holds mu.
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

// crowded reports that streams wait for a lane.
func (l *lanes) crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) > 0 || len(l.failed) > 0 && l.mayRetry()
}

// busy reports that no lane is free.
func (l *lanes) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running == l.max
}

// work is a lane. It ends when there is nothing that it may serve.
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

// next ends the serving of a stream and begins that of another.
func (l *lanes) next(served turn, failed, again bool, end func()) (turn, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if end(); failed {
		l.retrying--
	}
	if again && !l.stopped {
		l.add(served, false) // it has delivered
	}
	s, failed := l.pick()
	if s.isNone() {
		l.running--
	}
	return s, failed
}

// first takes the first stream off a queue.
func first(queue *[]turn) turn {
	s := (*queue)[0]
	(*queue)[0] = turn{}
	*queue = (*queue)[1:]
	return s
}

// stop lets no further stream start. Those being served end by themselves; wait for them.
func (l *lanes) stop() {
	l.mu.Lock()
	l.stopped = true
	l.queue, l.failed = nil, nil
	l.mu.Unlock()
}

func (l *lanes) wait() { l.done.Wait() }
