package metrics

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/subscriber"
)

// Subscriber returns the counts, topics and shards of a subscriber. *subscriber.Subscriber
// implements it.
type Subscriber interface {
	Stats() subscriber.Stats
	Topics() []string
	Shards() []subscriber.ShardStatus
}

// SubscriberConfig configures [NewSubscriberCollector].
type SubscriberConfig struct {
	// ConsumerGroup is the label consumer_group, the subscriber's consumer group. Required.
	ConsumerGroup string
	// Now is the clock for the age of events. Default: time.Now.
	Now func() time.Time
}

// NewSubscriberCollector returns a collector of the metrics of a subscriber. It is safe for
// concurrent use. After the subscriber was closed, the counters keep their values, and there are no
// series of topics and shards.
//
// Its registration fails if the subscriber is nil, if the group is empty, or if the registry
// already has a collector of that group.
func NewSubscriberCollector(sub Subscriber, config SubscriberConfig) prometheus.Collector {
	switch {
	case sub == nil:
		return invalid("the subscriber is nil: pass a *subscriber.Subscriber")
	case config.ConsumerGroup == "":
		return invalid("ConsumerGroup is empty: set it to the consumer group of the subscriber")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	group := prometheus.Labels{"consumer_group": config.ConsumerGroup}
	return &subscriberCollector{
		sub: sub, now: config.Now,
		counts: subscriberCounts(group), maxima: maxima(group), topics: topicGauges(group), shards: shardGauges(group),
	}
}

type subscriberCollector struct {
	sub    Subscriber
	now    func() time.Time
	counts []count[subscriber.Stats]
	maxima []gauge[subscriber.Stats]
	topics []gauge[topicStatus]
	shards []gauge[shardStatus]
}

func subscriberCounts(group prometheus.Labels) []count[subscriber.Stats] {
	named := func(name, help string, read func(subscriber.Stats) uint64) count[subscriber.Stats] {
		return newCount("subscriber", name, help, group, read)
	}
	passedOver := func(reason string, read func(subscriber.Stats) uint64) count[subscriber.Stats] {
		labels := prometheus.Labels{"consumer_group": group["consumer_group"], "reason": reason}
		return newCount("subscriber", "events_passed_over_total", "Events that were not delivered on purpose.", labels, read)
	}
	return []count[subscriber.Stats]{
		named("messages_delivered_total", "Messages delivered to handlers, including redeliveries.",
			func(s subscriber.Stats) uint64 { return s.Delivered }),
		named("messages_acked_total", "Messages that handlers acked.",
			func(s subscriber.Stats) uint64 { return s.Acked }),
		named("messages_nacked_total", "Messages that handlers nacked.",
			func(s subscriber.Stats) uint64 { return s.Nacked }),
		named("messages_expired_total", "Messages that handlers did not ack or nack within AckDeadline.",
			func(s subscriber.Stats) uint64 { return s.Expired }),
		named("duplicates_dropped_total", "Events that were read again and dropped.",
			func(s subscriber.Stats) uint64 { return s.Duplicates }),
		named("events_fetched_total", "Events read by aggregate: local commits, and gaps in the tail.",
			func(s subscriber.Stats) uint64 { return s.Fetched }),
		named("events_late_total", "Events that a trailing read found and the live read had missed.",
			func(s subscriber.Stats) uint64 { return s.Late }),
		named("events_reconciled_total", "Events that only a reconciliation found.",
			func(s subscriber.Stats) uint64 { return s.Reconciled }),
		named("early_reconciliations_total", "Reconciliations of shards that were early because the tail index lagged.",
			func(s subscriber.Stats) uint64 { return s.Early }),
		named("positions_beyond_journal_total", "Times that a reconciliation found a position beyond the last event of its aggregate.",
			func(s subscriber.Stats) uint64 { return s.Beyond }),
		passedOver("filtered", func(s subscriber.Stats) uint64 { return s.Filtered }),
		passedOver("key_destroyed", func(s subscriber.Stats) uint64 { return s.Destroyed }),
		passedOver("removed", func(s subscriber.Stats) uint64 { return s.Truncated }),
		named("failures_total", "Reads of an aggregate that failed and were postponed.",
			func(s subscriber.Stats) uint64 { return s.Failures }),
		named("corrupt_items_total", "Items of the tail that are not events, and heads that cannot be read.",
			func(s subscriber.Stats) uint64 { return s.Corrupt }),
		named("aggregates_parked_total", "Aggregates that were parked after too many failed attempts.",
			func(s subscriber.Stats) uint64 { return s.Parked }),
		named("events_poisoned_total", "Events that went to the poison queue after too many failed attempts.",
			func(s subscriber.Stats) uint64 { return s.Poisoned }),
		named("events_skipped_total", "Events that were skipped with a record after too many failed attempts.",
			func(s subscriber.Stats) uint64 { return s.Skipped }),
		named("events_deferred_total", "Events that were deferred, and are retried on their own.",
			func(s subscriber.Stats) uint64 { return s.Deferred }),
		named("events_retried_total", "Deferred events that handlers acked.",
			func(s subscriber.Stats) uint64 { return s.Retried }),
		named("group_stops_total", "Times that an event stopped the group after too many failed attempts.",
			func(s subscriber.Stats) uint64 { return s.Stopped }),
		named("positions_claimed_total", "Positions that were read for a new term of a shard.",
			func(s subscriber.Stats) uint64 { return s.Claims }),
		named("hint_reads_total", "Reads by aggregate because of wake-ups from other processes.",
			func(s subscriber.Stats) uint64 { return s.HintReads }),
		named("events_unannounced_total", "Times that a poll found events of an aggregate that no wake-up has announced, while polling was rare.",
			func(s subscriber.Stats) uint64 { return s.Unannounced }),
		named("positions_stored_total", "Positions that were stored, with one write each.",
			func(s subscriber.Stats) uint64 { return s.Positions }),
	}
}

func maxima(group prometheus.Labels) []gauge[subscriber.Stats] {
	return []gauge[subscriber.Stats]{
		newGauge("max_lateness_seconds", "Lower bound of the longest delay with which an event appeared in the tail.", group, nil,
			func(s subscriber.Stats) float64 { return s.Lateness.Seconds() }),
		newGauge("max_ahead_seconds", "Longest time by which an event was dated ahead of this process's clock.", group, nil,
			func(s subscriber.Stats) float64 { return s.Ahead.Seconds() }),
	}
}

type topicStatus struct{ held, caughtUp int }

func topicGauges(group prometheus.Labels) []gauge[topicStatus] {
	named := func(name, help string, read func(topicStatus) float64) gauge[topicStatus] {
		return newGauge(name, help, group, []string{"topic"}, read)
	}
	return []gauge[topicStatus]{
		named("shards_held", "Logical shards that the subscriber owns.",
			func(s topicStatus) float64 { return float64(s.held) }),
		named("shards_caught_up", "Logical shards that the subscriber owns and whose tail it has read to the end.",
			func(s topicStatus) float64 { return float64(s.caughtUp) }),
	}
}

type shardStatus struct {
	subscriber.ShardStatus
	age time.Duration
}

func shardGauges(group prometheus.Labels) []gauge[shardStatus] {
	named := func(name, help string, read func(shardStatus) float64) gauge[shardStatus] {
		return newGauge(name, help, group, []string{"topic", "shard"}, read)
	}
	return []gauge[shardStatus]{
		named("shard_epoch", "Term of the shard's owner; it rises when the owner changes.",
			func(s shardStatus) float64 { return float64(s.Epoch) }),
		named("lag_events", "Known events that are not acked.",
			func(s shardStatus) float64 { return float64(s.Behind) }),
		named("oldest_unacked_age_seconds", "Age of the oldest known event that is not acked; 0 if there is none.",
			func(s shardStatus) float64 { return s.age.Seconds() }),
		named("blocked_aggregates", "Aggregates that wait for another attempt at their next event.",
			func(s shardStatus) float64 { return float64(s.Blocked) }),
		named("parked_aggregates", "Aggregates that wait for an operator.",
			func(s shardStatus) float64 { return float64(s.Parked) }),
	}
}

// Describe implements prometheus.Collector.
func (c *subscriberCollector) Describe(out chan<- *prometheus.Desc) {
	describe(out, c.counts)
	describe(out, c.maxima)
	describe(out, c.topics)
	describe(out, c.shards)
}

// Collect implements prometheus.Collector.
func (c *subscriberCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.sub.Stats()
	for _, count := range c.counts {
		out <- count.of(stats)
	}
	for _, most := range c.maxima {
		out <- most.of(stats)
	}
	now := c.now()
	topics := map[string]topicStatus{}
	for _, topic := range c.sub.Topics() {
		topics[topic] = topicStatus{}
	}
	for _, shard := range latest(c.sub.Shards()) {
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
		for _, gauge := range c.shards {
			out <- gauge.of(status, shard.Topic, strconv.Itoa(shard.Shard))
		}
	}
	for topic, status := range topics {
		for _, gauge := range c.topics {
			out <- gauge.of(status, topic)
		}
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

// invalid returns a collector whose registration fails with a reason.
func invalid(reason string) prometheus.Collector {
	return refused{prometheus.NewInvalidDesc(errors.New(reason))}
}

type refused struct{ desc *prometheus.Desc }

func (r refused) Describe(out chan<- *prometheus.Desc) { out <- r.desc }
func (r refused) Collect(chan<- prometheus.Metric)     {}
