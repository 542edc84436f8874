package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/wakeup"
)

// WakeupSender returns the counts of a sender of wake-ups. *wakeup.Sender implements it.
type WakeupSender interface {
	Stats() wakeup.SenderStats
}

// WakeupReceiver returns the counts of a receiver of wake-ups. *wakeup.Receiver implements it.
type WakeupReceiver interface {
	Stats() wakeup.ReceiverStats
}

// NewWakeupSenderCollector returns a collector of the metrics of a sender of wake-ups. Its
// registration fails if the sender is nil, or if the registry already has such a collector.
func NewWakeupSenderCollector(s WakeupSender) prometheus.Collector {
	if s == nil {
		return invalid("the sender is nil: pass a *wakeup.Sender")
	}
	named := func(name, help string, read func(wakeup.SenderStats) uint64) count[wakeup.SenderStats] {
		return newCount("wakeup", name, help, nil, read)
	}
	return &countsCollector[wakeup.SenderStats]{s.Stats, []count[wakeup.SenderStats]{
		named("commits_total", "Commits of this process.", func(s wakeup.SenderStats) uint64 { return s.Commits }),
		named("messages_sent_total", "Wake-ups that were published.", func(s wakeup.SenderStats) uint64 { return s.Messages }),
		named("send_failures_total", "Wake-ups that could not be published.", func(s wakeup.SenderStats) uint64 { return s.Failures }),
		named("aggregates_dropped_total", "Aggregates whose commits were not reported.", func(s wakeup.SenderStats) uint64 { return s.Dropped }),
	}}
}

// NewWakeupReceiverCollector returns a collector of the metrics of a receiver of wake-ups. Its
// registration fails if the receiver is nil, or if the registry already has such a collector.
func NewWakeupReceiverCollector(r WakeupReceiver) prometheus.Collector {
	if r == nil {
		return invalid("the receiver is nil: pass a *wakeup.Receiver")
	}
	named := func(name, help string, read func(wakeup.ReceiverStats) uint64) count[wakeup.ReceiverStats] {
		return newCount("wakeup", name, help, nil, read)
	}
	return &countsCollector[wakeup.ReceiverStats]{r.Stats, []count[wakeup.ReceiverStats]{
		named("messages_received_total", "Wake-ups that were received.", func(s wakeup.ReceiverStats) uint64 { return s.Messages }),
		named("aggregates_received_total", "Aggregates that the received wake-ups report.", func(s wakeup.ReceiverStats) uint64 { return s.Aggregates }),
		named("messages_ignored_total", "Wake-ups about other journals.", func(s wakeup.ReceiverStats) uint64 { return s.Ignored }),
		named("invalid_total", "Messages that are no wake-ups, and reports of invalid ids.", func(s wakeup.ReceiverStats) uint64 { return s.Invalid }),
	}}
}

// countsCollector collects counts.
type countsCollector[S any] struct {
	read   func() S
	counts []count[S]
}

// Describe implements prometheus.Collector.
func (c *countsCollector[S]) Describe(out chan<- *prometheus.Desc) { describe(out, c.counts) }

// Collect implements prometheus.Collector.
func (c *countsCollector[S]) Collect(out chan<- prometheus.Metric) {
	stats := c.read()
	for _, count := range c.counts {
		out <- count.of(stats)
	}
}
