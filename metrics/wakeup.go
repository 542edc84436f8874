package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/metrics/internal/series"
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
	return newCollector(series.OfWakeupSender(s.Stats))
}

// NewWakeupReceiverCollector returns a collector of the metrics of a receiver of wake-ups. Its
// registration fails if the receiver is nil, or if the registry already has such a collector.
func NewWakeupReceiverCollector(r WakeupReceiver) prometheus.Collector {
	if r == nil {
		return invalid("the receiver is nil: pass a *wakeup.Receiver")
	}
	return newCollector(series.OfWakeupReceiver(r.Stats))
}
