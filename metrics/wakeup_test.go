package metrics_test

import (
	"maps"
	"slices"
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
	check := func(n int, c prometheus.Collector) {
		values := slices.Sorted(maps.Values(gather(t, c)))
		for i := range n {
			assert.Contains(t, values, i+1, "field %d has no metric", i+1)
		}
	}
	check(sends, metrics.NewWakeupSenderCollector(sent(s)))
	check(receives, metrics.NewWakeupReceiverCollector(received(r)))
	for _, c := range []prometheus.Collector{metrics.NewWakeupSenderCollector(nil), metrics.NewWakeupReceiverCollector(nil)} {
		assert.Error(t, prometheus.NewRegistry().Register(c))
	}
}
