package publisher

import (
	"container/list"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
)

// stream is an aggregate as the Publisher sees it: a queue of batches, written by one goroutine for
// as long as there are any.
type stream struct {
	id aggregate.ID

	// Guarded by Publisher.mu. Those in flight are the first in the queue.
	queue    []*batch
	draining bool
	idle     *list.Element // when nobody publishes to it

	// The version after the last commit, for the draining goroutine alone.
	version uint64
	known   bool
}

func (s *stream) remember(version uint64) { s.version, s.known = version, true }
func (s *stream) forget()                 { s.known = false }

func (b *batch) finish(err error) {
	b.finished, b.err = true, err
	close(b.done)
}

// clean takes finished batches out of the queue.
func (s *stream) clean() {
	s.queue = slices.DeleteFunc(s.queue, func(b *batch) bool { return b.finished })
}

// streams finds the stream of an aggregate, and forgets those that have been idle longest.
type streams struct {
	byID map[aggregate.ID]*stream
	idle list.List // of *stream, the latest first
	most int       // idle ones
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

// release keeps a stream without work for its version.
func (c *streams) release(s *stream) {
	s.queue = nil
	s.idle = c.idle.PushFront(s)
	if c.idle.Len() > c.most {
		oldest := c.idle.Remove(c.idle.Back()).(*stream)
		delete(c.byID, oldest.id)
	}
}
