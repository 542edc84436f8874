package scale

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Report holds the results of a world.
type Report struct {
	World World
	// From the first start until all shards are shared evenly.
	Balanced time.Duration
	// From the first commit to the end of the last one.
	Took time.Duration
	// Took, and the time after it in which positions and cursors are stored.
	Measured time.Duration
	// From the end of the load until all events have arrived.
	Drained time.Duration

	Commits Latencies // latencies of commits
	Failed  int       // failed commits, after all repetitions
	// From the date of an event until its handler receives it.
	Groups []*Latencies
	// Deliveries that did not happen. Each event has one for each group.
	Missing uint64
	Wrong   uint64 // events that were out of order

	// The following was counted over Measured.
	Calls map[string]int // by operation
	Units map[Place]Units
	// Requests to a partition with too little capacity.
	Exhausted map[Exhausted]int
	Work      Work
}

// checkpoints is the table of positions, cursors and members.
const checkpoints = "checkpoint"

// Print writes the report as text. Its last line is for programs.
func (r *Report) Print(w io.Writer) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	events := float64(r.Commits.Count())
	second := events / r.Took.Seconds()
	say("# %d shards, %d groups of %d members, %d aggregates, %d events/s attempted for %v, %d processes replaced; partitions take %g write and %g read units/s",
		r.World.Shards, r.World.Groups, r.World.Members, r.World.Aggregates, r.World.Rate, r.World.Duration, r.World.Restarts, r.World.WriteUnits, r.World.ReadUnits)
	say("# all shards shared evenly after %v", r.Balanced)
	say("# events/s are commits over the %v from the first to the last; units and calls were counted for %v, until positions and cursors were stored",
		r.Took.Round(time.Millisecond), r.Measured.Round(time.Millisecond))
	say("# commits: %.0f in %v, %d failed; p50 %v, p99 %v", events, r.Took.Round(time.Millisecond), r.Failed, r.Commits.Percentile(50), r.Commits.Percentile(99))
	all := Latencies{}
	for g, l := range r.Groups {
		all.merge(l)
		say("# group %d: %d events; p50 %v, p99 %v, most %v", g+1, l.Count(), l.Percentile(50), l.Percentile(99), l.Percentile(100))
	}
	say("# all arrived %v after the load; missing %d, out of order %d, repeated %d", r.Drained, r.Missing, r.Wrong, r.Work.Repeated)
	say("# %-34s %12s %12s", "units per event", "write", "read")
	var sum Units
	for _, place := range sorted(r.Units) {
		units := r.Units[place]
		sum.Read += units.Read
		sum.Write += units.Write
		say("# %-34s %12.3f %12.3f", place, units.Write/events, units.Read/events)
	}
	say("# %-34s %12.3f %12.3f", "in all", sum.Write/events, sum.Read/events)
	each := events * float64(r.World.Groups)
	positions, claims := float64(r.Work.Positions)/each, float64(r.Work.Claims)/each
	say("# of %s, for each group: %.3f positions stored, %.3f cursors, membership and lists; %.3f positions read",
		checkpoints, positions, r.Units[Place{Table: checkpoints}].Write/each-positions, claims)
	say("# for each group and event: %.3f read by aggregate, %.3f found by a trailing read", float64(r.Work.Fetched)/each, float64(r.Work.Late)/each)
	for _, operation := range slices.Sorted(maps.Keys(r.Calls)) {
		say("# %-34s %12.0f calls/s", operation, float64(r.Calls[operation])/r.Measured.Seconds())
	}
	r.printExhausted(say)
	say("scale shards=%d members=%d groups=%d attempted=%d events=%.0f p50=%dms p99=%dms write=%.2f read=%.2f throttled=%d missing=%d reordered=%d",
		r.World.Shards, r.World.Members, r.World.Groups, r.World.Rate, second, all.Percentile(50).Milliseconds(), all.Percentile(99).Milliseconds(),
		sum.Write/events, sum.Read/events, r.Throttled(), r.Missing, r.Wrong)
}

// printExhausted prints the requests to partitions with too little capacity, by place and
// operation, and the partition with the most of them.
func (r *Report) printExhausted(say func(string, ...any)) {
	type kind struct {
		Place
		operation string
	}
	sums, partitions, most := map[kind]int{}, map[kind]int{}, map[kind]Exhausted{}
	for e, n := range r.Exhausted {
		k := kind{e.Place, e.Operation}
		sums[k] += n
		partitions[k]++
		if n > r.Exhausted[most[k]] {
			most[k] = e
		}
	}
	byPlace := func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.Place.String(), b.Place.String()), cmp.Compare(a.operation, b.operation))
	}
	for _, k := range slices.SortedFunc(maps.Keys(sums), byPlace) {
		n := sums[k]
		say("# throttled: %d times %s by %d partitions of %v, most by %q", n, k.operation, partitions[k], k.Place, most[k].Partition)
	}
}

// Throttled returns the number of requests to a partition with too little capacity.
func (r *Report) Throttled() (n int) {
	for _, calls := range r.Exhausted {
		n += calls
	}
	return n
}

func (p Place) String() string {
	if p.Index == "" {
		return p.Table
	}
	return p.Table + " " + p.Index
}

func sorted(units map[Place]Units) []Place {
	return slices.SortedFunc(maps.Keys(units), func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Index, b.Index))
	})
}
