package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/metrics/internal/series"
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
	return newCollector(series.OfSubscriber(sub, config.ConsumerGroup, config.Now))
}
