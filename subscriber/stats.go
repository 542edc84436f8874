package subscriber

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/subscriber/internal/source"
)

// Stats counts what a subscriber has done since it was created.
type Stats struct {
	Delivered  uint64 // messages delivered, including redeliveries
	Acked      uint64 // messages acked
	Nacked     uint64 // messages nacked
	Expired    uint64 // messages that were not answered within AckDeadline
	Filtered   uint64 // events passed over because their type is not in EventTypes
	Duplicates uint64 // events that were found again and dropped
	Fetched    uint64 // events read by aggregate: gaps in the tail and local commits
	Failures   uint64 // errors of the store, and of reading or decoding events; all are retried
	Corrupt    uint64 // items of the tail that are no events, and heads that cannot be read
	Destroyed  uint64 // events passed over because the key of their aggregate was destroyed
	Truncated  uint64 // events passed over because they were removed from the journal
	Parked     uint64 // aggregates parked
	Poisoned   uint64 // events that went to the poison queue
	Skipped    uint64 // events skipped with a record, and deferred events that were given up
	Deferred   uint64 // events deferred
	Retried    uint64 // deferred events that were acked
	Stopped    uint64 // times that an event of this subscriber stopped the group
	Late       uint64 // events that a trailing read found and the live read had missed
	Reconciled uint64 // events that only a reconciliation found
	Early      uint64 // early reconciliations, because the tail index lagged
	Positions  uint64 // positions stored
	HintReads  uint64 // reads by aggregate because of wake-ups from other processes

	// Unannounced counts how often a poll found events of an aggregate that no wake-up has
	// announced, while polling was rare. See package wakeup.
	Unannounced uint64
	// Beyond counts how often a reconciliation found a position beyond the last event of its
	// aggregate, as after a restore of the journal.
	Beyond uint64
	// Claims counts the positions read for the first event of an aggregate in a term. Each costs
	// one read unit, or one write unit if the position is fenced.
	Claims uint64

	// Lateness is the longest time between the date of an event and the last read of the tail
	// without it. It consists of the delay of the index, the duration of commits, and the error of
	// writers' clocks that are behind.
	Lateness time.Duration
	// Ahead is the longest time by which an event was dated after the present of this process.
	Ahead time.Duration
}

type counters struct {
	delivered, acked, nacked, expired, filtered, duplicates, fetched, failures, destroyed, truncated, parked, poisoned,
	skipped, deferred, retried, stopped, reconciled, claims, positions, hints atomic.Uint64
	source.Counters
}

func (c *counters) read() Stats {
	lateness, ahead := c.Skew()
	return Stats{
		Delivered: c.delivered.Load(), Acked: c.acked.Load(), Nacked: c.nacked.Load(), Expired: c.expired.Load(),
		Filtered: c.filtered.Load(), Duplicates: c.duplicates.Load(), Fetched: c.fetched.Load(), Failures: c.failures.Load(),
		Corrupt: c.Corrupt.Load(), Destroyed: c.destroyed.Load(), Truncated: c.truncated.Load(),
		Parked: c.parked.Load(), Poisoned: c.poisoned.Load(), Skipped: c.skipped.Load(), Deferred: c.deferred.Load(),
		Retried: c.retried.Load(), Stopped: c.stopped.Load(), Late: c.Late.Load(), Reconciled: c.reconciled.Load(),
		Early: c.Early.Load(), Beyond: c.Beyond.Load(), Claims: c.claims.Load(), Positions: c.positions.Load(), HintReads: c.hints.Load(), Unannounced: c.Unannounced.Load(),
		Lateness: lateness, Ahead: ahead,
	}
}

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

// AggregateStatus is what a [Subscriber] knows of an aggregate in a shard that it owns.
type AggregateStatus struct {
	// Handled is the number of the last event that was acked, 0 if that is not known yet. Its
	// position may not be stored yet ([Timing.CommitInterval]).
	Handled uint64
	// Reason is the error of the last failed attempt at the next event, and the number of attempts,
	// such as "connection refused, 3 times". It is empty if no attempt has failed, and if the
	// aggregate is parked. Limit: 300 bytes.
	Reason string
	// Parked reports that the group no longer tries the next event ([Park]). The reason is in the
	// group's list, see groups.Group.Parked.
	Parked bool
}

// Aggregate returns what the subscriber knows of an aggregate, without a request. It returns false
// if another member owns the shard, if no event of the aggregate was found in this term, or if the
// aggregate was forgotten ([Config.StateBytes]). Then package groups reads the stored position.
func (sub *Subscriber) Aggregate(id aggregate.ID) (status AggregateStatus, known bool) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for s := range sub.subscriptions {
		if s.topic != id.Type {
			continue
		}
		sh, owned := s.member.Work(s.journal.Shard(id))
		if !owned {
			continue
		}
		of, inMemory := sh.sequencer.StatusOf(id)
		if !inMemory {
			continue
		}
		status = AggregateStatus{Handled: max(status.Handled, of.Acked), Parked: of.Parked}
		if f := of.Failure; f != nil {
			status.Reason = f.Reason
		}
		known = true
	}
	return status, known
}

func (sh *shard) status() ShardStatus {
	s := sh.sequencer.Status(sh.committer.fresh)
	return ShardStatus{
		Topic: sh.topic, Shard: sh.number, Epoch: sh.epoch, CaughtUp: s.CaughtUp, Behind: s.Behind,
		OldestUnacked: s.OldestUnacked, Blocked: s.Blocked, Parked: s.Parked,
	}
}
