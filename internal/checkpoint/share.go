package checkpoint

import (
	"maps"
	"slices"
)

// Share returns the shards that a member must take and release so that all members have the same
// number of shards, plus or minus one. Each member decides for itself from the same row. If two
// members want the same shard, the first write wins.
func (r Membership) Share(member uint64) (take, release []int) {
	own := r.Of(member)
	if r.Paused {
		return nil, own
	}
	free := r.Free()
	counts := map[uint64]int{}
	shared := len(free) // without the shards that operators and visitors hold
	for m, state := range r.Members {
		if state.Shares() {
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
		// Take one more than the least at once. Otherwise the shard would stay free until the next
		// check.
		return free[:min(len(free), max(least-n, 0)+1, most-n)], nil
	case n < least:
		return free[:min(len(free), least-n)], nil
	case n > most:
		return nil, own[most:]
	case n > least:
		// Members with one shard more than the least release it while others lack shards. The
		// members with the lowest numbers are first.
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
