package subscriber

import "sync"

// lanes serve streams side by side: up to max at a time, each stream by one lane at a
// time, first come first served.
type lanes struct {
	max   int
	serve func(*stream) (again bool)

	mu      sync.Mutex
	queue   []*stream
	running int
	stopped bool
	done    sync.WaitGroup
}

// run queues a stream that has something to do. The stream must not be queued or served.
func (l *lanes) run(s *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped {
		return
	}
	l.queue = append(l.queue, s)
	if l.running < l.max {
		l.running++
		l.done.Add(1)
		go l.work()
	}
}

// crowded reports that streams wait for a lane.
func (l *lanes) crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) > 0
}

// busy reports that no lane is free.
func (l *lanes) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running == l.max
}

func (l *lanes) work() {
	defer l.done.Done()
	for {
		l.mu.Lock()
		if len(l.queue) == 0 || l.stopped {
			l.running--
			l.mu.Unlock()
			return
		}
		s := l.queue[0]
		l.queue[0] = nil
		l.queue = l.queue[1:]
		l.mu.Unlock()
		if l.serve(s) {
			l.run(s)
		}
	}
}

// stop lets no further stream start. Those being served end by themselves; wait for them.
func (l *lanes) stop() {
	l.mu.Lock()
	l.stopped = true
	l.queue = nil
	l.mu.Unlock()
}

func (l *lanes) wait() { l.done.Wait() }
