package metrics_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
)

// The handlers of an SQL store have the same metrics as a projection.
var _ metrics.Projection = (*sqlprojection.Store)(nil)

// stats is a projection with given counts.
type stats projection.Stats

func (s stats) Stats() projection.Stats { return projection.Stats(s) }

func TestEveryCountOfAProjectionIsAMetric(t *testing.T) {
	t.Parallel()
	var s projection.Stats
	n := countUp(t, &s)
	values := slices.Sorted(maps.Values(gather(t, metrics.NewProjectionCollector(stats(s), metrics.ProjectionConfig{Name: "totals"}))))

	for i := range n {
		assert.Contains(t, values, i+1, "field %d of projection.Stats has no metric", i+1)
	}
}

func TestCountsOfAProjectionHaveTheirNames(t *testing.T) {
	t.Parallel()
	c := metrics.NewProjectionCollector(stats{Applied: 1, Ignored: 2, Dropped: 3}, metrics.ProjectionConfig{Name: "totals"})

	assert.Equal(t, map[string]int{
		"millrace_projection_events_applied_total{projection=totals}": 1,
		"millrace_projection_events_ignored_total{projection=totals}": 2,
		"millrace_projection_writes_dropped_total{projection=totals}": 3,
	}, gather(t, c))
}
