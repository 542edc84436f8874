package sequence

import (
	"hash/maphash"

	"github.com/millrace-dev/millrace/aggregate"
)

// forgotten is a Bloom filter of the aggregates that a shard has forgotten. If has returns false,
// the aggregate was not forgotten. The filter has 64 KiB. With 50,000 forgotten aggregates, has is
// wrong for one of a hundred others. With 500,000, it returns true for nearly all.
type forgotten struct {
	bits [forgottenBits / 64]uint64
}

const (
	forgottenBits  = 1 << 19
	forgottenProbe = 7 // bits for each aggregate
)

var hashSeed = maphash.MakeSeed()

// hashOf returns the hash of an aggregate. In a process it is always the same.
func hashOf(id aggregate.ID) uint64 { return maphash.String(hashSeed, id.Value) }

func (f *forgotten) add(id aggregate.ID) {
	f.probe(id, func(word *uint64, bit uint64) bool {
		*word |= bit
		return true
	})
}

// has reports whether an aggregate may have been forgotten. It is always false on a nil filter.
func (f *forgotten) has(id aggregate.ID) bool {
	return f != nil && f.probe(id, func(word *uint64, bit uint64) bool { return *word&bit != 0 })
}

// probe calls visit for each bit of an aggregate, until visit returns false. It reports whether
// visit returned true for all bits.
func (f *forgotten) probe(id aggregate.ID, visit func(word *uint64, bit uint64) bool) bool {
	hash := hashOf(id)
	at, step := hash>>32, hash|1
	for range forgottenProbe {
		n := at % forgottenBits
		if !visit(&f.bits[n/64], 1<<(n%64)) {
			return false
		}
		at += step & 0xffffffff
	}
	return true
}

// ForgetAll releases the memory of all streams after the work has ended.
func (q *Sequencer[W]) ForgetAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, st := range q.streams {
		st.buffer.drop(q.budget)
	}
	clear(q.streams)
	q.Memory.fails(-q.failing)
	q.failing = 0
}
