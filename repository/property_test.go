package repository_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// Random commands run under random policies. The results of Execute and Save, of a load from a
// snapshot and of a replay of all events are equal. They are also equal to a model that has neither
// events nor snapshots.
func TestLoadFromASnapshotIsTheSameAsAReplay(t *testing.T) {
	t.Parallel()
	eachLayout(t, func(t *testing.T, s store) {
		for seed := range testdb.Seeds(24) {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				random := rand.New(rand.NewPCG(seed, 0))
				policy, policyName := randomPolicy(random)
				t.Logf("seed %d, policy %s", seed, policyName) // printed if the test fails
				run := &history{
					random: random, id: fmt.Sprint(seed),
					repo:   s.baskets(t, repository.Config{Snapshots: policy}),
					replay: s.baskets(t, repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true}),
				}
				for range 25 {
					run.step(t)
				}
				run.compare(t)
			})
		}
	})
}

func randomPolicy(random *rand.Rand) (repository.SnapshotPolicy, string) {
	switch random.IntN(5) {
	case 0:
		return repository.Never, "Never"
	case 4:
		return nil, "by cost"
	case 1:
		remainder := random.Uint64N(3)
		return func(c repository.Commit) bool { return c.After%3 == remainder },
			fmt.Sprintf("after %%3 == %d", remainder)
	default:
		n := 1 + random.UintN(60)
		return repository.Every(n), fmt.Sprintf("Every(%d)", n)
	}
}

// history is one aggregate and its model.
type history struct {
	random       *rand.Rand
	id           string
	repo, replay *repository.Repository[Basket]

	held repository.Aggregate[Basket]
	// Nil until an item was added, as after a replay.
	items map[string]int
	count uint64 // number of events
}

// change returns random events, and applies their effect to the model.
func (h *history) change() (events aggregate.Events[Basket]) {
	n := h.random.IntN(6)
	if h.random.IntN(10) == 0 {
		n = h.random.IntN(storage.MaxEvents + 1)
	}
	for range n {
		item := string(rune('a' + h.random.IntN(8)))
		if h.random.IntN(3) == 0 {
			delete(h.items, item)
			events = append(events, Removed{item})
			continue
		}
		if h.items == nil {
			h.items = map[string]int{}
		}
		amount := 1 + h.random.IntN(9)
		h.items[item] += amount
		events = append(events, Added{item, amount})
	}
	h.count += uint64(n)
	return events
}

func (h *history) step(t *testing.T) {
	t.Helper()
	var err error
	switch before := h.held; h.random.IntN(5) {
	case 0, 1:
		h.held = mustExecute(t, h.repo, h.id, always(h.change()...))
	case 2, 3:
		if h.count == 0 {
			h.held, err = h.repo.NewAggregate(h.id)
			require.NoError(t, err)
		}
		h.held = mustSave(t, h.repo, h.held, h.change())
	default:
		h.compare(t)
		if h.count == 0 {
			return
		}
		h.held = mustExecute(t, h.repo, h.id, always(h.change()...))
		if h.held.Version > before.Version {
			_, err = h.repo.Save(t.Context(), before, aggregate.Events[Basket]{Added{"stale", 1}})
			require.ErrorIs(t, err, journal.ErrConflict)
		}
	}
	h.agrees(t, h.held)
}

func (h *history) compare(t *testing.T) {
	t.Helper()
	for _, repo := range []*repository.Repository[Basket]{h.repo, h.replay} {
		a, err := repo.Load(t.Context(), h.id)
		if h.count == 0 {
			require.ErrorIs(t, err, journal.ErrNotFound)
			continue
		}
		require.NoError(t, err)
		h.agrees(t, a)
	}
}

func (h *history) agrees(t *testing.T, a repository.Aggregate[Basket]) {
	t.Helper()
	want := repository.Aggregate[Basket]{ID: basket(h.id), State: Basket{Items: maps.Clone(h.items)}, Version: h.count}
	if !assert.Equal(t, bare(want), bare(a)) {
		t.FailNow()
	}
}
