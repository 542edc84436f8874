package series

import (
	"strconv"
	"time"

	"github.com/millrace-dev/millrace/subscriber"
)

// Subscriber is what a subscriber reports.
type Subscriber interface {
	Stats() subscriber.Stats
	Topics() []string
	Shards() []subscriber.ShardStatus
}

var passedOverEvents = Series{
	Name: "subscriber_events_passed_over_total", Unit: "{event}", Help: "Events that were not delivered on purpose.", Labels: []Label{reason},
}

func passedOver(reason string, read func(subscriber.Stats) uint64) entry[subscriber.Stats] {
	return entry[subscriber.Stats]{&passedOverEvents, func(s subscriber.Stats) Value {
		return Value{Value: float64(read(s)), Labels: []string{reason}}
	}}
}

// conventional makes a series that of the semantic conventions of messaging.
func conventional(name string, e entry[subscriber.Stats]) entry[subscriber.Stats] {
	e.series.Conventional = name
	e.series.Fixed = [][2]string{{"messaging.system", "millrace"}, {"messaging.operation.name", "deliver"}}
	return e
}

var subscriberEntries = []entry[subscriber.Stats]{
	conventional("messaging.client.consumed.messages", counter("subscriber_messages_delivered_total", "{message}", "Messages delivered to handlers, including redeliveries.",
		func(s subscriber.Stats) uint64 { return s.Delivered })),
	counter("subscriber_messages_acked_total", "{message}", "Messages that handlers acked.",
		func(s subscriber.Stats) uint64 { return s.Acked }),
	counter("subscriber_messages_nacked_total", "{message}", "Messages that handlers nacked.",
		func(s subscriber.Stats) uint64 { return s.Nacked }),
	counter("subscriber_messages_expired_total", "{message}", "Messages that handlers did not ack or nack within AckDeadline.",
		func(s subscriber.Stats) uint64 { return s.Expired }),
	counter("subscriber_duplicates_dropped_total", "{event}", "Events that were read again and dropped.",
		func(s subscriber.Stats) uint64 { return s.Duplicates }),
	counter("subscriber_events_fetched_total", "{event}", "Events read by aggregate: local commits, and gaps in the tail.",
		func(s subscriber.Stats) uint64 { return s.Fetched }),
	counter("subscriber_events_late_total", "{event}", "Events that a trailing read found and the live read had missed.",
		func(s subscriber.Stats) uint64 { return s.Late }),
	counter("subscriber_events_reconciled_total", "{event}", "Events that only a reconciliation found.",
		func(s subscriber.Stats) uint64 { return s.Reconciled }),
	counter("subscriber_early_reconciliations_total", "{reconciliation}", "Reconciliations of shards that were early because the tail index lagged.",
		func(s subscriber.Stats) uint64 { return s.Early }),
	counter("subscriber_positions_beyond_journal_total", "{position}", "Times that a reconciliation found a position beyond the last event of its aggregate.",
		func(s subscriber.Stats) uint64 { return s.Beyond }),
	passedOver("filtered", func(s subscriber.Stats) uint64 { return s.Filtered }),
	passedOver("key_destroyed", func(s subscriber.Stats) uint64 { return s.Destroyed }),
	passedOver("removed", func(s subscriber.Stats) uint64 { return s.Truncated }),
	counter("subscriber_failures_total", "{failure}", "Reads of an aggregate that failed and were postponed.",
		func(s subscriber.Stats) uint64 { return s.Failures }),
	counter("subscriber_corrupt_items_total", "{item}", "Items of the tail that are not events, and heads that cannot be read.",
		func(s subscriber.Stats) uint64 { return s.Corrupt }),
	counter("subscriber_aggregates_parked_total", "{aggregate}", "Aggregates that were parked after too many failed attempts.",
		func(s subscriber.Stats) uint64 { return s.Parked }),
	counter("subscriber_events_poisoned_total", "{event}", "Events that went to the poison queue after too many failed attempts.",
		func(s subscriber.Stats) uint64 { return s.Poisoned }),
	counter("subscriber_events_skipped_total", "{event}", "Events that were skipped with a record after too many failed attempts.",
		func(s subscriber.Stats) uint64 { return s.Skipped }),
	counter("subscriber_events_deferred_total", "{event}", "Events that were deferred, and are retried on their own.",
		func(s subscriber.Stats) uint64 { return s.Deferred }),
	counter("subscriber_events_retried_total", "{event}", "Deferred events that handlers acked.",
		func(s subscriber.Stats) uint64 { return s.Retried }),
	counter("subscriber_group_stops_total", "{stop}", "Times that an event stopped the group after too many failed attempts.",
		func(s subscriber.Stats) uint64 { return s.Stopped }),
	counter("subscriber_positions_claimed_total", "{position}", "Positions that were read for a new term of a shard.",
		func(s subscriber.Stats) uint64 { return s.Claims }),
	counter("subscriber_hint_reads_total", "{read}", "Reads by aggregate because of wake-ups from other processes.",
		func(s subscriber.Stats) uint64 { return s.HintReads }),
	counter("subscriber_events_unannounced_total", "{event}", "Times that a poll found events of an aggregate that no wake-up has announced, while polling was rare.",
		func(s subscriber.Stats) uint64 { return s.Unannounced }),
	counter("subscriber_positions_stored_total", "{position}", "Positions that were stored, with one write each.",
		func(s subscriber.Stats) uint64 { return s.Positions }),
	gauge(Gauge, "subscriber_max_lateness_seconds", "s", "Lower bound of the longest delay with which an event appeared in the tail.", nil,
		func(s subscriber.Stats) float64 { return s.Lateness.Seconds() }),
	gauge(Gauge, "subscriber_max_ahead_seconds", "s", "Longest time by which an event was dated ahead of this process's clock.", nil,
		func(s subscriber.Stats) float64 { return s.Ahead.Seconds() }),
}

type topicStatus struct{ held, caughtUp int }

var topicEntries = []entry[topicStatus]{
	gauge(UpDown, "subscriber_shards_held", "{shard}", "Logical shards that the subscriber owns.", []Label{topic},
		func(s topicStatus) float64 { return float64(s.held) }),
	gauge(UpDown, "subscriber_shards_caught_up", "{shard}", "Logical shards that the subscriber owns and whose tail it has read to the end.", []Label{topic},
		func(s topicStatus) float64 { return float64(s.caughtUp) }),
}

type shardStatus struct {
	subscriber.ShardStatus
	age time.Duration
}

var shardEntries = []entry[shardStatus]{
	gauge(Gauge, "subscriber_shard_epoch", "{epoch}", "Term of the shard's owner; it rises when the owner changes.", []Label{topic, shard},
		func(s shardStatus) float64 { return float64(s.Epoch) }),
	gauge(UpDown, "subscriber_lag_events", "{event}", "Known events that are not acked.", []Label{topic, shard},
		func(s shardStatus) float64 { return float64(s.Behind) }),
	gauge(Gauge, "subscriber_oldest_unacked_age_seconds", "s", "Age of the oldest known event that is not acked; 0 if there is none.", []Label{topic, shard},
		func(s shardStatus) float64 { return s.age.Seconds() }),
	gauge(UpDown, "subscriber_blocked_aggregates", "{aggregate}", "Aggregates that wait for another attempt at their next event.", []Label{topic, shard},
		func(s shardStatus) float64 { return float64(s.Blocked) }),
	gauge(UpDown, "subscriber_parked_aggregates", "{aggregate}", "Aggregates that wait for an operator.", []Label{topic, shard},
		func(s shardStatus) float64 { return float64(s.Parked) }),
}

// OfSubscriber returns the metrics of a subscriber. Now is the clock for the age of events, by
// default time.Now.
func OfSubscriber(sub Subscriber, group string, now func() time.Time) Component {
	if now == nil {
		now = time.Now
	}
	c := of("subscriber", group, consumerGroup, sub.Stats, subscriberEntries)
	c.Series = append(append(c.Series, seriesOf(topicEntries)...), seriesOf(shardEntries)...)
	c.Collect = func(out func(Value)) {
		collect(subscriberEntries, sub.Stats(), out)
		collectShards(sub, now(), out)
	}
	return c
}

func collectShards(sub Subscriber, now time.Time, out func(Value)) {
	topics := map[string]topicStatus{}
	for _, topic := range sub.Topics() {
		topics[topic] = topicStatus{}
	}
	for _, shard := range latest(sub.Shards()) {
		topic := topics[shard.Topic]
		topic.held++
		if shard.CaughtUp {
			topic.caughtUp++
		}
		topics[shard.Topic] = topic

		status := shardStatus{ShardStatus: shard}
		if !shard.OldestUnacked.IsZero() {
			status.age = max(0, now.Sub(shard.OldestUnacked)) // clocks of writers may be ahead
		}
		collect(shardEntries, status, out, shard.Topic, strconv.Itoa(shard.Shard))
	}
	for topic, status := range topics {
		collect(topicEntries, status, out, topic)
	}
}

// latest returns one status for each shard. While a shard moves between two subscriptions of one
// process, both report it. A registry refuses all metrics of a process if one occurs twice.
func latest(statuses []subscriber.ShardStatus) map[place]subscriber.ShardStatus {
	byPlace := make(map[place]subscriber.ShardStatus, len(statuses))
	for _, status := range statuses {
		at := place{status.Topic, status.Shard}
		if known, ok := byPlace[at]; !ok || status.Epoch > known.Epoch {
			byPlace[at] = status
		}
	}
	return byPlace
}

type place struct {
	topic string
	shard int
}
