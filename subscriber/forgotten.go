package subscriber

import (
	"hash/maphash"

	"github.com/millrace-dev/millrace/aggregate"
)

// forgotten remembers roughly which aggregates a shard has forgotten: one that it says no to was
// not. It is a Bloom filter of 64 KiB: with 50,000 aggregates it is wrong about one of a hundred
// others, and with 500,000 it says yes to nearly all.
type forgotten struct {
	seed maphash.Seed
	bits [forgottenBits / 64]uint64
}

const (
	forgottenBits  = 1 << 19
	forgottenProbe = 7 // bits for each aggregate
)

func newForgotten() *forgotten { return &forgotten{seed: maphash.MakeSeed()} }

func (f *forgotten) add(id aggregate.ID) {
	f.probe(id, func(word *uint64, bit uint64) bool {
		*word |= bit
		return true
	})
}

// has reports that an aggregate may be among them. Of none it is never.
func (f *forgotten) has(id aggregate.ID) bool {
	return f != nil && f.probe(id, func(word *uint64, bit uint64) bool { return *word&bit != 0 })
}

// probe visits the bits of an aggregate as long as visit returns true, and reports whether it
// always did.
func (f *forgotten) probe(id aggregate.ID, visit func(word *uint64, bit uint64) bool) bool {
	hash := maphash.String(f.seed, id.Value)
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
