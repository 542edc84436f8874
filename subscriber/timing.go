package subscriber

import (
	"cmp"
	"time"
)

// Timing holds the intervals of a [Subscriber] that belongs to a consumer group.
type Timing struct {
	// PollInterval is the pause between two reads of the end of a shard's tail. It grows while
	// there are no new events, up to MaxPollInterval. It is therefore the latency of events that
	// other processes commit, unless these send wake-ups (package wakeup). A poll costs half a read
	// unit for each shard, or in the packed layout for each partition of the tail. Defaults: 200 ms
	// and 1 second.
	PollInterval, MaxPollInterval time.Duration

	// TrailingDelay is the age of events at which the last trailing read reads a part of the tail
	// again. Default: 10 seconds.
	//
	// Trailing reads are necessary because the index is eventually consistent and the clocks of
	// writers differ. TrailingDelay must exceed the sum of both. It must also exceed the time for
	// which writers repeat a commit (journal.Config.RetryBudget), because a commit whose outcome is
	// unknown keeps its date. An event that appears later still is delivered with the next event of
	// its aggregate or after the next reconciliation.
	//
	// If TrailingDelay is 1 second or more, there is another trailing read at an age of 0.5
	// seconds. Each trailing read costs half a read unit for each 4 KB of events, as the live read
	// does. Events that are older than the delay when they are first read, such as history, are
	// read once.
	TrailingDelay time.Duration

	// ReconcileInterval is the time between two reconciliations of a shard. A reconciliation
	// compares the journal with the group's positions. It limits how late an event is delivered
	// that appears in the tail too late or at the wrong place. Default: 1 hour, and never with
	// [Config.Positions], except for a projection.Rows. A negative value means never.
	//
	// In the classic layout a reconciliation compares all heads. So it finds events that were
	// imported, dated wrongly, or written by another program. It reads the topic's part of the
	// snapshot table, including the states, and the positions: half a read unit for each 4 KB, at
	// most about 130 a second.
	//
	// In the packed layout the tail is in the order of writing. A reconciliation reads again what
	// was written since the last one and in the interval before. It finds each event that the index
	// shows late by less than the interval. Once a week it compares all aggregates, at half a read
	// unit for each 4 KB of their last commits.
	ReconcileInterval time.Duration

	// CommitInterval is the time between two writes of positions. Each write costs one write unit
	// for each aggregate whose position has changed. After a crash, events that were acked since
	// the last write are delivered again. A subscription writes earlier when it has unstored
	// positions of as many aggregates as an eighth of [Config.StateBytes] in KiB, by default 4,096.
	// Default: 1 second.
	//
	// A negative value means that the position is stored after each ack, before the next event of
	// the aggregate is delivered. Then at most the last event of each aggregate is delivered again
	// after a crash. It costs one write unit and one round trip for each event.
	CommitInterval time.Duration

	// BehindAfter is the time after which a blocked aggregate, or one with a slow handler, no
	// longer holds back the cursor of its shard. It is then listed as behind. Until then a restart
	// reads later events of the shard again. The entry costs one write unit, and its removal
	// another. Default: 30 seconds.
	BehindAfter time.Duration

	// LeaseDuration is the time after the last heartbeat of a member after which others take over
	// its shards. A member sends a heartbeat every quarter of it. So each member costs four writes
	// of the group's row in each LeaseDuration, for each topic. Default: 10 seconds. Minimum: 100
	// ms.
	LeaseDuration time.Duration
}

// setDefaults sets the fields that are 0. Without reconciles the default of ReconcileInterval is
// never.
func (t *Timing) setDefaults(reconciles bool) {
	t.PollInterval = cmp.Or(t.PollInterval, 200*time.Millisecond)
	t.MaxPollInterval = cmp.Or(t.MaxPollInterval, max(time.Second, t.PollInterval))
	t.TrailingDelay = cmp.Or(t.TrailingDelay, 10*time.Second)
	if reconciles {
		t.ReconcileInterval = cmp.Or(t.ReconcileInterval, time.Hour)
	}
	t.ReconcileInterval = cmp.Or(t.ReconcileInterval, -1)
	t.CommitInterval = cmp.Or(t.CommitInterval, time.Second)
	t.BehindAfter = cmp.Or(t.BehindAfter, 30*time.Second)
	t.LeaseDuration = cmp.Or(t.LeaseDuration, 10*time.Second)
}

// validate returns a [*ConfigError] for the first invalid field, whose name it prefixes.
func (t *Timing) validate(prefix string) error {
	refuse := func(field, reason string) error { return &ConfigError{prefix + field, reason} }
	switch {
	case t.PollInterval < 0:
		return refuse("PollInterval", "is negative")
	case t.MaxPollInterval < t.PollInterval:
		return refuse("MaxPollInterval", "is shorter than PollInterval")
	case t.TrailingDelay < 0:
		return refuse("TrailingDelay", "is negative")
	case t.ReconcileInterval > 0 && t.ReconcileInterval < time.Millisecond:
		return refuse("ReconcileInterval", "is under a millisecond; use a longer one, or a negative one for never")
	case t.BehindAfter < 0:
		return refuse("BehindAfter", "is negative")
	case t.LeaseDuration < 100*time.Millisecond:
		return refuse("LeaseDuration", "is under 100 ms; heartbeats take round trips")
	}
	return nil
}

// flushInterval is the time between two writes of all positions that have changed.
func (t *Timing) flushInterval() time.Duration {
	if t.CommitInterval < 0 {
		return time.Second // to repeat failed writes: others are made after each ack
	}
	return t.CommitInterval
}
