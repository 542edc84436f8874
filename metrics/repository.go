package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-dev/millrace/metrics/internal/series"
	"github.com/millrace-dev/millrace/repository"
)

// Repository returns the counts of a repository. *repository.Repository implements it.
type Repository interface {
	Stats() repository.Stats
}

// RepositoryConfig configures [NewRepositoryCollector].
type RepositoryConfig struct {
	// AggregateType is the label aggregate_type. Required.
	AggregateType string
}

// NewRepositoryCollector returns a collector of the metrics of a repository. It is safe for
// concurrent use.
//
// Its registration fails if the repository is nil, if the type is empty, or if the registry already
// has a collector of that type.
func NewRepositoryCollector(r Repository, config RepositoryConfig) prometheus.Collector {
	switch {
	case r == nil:
		return invalid("the repository is nil: pass a *repository.Repository")
	case config.AggregateType == "":
		return invalid("AggregateType is empty: set it to the type of the repository's aggregates")
	}
	return newCollector(series.OfRepository(r.Stats, config.AggregateType))
}
