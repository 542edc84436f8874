package metrics_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/repository"
)

// done is a repository with given counts.
type done repository.Stats

func (d done) Stats() repository.Stats { return repository.Stats(d) }

func TestEveryCountOfARepositoryIsAMetric(t *testing.T) {
	t.Parallel()
	var s repository.Stats
	n := countUp(t, &s)
	values := slices.Sorted(maps.Values(gather(t, metrics.NewRepositoryCollector(done(s), metrics.RepositoryConfig{AggregateType: "order"}))))

	for i := range n {
		if time.Duration(i+1)*time.Second != s.CommitTime { // a summary
			assert.Contains(t, values, i+1, "field %d of repository.Stats has no metric", i+1)
		}
	}
}

func TestTheTimeOfCommitsIsASummary(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics.NewRepositoryCollector(
		done{Commits: 1, Conflicts: 2, Repeated: 3, Unknown: 4, Failed: 5, CommitTime: 3 * time.Second}, metrics.RepositoryConfig{AggregateType: "order"})))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "millrace_repository_commit_duration_seconds" {
			summary := family.GetMetric()[0].GetSummary()
			assert.EqualValues(t, 15, summary.GetSampleCount())
			assert.InDelta(t, 3, summary.GetSampleSum(), 0)
			return
		}
	}
	assert.Fail(t, "there is no such metric")
}

func TestACollectorOfARepositoryThatCannotBeIsNotRegistered(t *testing.T) {
	t.Parallel()
	for _, c := range []prometheus.Collector{
		metrics.NewRepositoryCollector(nil, metrics.RepositoryConfig{AggregateType: "order"}),
		metrics.NewRepositoryCollector(done{}, metrics.RepositoryConfig{}),
	} {
		assert.Error(t, prometheus.NewRegistry().Register(c))
	}
}
