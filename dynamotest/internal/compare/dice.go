package compare

import "math/rand/v2"

// dice is the only random source of a world.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice {
	return dice{rand.New(rand.NewPCG(seed, 0x6d696c6c72616365))}
}

// chance returns true with a probability in thousandths.
func (d dice) chance(perMille int) bool { return d.IntN(1000) < perMille }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// some returns n random elements, or all if there are fewer, in random order.
func some[T any](d dice, n int, from []T) []T {
	out := make([]T, 0, n)
	for _, i := range d.Perm(len(from)) {
		if len(out) < n {
			out = append(out, from[i])
		}
	}
	return out
}

// weighted returns a random index of weights, with probabilities proportional to the weights.
func weighted(d dice, weights ...int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := d.IntN(sum)
	for i, w := range weights {
		if n -= w; n < 0 {
			return i
		}
	}
	return len(weights) - 1
}
