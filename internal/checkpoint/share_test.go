package checkpoint_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
)

// workers returns the members that take a share, in the order of their numbers.
func workers(r checkpoint.Membership) []uint64 {
	var numbers []uint64
	for _, number := range slices.Sorted(maps.Keys(r.Members)) {
		if !r.Members[number].Operator {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// round lets each member act once on its share, in random order. Each releases its surplus at once.
// round returns the number of shards that moved.
func round(random *rand.Rand, r checkpoint.Membership) (checkpoint.Membership, int) {
	numbers := workers(r)
	random.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
	moved := 0
	for _, number := range numbers {
		take, give := r.Share(number)
		moved += len(take) + len(give)
		r = r.Release(number, give).Take(number, take)
	}
	return r, moved
}

// spread is the difference between the members that own the most and the fewest shards.
func spread(r checkpoint.Membership) int {
	least, most := len(r.Owners), 0
	for _, number := range workers(r) {
		n := len(r.Of(number))
		least, most = min(least, n), max(most, n)
	}
	return most - least
}

// converge repeats rounds until no shard moves. It returns the numbers of rounds and of moves.
func converge(t *testing.T, random *rand.Rand, r checkpoint.Membership) (converged checkpoint.Membership, rounds, moves int) {
	t.Helper()
	for {
		next, moved := round(random, r)
		if moved == 0 {
			return r, rounds, moves
		}
		r, rounds, moves = next, rounds+1, moves+moved
		require.Less(t, rounds, 100, "shares do not converge: owners %v of members %v", r.Owners, workers(r))
	}
}

func TestSharesConvergeWithinOneShardAfterJoinsAndLeaves(t *testing.T) {
	t.Parallel()
	for seed := range testdb.Seeds(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := checkpoint.NewMembership(1+random.IntN(64), time.Time{})
		for range 20 {
			before := r
			for range random.IntN(5) {
				r, _ = r.Join(checkpoint.Member{})
			}
			for _, number := range workers(r) {
				if random.IntN(4) == 0 && len(workers(r)) > 1 {
					r = r.Leave(number)
				}
			}
			if len(r.Members) == 0 {
				continue
			}
			var rounds int
			r, rounds, _ = converge(t, random, r)
			if !assert.Empty(t, r.Free(), "seed %d", seed) ||
				!assert.LessOrEqual(t, spread(r), 1, "seed %d: owners %v", seed, r.Owners) ||
				!assert.LessOrEqual(t, rounds, 4, "seed %d: from %v to %v", seed, before.Owners, r.Owners) {
				return
			}
		}
	}
}

func TestSharesMoveNoMoreThanTheyMust(t *testing.T) {
	t.Parallel()
	for seed := range testdb.Seeds(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		shards, members := 1+random.IntN(64), 1+random.IntN(10)
		r := checkpoint.NewMembership(shards, time.Time{})
		for range members {
			r, _ = r.Join(checkpoint.Member{})
		}
		r, _, moves := converge(t, random, r)
		require.Equal(t, shards, moves, "seed %d: each shard is taken once", seed)

		joined, newcomer := r.Join(checkpoint.Member{})
		joined, _, moves = converge(t, random, joined)
		require.Equal(t, 2*len(joined.Of(newcomer)), moves, "seed %d: only the shards of the newcomer were released and taken", seed)
		require.LessOrEqual(t, len(joined.Of(newcomer)), shards/(members+1)+1, "seed %d", seed)

		left := joined.Leave(newcomer)
		free := len(left.Free())
		left, _, moves = converge(t, random, left)
		require.Equal(t, free, moves, "seed %d: only the shards of the member that left were taken", seed)
		require.LessOrEqual(t, spread(left), 1, "seed %d", seed)
	}
}

// A shard that the first members left would be free until another one checks, a heartbeat later.
func TestAllShardsOfACrashedMemberAreTakenAtTheFirstCheck(t *testing.T) {
	t.Parallel()
	for seed := range testdb.Seeds(300) {
		random := rand.New(rand.NewPCG(seed, 4))
		shards, members := 1+random.IntN(64), 2+random.IntN(10)
		r := checkpoint.NewMembership(shards, time.Time{})
		for range members {
			r, _ = r.Join(checkpoint.Member{})
		}
		r, _, _ = converge(t, random, r)
		r, _ = round(random, r.Leave(workers(r)[random.IntN(members)]))
		require.Empty(t, r.Free(), "seed %d: %d shards, owners %v", seed, shards, r.Owners)
	}
}

func TestABalancedMembershipMovesNothing(t *testing.T) {
	t.Parallel()
	for seed := range testdb.Seeds(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		shards, members := 1+random.IntN(64), 1+random.IntN(10)
		r := checkpoint.NewMembership(shards, time.Time{})
		for range members {
			r, _ = r.Join(checkpoint.Member{})
		}
		for n := range shards { // any members may have one shard more
			r = r.Take(uint64(1+n%members), []int{n})
		}
		_, moved := round(random, r)
		require.Zero(t, moved, "seed %d: owners %v", seed, r.Owners)
	}
}

func TestMembersOfAPausedGroupReleaseAllShardsAndTakeNone(t *testing.T) {
	t.Parallel()
	r, first := checkpoint.NewMembership(4, time.Time{}).Join(checkpoint.Member{})
	r, second := r.Join(checkpoint.Member{})
	r = r.Take(first, []int{0, 2}).Pause()

	take, give := r.Share(first)
	assert.Empty(t, take)
	assert.Equal(t, []int{0, 2}, give)
	take, give = r.Share(second)
	assert.Empty(t, take)
	assert.Empty(t, give)

	take, _ = r.Release(first, []int{0, 2}).Resume().Share(second)
	assert.Len(t, take, 2)
}

func TestOperatorsTakeNoShare(t *testing.T) {
	t.Parallel()
	r, operator := checkpoint.NewMembership(4, time.Time{}).Join(checkpoint.Member{Operator: true})
	r, first := r.Join(checkpoint.Member{})
	r, second := r.Join(checkpoint.Member{})
	r = r.Take(operator, []int{3})

	take, give := r.Share(operator)
	assert.Empty(t, take)
	assert.Empty(t, give)
	r, _, _ = converge(t, rand.New(rand.NewPCG(1, 1)), r)
	assert.Equal(t, []int{3}, r.Of(operator), "no member takes the shard that it holds")
	assert.Len(t, append(r.Of(first), r.Of(second)...), 3)
	assert.LessOrEqual(t, spread(r), 1)

	take, give = r.Share(99)
	assert.Empty(t, take, "a former member has no share")
	assert.Empty(t, give)
}
