package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/projection"
)

// Projection is what a collector asks; a *projection.Projection is one, and a *sqlprojection.Store.
type Projection interface {
	Stats() projection.Stats
}

// ProjectionConfig configures [NewProjectionCollector].
type ProjectionConfig struct {
	// Name is the label projection. Required.
	Name string
}

// NewProjectionCollector makes a collector of a projection's metrics. It is safe for concurrent
// use.
//
// Registering it fails if the projection is nil or the name empty, and if the registry has a
// collector of that name already.
func NewProjectionCollector(p Projection, config ProjectionConfig) prometheus.Collector {
	switch {
	case p == nil:
		return invalid("the projection is nil: give a *projection.Projection or a *sqlprojection.Store")
	case config.Name == "":
		return invalid("Name is empty: give one that tells the projection from others")
	}
	named := func(name, help string, read func(projection.Stats) uint64) count[projection.Stats] {
		return newCount("projection", name, help, prometheus.Labels{"projection": config.Name}, read)
	}
	return &projectionCollector{projection: p, counts: []count[projection.Stats]{
		named("events_applied_total", "Events whose writes were committed.",
			func(s projection.Stats) uint64 { return s.Applied }),
		named("events_ignored_total", "Events without writes.",
			func(s projection.Stats) uint64 { return s.Ignored }),
		named("writes_dropped_total", "Idempotent writes that were left out, as their condition was false.",
			func(s projection.Stats) uint64 { return s.Dropped }),
	}}
}

type projectionCollector struct {
	projection Projection
	counts     []count[projection.Stats]
}

// Describe is that of prometheus.Collector.
func (c *projectionCollector) Describe(out chan<- *prometheus.Desc) { describe(out, c.counts) }

// Collect is that of prometheus.Collector.
func (c *projectionCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.projection.Stats()
	for _, count := range c.counts {
		out <- count.of(stats)
	}
}
