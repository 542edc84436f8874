package metrics_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/wakeup"
)

// sent and received are senders and receivers with given counts.
type (
	sent     wakeup.SenderStats
	received wakeup.ReceiverStats
)

func (s sent) Stats() wakeup.SenderStats       { return wakeup.SenderStats(s) }
func (r received) Stats() wakeup.ReceiverStats { return wakeup.ReceiverStats(r) }

func TestEveryCountOfWakeUpsIsAMetric(t *testing.T) {
	t.Parallel()
	var s wakeup.SenderStats
	var r wakeup.ReceiverStats
	sends, receives := countUp(t, &s), countUp(t, &r)
	hasEach(t, sends, metrics.NewWakeupSenderCollector(sent(s)))
	hasEach(t, receives, metrics.NewWakeupReceiverCollector(received(r)))
	for _, c := range []prometheus.Collector{metrics.NewWakeupSenderCollector(nil), metrics.NewWakeupReceiverCollector(nil)} {
		assert.Error(t, prometheus.NewRegistry().Register(c))
	}
}
