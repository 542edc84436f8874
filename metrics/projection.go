package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/projection"
)

// Projection returns the counts of a projection. *projection.Projection and *sqlprojection.Store
// implement it.
type Projection interface {
	Stats() projection.Stats
}

// ProjectionConfig configures [NewProjectionCollector].
type ProjectionConfig struct {
	// Name is the label projection, such as the name of the consumer group. Required.
	Name string
}

// NewProjectionCollector returns a collector of the metrics of a projection. It is safe for
// concurrent use.
//
// Its registration fails if the projection is nil, if the name is empty, or if the registry already
// has a collector of that name.
func NewProjectionCollector(p Projection, config ProjectionConfig) prometheus.Collector {
	switch {
	case p == nil:
		return invalid("the projection is nil: pass a *projection.Projection or a *sqlprojection.Store")
	case config.Name == "":
		return invalid("Name is empty: set a name that is unique among projections")
	}
	named := func(name, help string, read func(projection.Stats) uint64) count[projection.Stats] {
		return newCount("projection", name, help, prometheus.Labels{"projection": config.Name}, read)
	}
	return &projectionCollector{projection: p, counts: []count[projection.Stats]{
		named("events_applied_total", "Events whose writes were committed.",
			func(s projection.Stats) uint64 { return s.Applied }),
		named("events_ignored_total", "Events without writes.",
			func(s projection.Stats) uint64 { return s.Ignored }),
		named("writes_dropped_total", "Idempotent writes that were left out, since their condition was false.",
			func(s projection.Stats) uint64 { return s.Dropped }),
	}}
}

type projectionCollector struct {
	projection Projection
	counts     []count[projection.Stats]
}

// Describe implements prometheus.Collector.
func (c *projectionCollector) Describe(out chan<- *prometheus.Desc) { describe(out, c.counts) }

// Collect implements prometheus.Collector.
func (c *projectionCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.projection.Stats()
	for _, count := range c.counts {
		out <- count.of(stats)
	}
}
