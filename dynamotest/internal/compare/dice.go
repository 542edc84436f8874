package compare

import "math/rand/v2"

// dice is the one source of chance of a world.
type dice struct{ *rand.Rand }

func newDice(seed uint64) dice {
	return dice{rand.New(rand.NewPCG(seed, 0x6d696c6c72616365))}
}

// chance is true for so many in a thousand.
func (d dice) chance(perMille int) bool { return d.IntN(1000) < perMille }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// some returns n of the elements, or all if there are fewer, in random order.
func some[T any](d dice, n int, from []T) []T {
	out := make([]T, 0, n)
	for _, i := range d.Perm(len(from)) {
		if len(out) < n {
			out = append(out, from[i])
		}
	}
	return out
}

// weighted returns an index of weights, each as likely as its weight.
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
