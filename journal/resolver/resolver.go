// Package resolver has the key resolvers of the event-store-adapter family, for journal.Config.
// Each member of the family hashes in its own way, so a journal that one of them shares needs the
// resolver of that one: [FNV1a] for Go, [JavaHash] for Java, Kotlin and Scala, [JSHash] for
// JavaScript, [CRC32] for PHP and [SipHash13] for Rust. New tables need none: the default is
// [FNV1a].
//
// Each resolver has two methods: Name returns the name that the descriptor of a journal stores, and
// Shard returns the shard of an aggregate.
package resolver

import (
	"hash/crc32"
	"hash/fnv"
	"unicode/utf16"

	"github.com/millrace-dev/millrace/aggregate"
)

// remainder maps an aggregate to a shard by the remainder of a hash.
type remainder struct {
	name string
	hash func(aggregate.ID) uint64
}

// Name returns the name that the descriptor of a journal stores.
func (r *remainder) Name() string { return r.name }

// Shard returns the shard of an aggregate, 0 to shards-1.
func (r *remainder) Shard(id aggregate.ID, shards int) int {
	return int(r.hash(id) % uint64(shards)) // of unsigned numbers, so it is never negative
}

// The resolvers of the event-store-adapter family.
var (
	// FNV1a hashes the id value with FNV-1a, 64 bits, as event-store-adapter-go does. It is the
	// default.
	FNV1a = &remainder{"fnv1a-64", fnv1a}

	// JavaHash takes the absolute value of Java's String.hashCode of the id value, as
	// event-store-adapter-java does, and those for Kotlin and Scala, which are built on it.
	//
	// Java's absolute value of the hash -2^31 is negative. With a shard count that is no power of
	// two, the one id in 2^32 that has this hash lies in a partition that ends in a negative
	// number, which no program of this module can share; journal.Adopt reports it. With a power of
	// two it lies in shard 0, there and here.
	JavaHash = &remainder{"java-hash", javaHash}

	// JSHash takes the hash that event-store-adapter-js has for the whole id, "{type}-{value}". The
	// hash is that of Java, but unsigned.
	JSHash = &remainder{"js-hash", jsHash}

	// CRC32 takes the CRC-32 (IEEE) of the id value, as event-store-adapter-php does on 64 bits.
	CRC32 = &remainder{"crc32", crc}

	// SipHash13 takes what Rust's DefaultHasher has for the id value as a String: SipHash-1-3 with
	// the key 0 over the bytes of the text and 0xff. event-store-adapter-rs does so. Rust's
	// documentation leaves the algorithm open; it has been this one since Rust 1.13.
	SipHash13 = &remainder{"siphash-1-3", rustHash} //nolint:staticcheck // the spelling of its authors
)

func fnv1a(id aggregate.ID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id.Value)) // a hash never fails to write
	return h.Sum64()
}

func javaHash(id aggregate.ID) uint64 {
	hash := int32(hash31(id.Value))
	if hash < 0 {
		hash = -hash
	}
	return uint64(uint32(hash)) // so that -2^31, which has no positive counterpart, is 2^31
}

func jsHash(id aggregate.ID) uint64 {
	return uint64(hash31(id.String()))
}

func crc(id aggregate.ID) uint64 {
	return uint64(crc32.ChecksumIEEE([]byte(id.Value)))
}

func rustHash(id aggregate.ID) uint64 {
	return sipHash13(append([]byte(id.Value), 0xff))
}

// hash31 is the hash of Java's String and of event-store-adapter-js: a polynomial of the UTF-16
// code units in 32 bits, whatever their sign.
func hash31(text string) (hash uint32) {
	for _, r := range text {
		if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			hash = 31*hash + uint32(high)
			r = low
		}
		hash = 31*hash + uint32(r)
	}
	return hash
}
