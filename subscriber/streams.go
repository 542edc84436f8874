package subscriber

import (
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// source is what showed that an event exists.
type source int

const (
	fromLive source = iota
	fromTrailing
	fromSweep
)

// offer passes on what the live read found.
func (sh *shard) offer(records []*journal.Record, caughtUp bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, r := range records {
		st := sh.stream(r.Aggregate)
		if st.claimed && r.Number <= st.acked {
			sh.stats.duplicates.Add(1)
		}
		st.offer(r, st.state != delayed && st.state != parked)
		sh.schedule(st)
	}
	sh.settled = sh.trail().OccurredAt
	sh.caughtUp = caughtUp
	sh.forget()
}

func (sh *shard) isCaughtUp() bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.caughtUp
}

// trim has streams hold no more than their share.
func (sh *shard) trim() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, st := range sh.streams {
		st.trim(sh.budget.share())
	}
}

// hear passes on numbers alone: what a trailing read found, or the sweep. It returns those that no
// read before had found.
func (sh *shard) hear(records []*journal.Record, by source) (missed []*journal.Record) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, r := range records {
		st := sh.stream(r.Aggregate)
		switch {
		case r.Number <= st.head || st.claimed && r.Number <= st.acked:
			if by == fromTrailing {
				sh.stats.duplicates.Add(1)
			}
		case by == fromTrailing && !sh.forgetful:
			missed = append(missed, r)
		case by == fromSweep:
			st.swept = r.Number
		}
		st.offer(r, false)
		sh.schedule(st)
	}
	if by != fromSweep {
		sh.settled = sh.trail().OccurredAt
	}
	sh.forget()
	return missed
}

// wake is told of a commit in this process. While the tail is still being read from far
// behind, the event's turn comes by itself, and cheaper.
func (sh *shard) wake(id aggregate.ID, version uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !sh.caughtUp || sh.ended {
		return
	}
	st := sh.stream(id)
	st.hear(version)
	sh.schedule(st)
}

// stream finds or makes a stream. The caller holds mu, as in all that follows.
func (sh *shard) stream(id aggregate.ID) *stream {
	st := sh.streams[id.Value]
	if st == nil {
		st = &stream{id: id, shard: sh}
		sh.streams[id.Value] = st
	}
	return st
}

// schedule brings a stream with something to do into the lanes.
func (sh *shard) schedule(st *stream) {
	if st.drained() {
		return
	}
	sh.unfinished[st] = struct{}{}
	if st.pending.IsZero() {
		st.pending = time.Now()
	}
	if st.state == idle {
		st.state = active
		sh.lanes.run(st, false)
	}
}

// settle notes that a stream has nothing left to do for now.
func (sh *shard) settle(st *stream) {
	st.state = idle
	st.drop()
	if !st.entry {
		delete(sh.unfinished, st)
	}
	st.pending = time.Time{}
}

// forget drops streams that have nothing to do, once there are many.
func (sh *shard) forget() {
	if len(sh.streams) <= sh.config.idleStreams {
		return
	}
	for value, st := range sh.streams {
		_, dirty := sh.dirty[st]
		_, unfinished := sh.unfinished[st]
		if st.state == idle && !dirty && !unfinished {
			delete(sh.streams, value)
			sh.forgetful = true
			if len(sh.streams) <= sh.config.idleStreams {
				return
			}
		}
	}
}

// forgetAll releases what the streams hold, once the shard has come to rest.
func (sh *shard) forgetAll() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, st := range sh.streams {
		st.drop()
		if st.timer != nil {
			st.timer.Stop()
		}
	}
	clear(sh.streams)
}
