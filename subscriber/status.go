package subscriber

import (
	"cmp"
	"slices"
	"time"
)

// ShardStatus is how a subscriber stands with a logical shard that it holds, as far as it knows:
// what it has not read yet does not show. Package groups computes the exact lag.
type ShardStatus struct {
	Topic string
	Shard int
	Epoch uint64 // the term, which rises each time the shard changes hands
	// CaughtUp: the tail was read to its end.
	CaughtUp bool
	// Behind is how many events are known and not acked; an aggregate whose position is not read
	// yet counts for one. OldestUnacked is the time of the first of those that the tail has shown,
	// zero if there is none.
	Behind        uint64
	OldestUnacked time.Time
	// Blocked aggregates wait for another attempt, Parked ones for an operator.
	Blocked, Parked int
}

// Shards reports how it stands with the shards that it holds, in the order of topics and numbers.
func (sub *Subscriber) Shards() []ShardStatus {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	var all []ShardStatus
	for m := range sub.members {
		for n := range m.held {
			if sh := m.held[n].Load(); sh != nil {
				all = append(all, sh.status())
			}
		}
	}
	slices.SortFunc(all, func(a, b ShardStatus) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Shard, b.Shard))
	})
	return all
}

func (sh *shard) status() ShardStatus {
	status := sh.sequencer.status(sh.committer.fresh)
	status.Topic, status.Shard, status.Epoch = sh.topic, sh.number, sh.epoch
	return status
}

func (q *sequencer) status(fresh bool) ShardStatus {
	q.mu.Lock()
	defer q.mu.Unlock()
	status := ShardStatus{CaughtUp: q.caughtUp}
	oldest := int64(0)
	for st := range q.unfinished {
		switch st.state {
		case delayed:
			status.Blocked++
		case parked:
			status.Parked++
		}
		switch {
		case st.claimed || st.state == parked || fresh && !q.forgotten.has(st.id):
			status.Behind += st.head - min(st.head, st.acked)
		default:
			status.Behind++ // its position is read when its turn comes
		}
		// The time of the first one, where it is in memory; else that of the last, which is too
		// late rather than wrong.
		at := st.hintAt
		if len(st.buffer.records) > 0 {
			at = st.buffer.records[0].WrittenAt.UnixMilli()
		}
		if !st.drained() && st.hint > 0 && (oldest == 0 || at < oldest) {
			oldest = at
		}
	}
	if oldest > 0 {
		status.OldestUnacked = time.UnixMilli(oldest)
	}
	return status
}
