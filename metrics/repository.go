package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

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
	labels := prometheus.Labels{"aggregate_type": config.AggregateType}
	named := func(name, help string, read func(repository.Stats) uint64) count[repository.Stats] {
		return newCount("repository", name, help, labels, read)
	}
	return &repositoryCollector{
		repository: r,
		commitTime: prometheus.NewDesc(prometheus.BuildFQName(namespace, "repository", "commit_duration_seconds"),
			"Duration of commits, including all repetitions of their requests.", nil, labels),
		counts: []count[repository.Stats]{
			named("decisions_total", "Calls of decisions.",
				func(s repository.Stats) uint64 { return s.Decisions }),
			named("decisions_refused_total", "Decisions that returned an error.",
				func(s repository.Stats) uint64 { return s.Refused }),
			named("commits_total", "Commits that were written.",
				func(s repository.Stats) uint64 { return s.Commits }),
			named("events_total", "Events that were written.",
				func(s repository.Stats) uint64 { return s.Events }),
			named("commits_conflicting_total", "Commits that were not written because of another writer.",
				func(s repository.Stats) uint64 { return s.Conflicts }),
			named("commits_repeated_total", "Commits that were not written because their command had been executed before.",
				func(s repository.Stats) uint64 { return s.Repeated }),
			named("commits_unknown_total", "Commits whose outcome was unknown.",
				func(s repository.Stats) uint64 { return s.Unknown }),
			named("commits_failed_total", "Commits that were not written for another reason.",
				func(s repository.Stats) uint64 { return s.Failed }),
			named("snapshots_total", "Snapshots that were stored.",
				func(s repository.Stats) uint64 { return s.Snapshots }),
			named("snapshots_left_out_total", "Snapshots that were not stored.",
				func(s repository.Stats) uint64 { return s.SnapshotsLeftOut }),
			named("loads_total", "Reads of the current state of an aggregate.",
				func(s repository.Stats) uint64 { return s.Loads }),
			named("cache_hits_total", "Decisions and loads that started from a cached state.",
				func(s repository.Stats) uint64 { return s.CacheHits }),
			named("cache_misses_total", "Decisions and loads without a cached state, in a repository with a cache.",
				func(s repository.Stats) uint64 { return s.CacheMisses }),
		},
	}
}

type repositoryCollector struct {
	repository Repository
	commitTime *prometheus.Desc
	counts     []count[repository.Stats]
}

// Describe implements prometheus.Collector.
func (c *repositoryCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.commitTime
	describe(out, c.counts)
}

// Collect implements prometheus.Collector.
func (c *repositoryCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.repository.Stats()
	commits := stats.Commits + stats.Conflicts + stats.Repeated + stats.Unknown + stats.Failed
	summary, err := prometheus.NewConstSummary(c.commitTime, commits, stats.CommitTime.Seconds(), nil)
	if err != nil {
		summary = prometheus.NewInvalidMetric(c.commitTime, err)
	}
	out <- summary
	for _, count := range c.counts {
		out <- count.of(stats)
	}
}
