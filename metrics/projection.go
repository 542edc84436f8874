package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/metrics/internal/series"
	"github.com/millrace-dev/millrace/projection"
)

// Projection returns the counts of a projection. *projection.Projection, *sqlprojection.Projection
// and *sqlprojection.Store implement it.
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
	return newCollector(series.OfProjection(p.Stats, config.Name))
}
