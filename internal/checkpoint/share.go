package checkpoint

import (
	"maps"
	"slices"
)

// Share reports what a member has to take and to give so that all have as many shards as the
// others, plus or minus one. All members decide for themselves, on the same membership; what two of
// them want to take goes to the first.
func (r Membership) Share(member uint64) (take, give []int) {
	own := r.Of(member)
	if r.Paused {
		return nil, own
	}
	free := r.Free()
	counts := map[uint64]int{}
	shared := len(free) // what is there to share; not what operators hold
	for m, state := range r.Members {
		if !state.Operator {
			counts[m] = len(r.Of(m))
			shared += counts[m]
		}
	}
	if _, works := counts[member]; !works {
		return nil, nil
	}
	least := shared / len(counts)
	most := (shared + len(counts) - 1) / len(counts)

	missing, spare := 0, len(free)
	for _, n := range counts {
		missing += max(0, least-n)
		spare += max(0, n-most)
	}
	n := len(own)
	switch {
	case n < most && len(free) > missing:
		// One more than the least at once: else it would be free until somebody looks again.
		return free[:min(len(free), max(least-n, 0)+1, most-n)], nil
	case n < least:
		return free[:min(len(free), least-n)], nil
	case n > most:
		return nil, own[most:]
	case n > least:
		// Those with one more than the least give it up as long as others lack it, the first ones
		// first.
		for _, m := range slices.Sorted(maps.Keys(counts)) {
			if counts[m] != most {
				continue
			}
			if spare++; spare > missing {
				break
			}
			if m == member {
				return nil, own[least:]
			}
		}
	}
	return nil, nil
}
