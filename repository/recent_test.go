package repository

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
)

// Otherwise a load with Eventually could lack a commit of the same repository.
func TestNoChangeOfARecentAggregateIsLost(t *testing.T) {
	t.Parallel()
	const writers, versions = 4, 20_000
	id, now := aggregate.ID{Type: "account", Value: "42"}, time.Now()
	r := newRecent()
	lost := make([]int, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Add(1)
		go func() {
			defer all.Done()
			for version := w + 1; version <= versions; version += writers {
				r.written(id, uint64(version))       //nolint:gosec // not negative
				if r.version(id) < uint64(version) { //nolint:gosec // not negative
					lost[w]++
				}
				r.distrust(id, now)
			}
		}()
	}
	all.Wait()
	assert.Equal(t, make([]int, writers), lost)
	assert.EqualValues(t, versions, r.version(id))
	assert.True(t, r.isDistrusted(id, now))
}
