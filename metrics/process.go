package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/metrics/internal/series"
	"github.com/millrace-dev/millrace/process"
)

// Process returns the counts of a process manager. *process.Manager implements it.
type Process interface {
	Stats() process.Stats
}

// ProcessConfig configures [NewProcessCollector].
type ProcessConfig struct {
	// Type is the label process_type, the aggregate type of the manager's definition. Required.
	Type string
}

// NewProcessCollector returns a collector of the metrics of a process manager. It is safe for
// concurrent use.
//
// Its registration fails if the manager is nil, if the type is empty, or if the registry already
// has a collector of that type.
func NewProcessCollector(p Process, config ProcessConfig) prometheus.Collector {
	switch {
	case p == nil:
		return invalid("the process manager is nil: pass a *process.Manager")
	case config.Type == "":
		return invalid("Type is empty: set it to the type of the process manager's definition")
	}
	return newCollector(series.OfProcess(p.Stats, config.Type))
}
