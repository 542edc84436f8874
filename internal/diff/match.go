package diff

import "slices"

// pair is the value that an expected value is compared with.
type pair struct {
	got         int
	differences []Difference
	moved       bool
}

// matching finds the pairs of two lists.
type matching struct {
	candidates [][]*pair // by the places of expected value and value; nil if their names differ
	pairs      map[int]pair
	taken      []bool
}

// match pairs the expected values, by their places, with values of the same name: first equal ones,
// and of the rest those that differ least. It prefers pairs in the expected order.
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

// score returns how well two values match, 0 if they have more than most differences or a pair
// already.
func (m *matching) score(i, j, most int) int {
	_, done := m.pairs[i]
	c := m.candidates[i][j]
	if done || m.taken[j] || c == nil || len(c.differences) > most {
		return 0
	}
	return 2*(mostDifferences+1) - len(c.differences)
}

func (m *matching) take(i, j int) { m.pairs[i], m.taken[j] = *m.candidates[i][j], true }

// inOrder takes the pairs with the highest score of all that are in order.
func (m *matching) inOrder(most int) {
	// best[i][j] is the highest score of the values from i and from j on.
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

// inAnyOrder takes the pair with the highest score as long as there is one.
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

// markMoved marks the fewest pairs without which the others are in order.
func (m *matching) markMoved() {
	var order []int // places of the expected values that have a pair
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
