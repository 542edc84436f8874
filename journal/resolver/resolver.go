// Package resolver implements the key resolvers of the event-store-adapter family, for
// journal.Config. A key resolver maps an aggregate to a shard. Each member of the family uses
// another hash. So a journal that is shared with a member needs the resolver of that member:
// [FNV1a] for Go, [JavaHash] for Java, Kotlin and Scala, [JSHash] for JavaScript, [CRC32] for PHP
// and [SipHash13] for Rust.
//
//	java := journal.ClassicOptions{Resolver: resolver.JavaHash}
//	err := journal.Adopt(ctx, client, journal.Config{Shards: 64, Classic: java})
//
// New tables need no setting: the default is [FNV1a].
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
	return int(r.hash(id) % uint64(shards)) // the remainder of unsigned numbers is never negative
}

// The resolvers of the event-store-adapter family.
var (
	// FNV1a hashes the id value with 64-bit FNV-1a, as event-store-adapter-go does. It is the
	// default of journal.Config.
	FNV1a = &remainder{"fnv1a-64", fnv1a}

	// JavaHash uses the absolute value of Java's String.hashCode of the id value. It is the
	// resolver of event-store-adapter-java, and of the members for Kotlin and Scala, which are
	// based on it.
	//
	// Java's absolute value of the hash -2^31 is negative. One id in 2^32 has this hash. If the
	// number of shards is not a power of two, Java stores this id in a partition that ends in a
	// negative number. Programs of this module cannot share it, and journal.Adopt reports it. If
	// the number is a power of two, both use shard 0.
	JavaHash = &remainder{"java-hash", javaHash}

	// JSHash hashes the whole id, "{type}-{value}", as event-store-adapter-js does. The hash equals
	// Java's String.hashCode, but is unsigned.
	JSHash = &remainder{"js-hash", jsHash}

	// CRC32 uses the CRC-32 (IEEE) of the id value, as event-store-adapter-php does on 64-bit
	// systems.
	CRC32 = &remainder{"crc32", crc}

	// SipHash13 hashes the id value like Rust's DefaultHasher hashes a String: SipHash-1-3 with the
	// key 0 over the bytes of the text and 0xff. It is the resolver of event-store-adapter-rs.
	// Rust's documentation does not specify the algorithm, but it has been this one since Rust
	// 1.13.
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
	// The hash -2^31, which has no positive counterpart, becomes 2^31.
	return uint64(uint32(hash))
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

// hash31 returns the hash of Java's String and of event-store-adapter-js: a polynomial of the
// UTF-16 code units in 32 bits, without a sign.
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
