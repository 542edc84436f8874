package campaign_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/test/campaign"
)

// open returns a campaign of worlds, and its notes.
func open(world func(ctx context.Context, number uint64) (campaign.Report, error)) (*campaign.Campaign, *bytes.Buffer) {
	var notes bytes.Buffer
	return &campaign.Campaign{
		Name: "soak", Unit: "commits", Notes: &notes, World: world, Again: " -v",
		Flags: func(number uint64) string { return fmt.Sprint("-world ", number) },
	}, &notes
}

func TestWorldsRunUntilThereAreEnough(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var numbers []uint64
	c, notes := open(func(_ context.Context, number uint64) (campaign.Report, error) {
		mu.Lock()
		defer mu.Unlock()
		numbers = append(numbers, number)
		return campaign.Report{Count: 2, Events: 5, Seen: map[string]int{"crash": 1}}, nil
	})
	c.Run(t.Context(), 3, 20)
	slices.Sort(numbers)
	assert.GreaterOrEqual(t, len(numbers), 10)
	assert.Less(t, len(numbers), 13)
	for i, number := range numbers {
		assert.EqualValues(t, i, number)
	}
	assert.Zero(t, c.End())
	assert.Equal(t, 2*len(numbers), c.Count())
	assert.Contains(t, notes.String(), fmt.Sprintf("%d worlds, %d commits, %d events: crash %[1]d\n", len(numbers), 2*len(numbers), 5*len(numbers)))
}

func TestNoWorldBeginsAfterTheContextHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	worlds := 0
	c, notes := open(func(ctx context.Context, _ uint64) (campaign.Report, error) {
		worlds++
		cancel()
		return campaign.Report{Trace: []byte("the end\n")}, ctx.Err()
	})
	c.Run(ctx, 1, 1)
	assert.Equal(t, 1, worlds)
	assert.Empty(t, notes.String(), "it was interrupted")
	assert.Equal(t, 1, c.End())
}

func TestNoWorldBeginsAfterAFinding(t *testing.T) {
	t.Parallel()
	c, notes := open(func(_ context.Context, number uint64) (r campaign.Report, err error) {
		if number == 3 {
			r.Findings = []campaign.Finding{{Kind: "lost", Text: "an event"}, {Kind: "gap", At: 5, Text: "a number"}}
			r.Trace, r.Plan = []byte("the end\n"), "two shards"
		}
		return r, nil
	})
	c.Run(t.Context(), 1, 1)
	assert.Equal(t, "the end\n"+
		"soak: findings in -world 3: 0 commits, 0 events: two shards\n"+
		"soak: -world 3: lost: an event\n"+
		"soak: -world 3: 5ns gap: a number\n"+
		"soak: again: go run ./test/cmd/soak -world 3 -v\n", notes.String())
	assert.Equal(t, 1, c.End())
	assert.Equal(t, 1, c.Found("lost"))
	assert.Zero(t, c.Found("wrong"))
}

func TestNoWorldBeginsAfterOneHasFailed(t *testing.T) {
	t.Parallel()
	c, notes := open(func(context.Context, uint64) (campaign.Report, error) {
		return campaign.Report{Trace: []byte("the end\n")}, errors.New("no memory")
	})
	c.Run(t.Context(), 1, 1)
	assert.Equal(t, "the end\nsoak: -world 0: no memory\n", notes.String())
	assert.Equal(t, 1, c.End())
}

func TestTheRankingBeginsWithWhatWasMostFrequent(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "b 3, a 1, c 1", campaign.Ranking(map[string]int{"c": 1, "a": 1, "b": 3}))
}
