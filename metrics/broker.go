package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/metrics/internal/series"
	"github.com/millrace-dev/millrace/receive"
)

// Forwarder returns the counts of a forwarder. *forward.Forwarder implements it.
type Forwarder interface {
	Stats() forward.Stats
}

// Receiver returns the counts of a receiver. *receive.Receiver implements it.
type Receiver interface {
	Stats() receive.Stats
}

// BrokerConfig configures [NewForwarderCollector] and [NewReceiverCollector].
type BrokerConfig struct {
	// ConsumerGroup is the label consumer_group: the group that forwards the events, or that
	// handles the received messages. Required.
	ConsumerGroup string
}

const noGroup = "ConsumerGroup is empty: set it to the name of the consumer group"

// NewForwarderCollector returns a collector of the metrics of a forwarder. It is safe for
// concurrent use.
//
// Its registration fails if the forwarder is nil, if the group is empty, or if the registry already
// has such a collector of that group.
func NewForwarderCollector(f Forwarder, config BrokerConfig) prometheus.Collector {
	switch {
	case f == nil:
		return invalid("the forwarder is nil: pass a *forward.Forwarder")
	case config.ConsumerGroup == "":
		return invalid(noGroup)
	}
	return newCollector(series.OfForwarder(f.Stats, config.ConsumerGroup))
}

// NewReceiverCollector returns a collector of the metrics of a receiver of messages of another
// Pub/Sub. It is safe for concurrent use.
//
// Its registration fails if the receiver is nil, if the group is empty, or if the registry already
// has such a collector of that group.
func NewReceiverCollector(r Receiver, config BrokerConfig) prometheus.Collector {
	switch {
	case r == nil:
		return invalid("the receiver is nil: pass a *receive.Receiver")
	case config.ConsumerGroup == "":
		return invalid(noGroup)
	}
	return newCollector(series.OfReceiver(r.Stats, config.ConsumerGroup))
}
