package metrics_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/receive"
)

// forwarded and stored are a forwarder and a receiver with given counts.
type (
	forwarded forward.Stats
	stored    receive.Stats
)

func (f forwarded) Stats() forward.Stats { return forward.Stats(f) }
func (s stored) Stats() receive.Stats    { return receive.Stats(s) }

func TestEveryCountOfMessagesOfOtherSystemsIsAMetric(t *testing.T) {
	t.Parallel()
	var f forward.Stats
	var r receive.Stats
	forwards, receives := countUp(t, &f), countUp(t, &r)
	config := metrics.BrokerConfig{ConsumerGroup: "kafka"}
	hasEach(t, forwards, metrics.NewForwarderCollector(forwarded(f), config))
	hasEach(t, receives, metrics.NewReceiverCollector(stored(r), config))
	for _, c := range []prometheus.Collector{
		metrics.NewForwarderCollector(nil, config), metrics.NewReceiverCollector(nil, config),
		metrics.NewForwarderCollector(forwarded(f), metrics.BrokerConfig{}), metrics.NewReceiverCollector(stored(r), metrics.BrokerConfig{}),
	} {
		assert.Error(t, prometheus.NewRegistry().Register(c))
	}
}
