package costs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// mix is what decides how often snapshots should be stored.
type mix struct {
	stateKB, eventKB float64 // as they are stored
	cached           float64 // share of the commands whose state is in the cache
	queries          float64 // loads for each command that decide nothing
}

// price returns the price of a command in read units, on average, with a policy. The policy
// receives the commits since the last snapshot, and what the load has replayed, nil for a command
// that has not loaded.
func (m mix) price(random *rand.Rand, due func(commits int, replayed *storage.Worth) bool) float64 {
	const commands, writeUnit = 20_000, 5
	row := m.stateKB*1024 + 200
	load := func(commits int) (replayed storage.Worth, units float64) {
		replayed = storage.Worth{Commits: commits + 1, Bytes: int(float64(commits+1) * (m.eventKB*1024 + 200))}
		replayed.Units = math.Ceil(float64(replayed.Bytes)/4096) / 2
		return replayed, replayed.Units + math.Ceil(row/4096)/2
	}
	total, commits := 0.0, 0
	for range commands {
		for left := m.queries; left > 0; left-- {
			if random.Float64() < left {
				_, units := load(commits)
				total += 2 * units
			}
		}
		var replayed *storage.Worth
		if random.Float64() >= m.cached {
			worth, units := load(commits)
			replayed = &worth
			total += units
		}
		if commits++; due(commits, replayed) {
			total += writeUnit * math.Ceil(row/1024)
			commits = 0
		}
	}
	return total / commands
}

// The rule of the packed layout knows neither the share of cached commands nor the rate of queries.
// It must be near the best fixed interval of each mix, which differs. Only commands that have
// loaded store snapshots, so it is further away where most states are cached.
func TestSnapshotsByCostAreNearTheBestInterval(t *testing.T) {
	t.Parallel()
	w := newWorld(t, journal.Packed)
	worst, saved := 0.0, 0.0
	for _, stateKB := range []float64{0.2, 1, 3, 10, 50, 200} {
		for _, eventKB := range []float64{0.1, 0.5, 1, 5} {
			for _, cached := range []float64{0, 0.5, 0.9} {
				for _, queries := range []float64{0, 0.5, 2} {
					m := mix{stateKB, eventKB, cached, queries}
					random := func() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) } //nolint:gosec // a test draws
					byCost := m.price(random(), func(_ int, replayed *storage.Worth) bool {
						return replayed != nil && w.j.Internal().Layout.Pays(replayed, int(m.stateKB*1024)+200)
					})
					best, interval, hundred := math.Inf(1), 0, 0.0
					for _, n := range []int{1, 2, 4, 8, 12, 20, 30, 45, 70, 100, 150, 250, 400, 800} {
						price := m.price(random(), func(commits int, _ *storage.Worth) bool { return commits >= n })
						if price < best {
							best, interval = price, n
						}
						if n == 100 {
							hundred = price
						}
					}
					about := fmt.Sprintf("%+v: by cost %.1f, every %d %.1f, every 100 %.1f", m, byCost, interval, best, hundred)
					t.Log(about)
					worst, saved = max(worst, byCost/best), saved+math.Log(hundred/byCost)
					most := 1.4
					if cached > 0.5 { // few commands load, and only they store
						most = 3.3
					}
					assert.Less(t, byCost/best, most, about)
				}
			}
		}
	}
	mean := math.Exp(saved / (6 * 4 * 3 * 3))
	t.Logf("worst %.2f, %.2f times cheaper than every 100", worst, mean)
	assert.Greater(t, mean, 1.5)
}
