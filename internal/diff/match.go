package diff

import "slices"

// pair is the actual value with which an expected value is compared.
type pair struct {
	got         int
	differences []Difference
	moved       bool
}

// matching finds the pairs of two lists.
type matching struct {
	// candidates[i][j] compares expected value i with actual value j. It is nil if their names
	// differ.
	candidates [][]*pair
	pairs      map[int]pair
	taken      []bool
}

// match pairs each expected value, by its index, with an actual value of the same name. It pairs
// equal values first, and then those that differ least. It prefers pairs in the expected order.
func (k Kind) match(want, got []any) map[int]pair {
	m := matching{pairs: map[int]pair{}, taken: make([]bool, len(got))}
	for i := range want {
		m.candidates = append(m.candidates, make([]*pair, len(got)))
		for j := range got {
			if k.name(want[i]) == k.name(got[j]) {
				m.candidates[i][j] = &pair{got: j, differences: differences(want[i], got[j], mostDifferences+1)}
			}
		}
	}
	for _, most := range []int{0, mostDifferences + 1} {
		m.inOrder(most)
		m.inAnyOrder(most)
	}
	m.markMoved()
	return m.pairs
}

// score returns how well two values match. It returns 0 if they have more than most differences, or
// if one of them has a pair already.
func (m *matching) score(i, j, most int) int {
	_, done := m.pairs[i]
	c := m.candidates[i][j]
	if done || m.taken[j] || c == nil || len(c.differences) > most {
		return 0
	}
	return 2*(mostDifferences+1) - len(c.differences)
}

func (m *matching) take(i, j int) { m.pairs[i], m.taken[j] = *m.candidates[i][j], true }

// inOrder takes the pairs with the highest total score that are in order.
func (m *matching) inOrder(most int) {
	// best[i][j] is the highest total score of the expected values from index i on with the actual
	// values from index j on.
	best := make([][]int, len(m.candidates)+1)
	for i := range best {
		best[i] = make([]int, len(m.taken)+1)
	}
	for i := len(m.candidates) - 1; i >= 0; i-- {
		for j := len(m.taken) - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if score := m.score(i, j, most); score > 0 {
				best[i][j] = max(best[i][j], best[i+1][j+1]+score)
			}
		}
	}
	for i, j := 0, 0; i < len(m.candidates) && j < len(m.taken); {
		score := m.score(i, j, most)
		switch {
		case score > 0 && best[i][j] == best[i+1][j+1]+score:
			m.take(i, j)
			i, j = i+1, j+1
		case best[i][j] == best[i+1][j]:
			i++
		default:
			j++
		}
	}
}

// inAnyOrder takes the pair with the highest score until there is none.
func (m *matching) inAnyOrder(most int) {
	for {
		score, want, got := 0, 0, 0
		for i := range m.candidates {
			for j := range m.taken {
				if s := m.score(i, j, most); s > score {
					score, want, got = s, i, j
				}
			}
		}
		if score == 0 {
			return
		}
		m.take(want, got)
	}
}

// markMoved marks the smallest number of pairs so that the other pairs are in order.
func (m *matching) markMoved() {
	var order []int // indexes of the expected values that have a pair
	for i := range m.candidates {
		if _, ok := m.pairs[i]; ok {
			order = append(order, i)
		}
	}
	// longest[n] is the length of the longest increasing sequence that ends with order[n].
	longest, before, last := make([]int, len(order)), make([]int, len(order)), -1
	for n := range order {
		longest[n], before[n] = 1, -1
		for earlier := range n {
			if m.pairs[order[earlier]].got < m.pairs[order[n]].got && longest[earlier] >= longest[n] {
				longest[n], before[n] = longest[earlier]+1, earlier
			}
		}
		if last < 0 || longest[n] > longest[last] {
			last = n
		}
	}
	var stay []int
	for n := last; n >= 0; n = before[n] {
		stay = append(stay, order[n])
	}
	for i, p := range m.pairs {
		p.moved = !slices.Contains(stay, i)
		m.pairs[i] = p
	}
}
