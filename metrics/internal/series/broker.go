package series

import (
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/receive"
)

var forwardEntries = []entry[forward.Stats]{
	counter("forward_messages_total", "{message}", "Messages to other systems that the broker has accepted, including repetitions.",
		func(s forward.Stats) uint64 { return s.Messages }),
	counter("forward_events_ignored_total", "{event}", "Events without a message to other systems.",
		func(s forward.Stats) uint64 { return s.Ignored }),
	counter("forward_failures_total", "{failure}", "Failed attempts to forward an event.",
		func(s forward.Stats) uint64 { return s.Failed }),
}

var receiveEntries = []entry[receive.Stats]{
	counter("receive_messages_stored_total", "{message}", "Messages of other systems that were stored, including repeated deliveries.",
		func(s receive.Stats) uint64 { return s.Stored }),
	counter("receive_messages_ignored_total", "{message}", "Messages of other systems with names that have no handler.",
		func(s receive.Stats) uint64 { return s.Ignored }),
	counter("receive_failures_total", "{failure}", "Failed attempts to store a message of another system.",
		func(s receive.Stats) uint64 { return s.Failed }),
}

// OfForwarder returns the metrics of a forwarder.
func OfForwarder(stats func() forward.Stats, group string) Component {
	return of("forwarder", group, consumerGroup, stats, forwardEntries)
}

// OfReceiver returns the metrics of a receiver of messages of another Pub/Sub.
func OfReceiver(stats func() receive.Stats, group string) Component {
	return of("receiver", group, consumerGroup, stats, receiveEntries)
}
