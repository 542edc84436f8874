package publisher

import (
	"container/list"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
)

// stream is the queue of batches for one aggregate. While the queue is not empty, one goroutine
// writes them.
type stream struct {
	id aggregate.ID

	// Guarded by Publisher.mu. The batches of the current commit are the first in the queue.
	queue    []*batch
	draining bool
	idle     *list.Element // set while the queue is empty

	// The version after the last commit. Only the goroutine that drains the queue uses it.
	version uint64
	known   bool
}

func (s *stream) remember(version uint64) { s.version, s.known = version, true }
func (s *stream) forget()                 { s.known = false }

func (b *batch) finish(err error) {
	b.finished, b.err = true, err
	close(b.done)
}

// clean removes finished batches from the queue.
func (s *stream) clean() {
	s.queue = slices.DeleteFunc(s.queue, func(b *batch) bool { return b.finished })
}

// streams holds the stream of each aggregate. It forgets the streams that have been idle longest.
type streams struct {
	byID map[aggregate.ID]*stream
	idle list.List // idle *streams, the latest first
	most int       // maximum number of idle streams
}

func newStreams(most int) streams {
	return streams{byID: map[aggregate.ID]*stream{}, most: most}
}

func (c *streams) acquire(id aggregate.ID) *stream {
	s, ok := c.byID[id]
	if !ok {
		s = &stream{id: id}
		c.byID[id] = s
	}
	if s.idle != nil {
		c.idle.Remove(s.idle)
		s.idle = nil
	}
	return s
}

// release keeps an idle stream, since its version saves a read.
func (c *streams) release(s *stream) {
	s.queue = nil
	s.idle = c.idle.PushFront(s)
	if c.idle.Len() > c.most {
		oldest := c.idle.Remove(c.idle.Back()).(*stream)
		delete(c.byID, oldest.id)
	}
}
