package campaign_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/test/campaign"
)

func TestWorldsRunUntilThereAreEnough(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var numbers []uint64
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(numbers) >= 10
	}
	campaign.Run(t.Context(), 3, enough, func(_ context.Context, number uint64) {
		mu.Lock()
		defer mu.Unlock()
		numbers = append(numbers, number)
	})
	slices.Sort(numbers)
	assert.GreaterOrEqual(t, len(numbers), 10)
	assert.Less(t, len(numbers), 13)
	for i, number := range numbers {
		assert.EqualValues(t, i, number)
	}
}

func TestNoWorldBeginsAfterTheContextHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	worlds := 0
	campaign.Run(ctx, 1, func() bool { return false }, func(context.Context, uint64) {
		worlds++
		cancel()
	})
	assert.Equal(t, 1, worlds)
}

func TestTheRankingBeginsWithWhatWasMostFrequent(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "b 3, a 1, c 1", campaign.Ranking(map[string]int{"c": 1, "a": 1, "b": 3}))
}
