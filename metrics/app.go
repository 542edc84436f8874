package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/metrics/internal/series"
)

// App yields the components to observe. *millrace.App implements it.
type App interface {
	Components() iter.Seq2[string, any]
}

// Collectors returns a collector for each repository, subscriber, projection, process manager,
// forwarder and receiver that was added to an App, and for its wake-ups.
func Collectors(app App) (collectors []prometheus.Collector) {
	for name, component := range app.Components() {
		if c, ok := series.Of(name, component); ok {
			collectors = append(collectors, newCollector(c))
		}
	}
	return collectors
}
