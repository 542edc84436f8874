package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/metrics/internal/series"
)

// Collectors returns a collector for each repository, subscriber, projection, process manager,
// forwarder, receiver and wake-up of some components, which are those of an App
// (millrace.App.Components), or yours with a name for each.
func Collectors(components iter.Seq2[string, any]) (collectors []prometheus.Collector) {
	for name, component := range components {
		if c, ok := series.Of(name, component); ok {
			collectors = append(collectors, newCollector(c))
		}
	}
	return collectors
}
