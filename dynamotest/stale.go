package dynamotest

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/dynamotest/internal/engine"
)

// StaleReads makes eventually consistent reads of tables return earlier items: new ones are
// missing, changed ones have earlier values, and deleted ones are still there. It happens to
// GetItem, BatchGetItem, Query and Scan. It does not happen to strongly consistent reads,
// conditions, transactions, and reads of indexes; see [DelayIndex].
//
// Each read draws one of the states that its partition had between least and most ago, by the
// database's [Clock]. The partition consists of the items with one partition key, and has another
// state after each change of an item. So a later read can return an earlier state. A page of a
// Query shows one state, and its next page may show an earlier or a later one. A Scan draws for
// each partition of each page, and a BatchGetItem for each item. A read can see a part of a
// transaction.
//
// No read sees a state from before the first such injection. [Injection.Fired] also counts reads
// that drew the latest state. While the fault is injected, the database keeps the items that reads
// may see, up to 16,384 changes of each table.
func StaleReads(least, most time.Duration) Fault {
	checkBounds("StaleReads", least, most)
	mustBe(most > 0, "StaleReads(0, 0): no read would be stale")
	return Fault{name: "StaleReads", on: reads, inside: true, age: most, strike: func(p *plan, s strike) bool {
		stale := map[int]bool{}
		for _, n := range s.hits {
			if p.touches[n].Eventual {
				stale[n] = true
			}
		}
		if len(stale) == 0 || p.answered() {
			return false
		}
		seed := s.random().Uint64()
		p.stale = append(p.stale, engine.Staleness{Least: least, Most: most, Draw: func(touch int, partition string) (float64, bool) {
			h := fnv.New64a()
			_, _ = h.Write([]byte(partition))
			r := rand.New(rand.NewPCG(seed, h.Sum64()+uint64(touch))) //nolint:gosec // not for secrets
			return r.Float64(), stale[touch]
		}})
		return true
	}}
}

// remember makes the database keep what the oldest of stale reads may see.
func (f *injector) remember(injections []*Injection) {
	var longest time.Duration
	for _, i := range injections {
		longest = max(longest, i.fault.age)
	}
	f.to.remember(longest)
}
