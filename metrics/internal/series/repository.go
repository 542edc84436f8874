package series

import "github.com/millrace-dev/millrace/repository"

var repositoryEntries = append([]entry[repository.Stats]{{
	&Series{
		Name: "repository_commit_duration_seconds", Unit: "{commit}", Kind: Duration,
		Help: "Duration of commits, including all repetitions of their requests.",
	},
	func(s repository.Stats) Value {
		return Value{Value: s.CommitTime.Seconds(), Count: s.Commits + s.Conflicts + s.Repeated + s.Unknown + s.Failed}
	},
}},
	counter("repository_decisions_total", "{decision}", "Calls of decisions.",
		func(s repository.Stats) uint64 { return s.Decisions }),
	counter("repository_decisions_refused_total", "{decision}", "Decisions that returned an error.",
		func(s repository.Stats) uint64 { return s.Refused }),
	counter("repository_commits_total", "{commit}", "Commits that were written.",
		func(s repository.Stats) uint64 { return s.Commits }),
	counter("repository_events_total", "{event}", "Events that were written.",
		func(s repository.Stats) uint64 { return s.Events }),
	counter("repository_commits_conflicting_total", "{commit}", "Commits that were not written because of another writer.",
		func(s repository.Stats) uint64 { return s.Conflicts }),
	counter("repository_commits_repeated_total", "{commit}", "Commits that were not written because their command had been executed before.",
		func(s repository.Stats) uint64 { return s.Repeated }),
	counter("repository_commits_unknown_total", "{commit}", "Commits whose outcome was unknown.",
		func(s repository.Stats) uint64 { return s.Unknown }),
	counter("repository_commits_failed_total", "{commit}", "Commits that were not written for another reason.",
		func(s repository.Stats) uint64 { return s.Failed }),
	counter("repository_snapshots_total", "{snapshot}", "Snapshots that were stored.",
		func(s repository.Stats) uint64 { return s.Snapshots }),
	counter("repository_snapshots_left_out_total", "{snapshot}", "Snapshots that were not stored.",
		func(s repository.Stats) uint64 { return s.SnapshotsLeftOut }),
	counter("repository_loads_total", "{load}", "Reads of the current state of an aggregate.",
		func(s repository.Stats) uint64 { return s.Loads }),
	counter("repository_cache_hits_total", "{lookup}", "Decisions and loads that started from a cached state.",
		func(s repository.Stats) uint64 { return s.CacheHits }),
	counter("repository_cache_misses_total", "{lookup}", "Decisions and loads without a cached state, in a repository with a cache.",
		func(s repository.Stats) uint64 { return s.CacheMisses }),
)

// OfRepository returns the metrics of a repository.
func OfRepository(stats func() repository.Stats, aggregates string) Component {
	return of("repository", aggregates, aggregateType, stats, repositoryEntries)
}
