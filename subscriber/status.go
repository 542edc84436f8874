package subscriber

import (
	"cmp"
	"slices"
	"time"
)

// ShardStatus is the status of a shard that a subscriber owns. It counts only events that the
// subscriber has found. Package groups computes the exact lag.
type ShardStatus struct {
	Topic string // the topic of the subscription
	Shard int    // the number of the shard, from 0
	Epoch uint64 // rises each time the owner of the shard changes
	// CaughtUp reports whether the tail was read to its end.
	CaughtUp bool
	// Behind is the number of known events that are not acked. An aggregate whose position is not
	// read yet counts as one. OldestUnacked is the time of the first of those that the tail has
	// shown, or zero if there is none.
	Behind        uint64
	OldestUnacked time.Time
	// Blocked is the number of aggregates that wait for another attempt. Parked is the number of
	// aggregates that wait for an operator.
	Blocked, Parked int
}

// Shards returns the status of the shards that the subscriber owns, in the order of topics and
// numbers.
func (sub *Subscriber) Shards() []ShardStatus {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	var all []ShardStatus
	for s := range sub.subscriptions {
		for sh := range s.member.All() {
			all = append(all, sh.status())
		}
	}
	slices.SortFunc(all, func(a, b ShardStatus) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Shard, b.Shard))
	})
	return all
}

// Topics returns the topics of the open subscriptions in ascending order, each once. A subscription
// is open also while it owns no shard.
func (sub *Subscriber) Topics() []string {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	var topics []string
	for s := range sub.subscriptions {
		topics = append(topics, s.topic)
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

func (sh *shard) status() ShardStatus {
	s := sh.sequencer.Status(sh.committer.fresh)
	return ShardStatus{
		Topic: sh.topic, Shard: sh.number, Epoch: sh.epoch, CaughtUp: s.CaughtUp, Behind: s.Behind,
		OldestUnacked: s.OldestUnacked, Blocked: s.Blocked, Parked: s.Parked,
	}
}
