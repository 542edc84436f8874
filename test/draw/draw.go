package draw

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/dynamotest"
)

// New returns the source of random numbers for a seed and the number of a world or a part.
func New(seed, number uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, number)) //nolint:gosec // not for secrets
}

// Pick returns one of some values.
func Pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// UpTo returns a duration from 0 to d.
func UpTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d) + 1)) }

// Derive returns a source of random numbers for one part of a harness. Draws of other parts do not
// change it.
func Derive(r *rand.Rand) *rand.Rand {
	return New(r.Uint64(), r.Uint64())
}

// Sometimes returns a condition that is true for a request with some probability. It draws for one
// request after the other, from its own source, so the requests of the harness must be in the same
// order in every run. Otherwise use [dynamotest.Chance].
func Sometimes(r *rand.Rand, probability float64) dynamotest.When {
	var mu sync.Mutex
	own := Derive(r)
	return dynamotest.Matching(func(string, any) bool {
		mu.Lock()
		defer mu.Unlock()
		return own.Float64() < probability
	})
}
