package resolver_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal/resolver"
)

// shardCounts show a hash of up to 32 bits completely, by the Chinese remainder theorem. They show
// enough of a longer hash to find any mistake.
var shardCounts = []int{1, 2, 7, 16, 1_000, 65_521, 65_536}

// The authors of FNV publish the hashes of these texts:
// http://www.isthe.com/chongo/src/fnv/test_fnv.c
func TestFNV1aIsTheHashThatItsAuthorsDescribe(t *testing.T) {
	t.Parallel()
	requireHashes(t, resolver.FNV1a, "any", map[string]uint64{
		"":       0xcbf29ce484222325,
		"a":      0xaf63dc4c8601ec8c,
		"b":      0xaf63df4c8601f1a5,
		"foobar": 0x85944171f73967e8,
	})
}

// The hashes are the results of Java 17 for Math.abs(value.hashCode()), except for
// "polygenelubricants": its hash is -2^31, and Java's absolute value of it is negative.
func TestJavaHashIsTheAbsoluteValueOfJavasHashOfTheValue(t *testing.T) {
	t.Parallel()
	requireHashes(t, resolver.JavaHash, "user-account", map[string]uint64{
		"":                                     0,
		"a":                                    97,
		"01H42K4ABWQ5V2XQEP3A48VE0Z":           964941577, // negative before
		"müller":                               938338084, // negative before
		"日本語":                                  25921943,
		"😀a":                                   54959966, // two UTF-16 code units, and one
		"2f1c7a52-1111-4222-8333-444444444444": 1819905936,
		"polygenelubricants":                   1 << 31,
	})
	lowest := aggregate.ID{Type: "user-account", Value: "polygenelubricants"}
	assert.Equal(t, 0, resolver.JavaHash.Shard(lowest, 16), "where Java has it too")
	assert.Equal(t, 2, resolver.JavaHash.Shard(lowest, 7), "where Java has -2")
}

// The hashes are the results of the key resolver of event-store-adapter-js 2.2.94 for
// "user-account-{value}".
func TestJSHashIsTheUnsignedHashOfTheWholeID(t *testing.T) {
	t.Parallel()
	requireHashes(t, resolver.JSHash, "user-account", map[string]uint64{
		"a":                                    975799615,
		"01H42K4ABWQ5V2XQEP3A48VE0Z":           3318036953, // above 2^31
		"müller":                               974057150,
		"日本語":                                  1466388213,
		"😀a":                                   1495426236,
		"polygenelubricants":                   1813058274,
		"2f1c7a52-1111-4222-8333-444444444444": 2292272850, // above 2^31
	})
}

// The first is the check value of the CRC catalogue, the second the example in PHP's manual for
// crc32, and the others are results of zlib.
func TestCRC32IsPHPsHashOfTheValue(t *testing.T) {
	t.Parallel()
	requireHashes(t, resolver.CRC32, "user-account", map[string]uint64{
		"123456789": 0xcbf43926,
		"The quick brown fox jumped over the lazy dog.": 2191738434,
		"":                           0,
		"a":                          3904355907,
		"01H42K4ABWQ5V2XQEP3A48VE0Z": 3978772940,
		"müller":                     2751106649,
		"日本語":                        2819314405,
		"😀":                          88978756,
	})
}

// The hashes are the results of std::collections::hash_map::DefaultHasher of Rust 1.95 for a
// String. They cover each length modulo 8, with one block and several.
func TestSipHash13IsRustsHashOfTheValue(t *testing.T) {
	t.Parallel()
	requireHashes(t, resolver.SipHash13, "user-account", map[string]uint64{
		"":                                     0x30406ea523c53def,
		"a":                                    0x719b50b9a4f0e9f3,
		"ab":                                   0x66930d61a0cb581b,
		"abc":                                  0xef09e0f4895a251d,
		"abcd":                                 0xbbf2e457dbcab5b1,
		"abcde":                                0x549aa34109de1f3b,
		"abcdef":                               0xdf6216446ef05c5b,
		"abcdefg":                              0x2295ef44bd078ae9, // a whole block with its 0xff
		"abcdefgh":                             0x5cd7657fa7f96c16,
		"abcdefghijklmno":                      0x3f016393f7fd4069,
		"abcdefghijklmnop":                     0x3285423a7a07b06e,
		"01H42K4ABWQ5V2XQEP3A48VE0Z":           0x59308e07e14cc115,
		"müller":                               0xa3f9dc977a752607,
		"日本語":                                  0x45b6f3c35fcdca3e,
		"😀":                                    0x475a0576ba65c119,
		"2f1c7a52-1111-4222-8333-444444444444": 0x6860d93a2a08d29e,
	})
}

// keyResolver is the part of a resolver that a journal uses.
type keyResolver interface {
	Name() string
	Shard(id aggregate.ID, shards int) int
}

func requireHashes(t *testing.T, resolver keyResolver, aggregateType string, hashes map[string]uint64) {
	t.Helper()
	for value, hash := range hashes {
		for _, shards := range shardCounts {
			got := resolver.Shard(aggregate.ID{Type: aggregateType, Value: value}, shards)
			assert.Equal(t, int(hash%uint64(shards)), got, "%s: %q in %d shards", resolver.Name(), value, shards)
		}
	}
}

// Stored aggregates must be found again. No version of this package may change their shards, or the
// name of a resolver, which descriptors contain.
func TestResolversNeverMoveAnAggregate(t *testing.T) {
	t.Parallel()
	values := []string{"01H42K4ABWQ5V2XQEP3A48VE0Z", "müller", "2f1c7a52-1111-4222-8333-444444444444"}
	for name, c := range map[string]struct {
		resolver    keyResolver
		accounts    []int
		hashesValue bool // it hashes the value without the type
	}{
		"fnv1a-64":    {resolver.FNV1a, []int{10, 12, 5}, true},
		"java-hash":   {resolver.JavaHash, []int{9, 4, 0}, true},
		"js-hash":     {resolver.JSHash, []int{9, 14, 2}, false},
		"crc32":       {resolver.CRC32, []int{12, 9, 9}, true},
		"siphash-1-3": {resolver.SipHash13, []int{5, 7, 14}, true},
	} {
		assert.Equal(t, name, c.resolver.Name())
		for i, value := range values {
			assert.Equal(t, c.accounts[i], c.resolver.Shard(user(value), 16), "%s: %s", name, value)
			sameForOrder := c.accounts[i] == c.resolver.Shard(aggregate.ID{Type: "order", Value: value}, 16)
			assert.Equal(t, c.hashesValue, sameForOrder, "%s: %s as an order", name, value)
		}
	}
}

func TestResolversSpreadAggregatesEvenly(t *testing.T) {
	t.Parallel()
	const ids = 16_000
	for _, r := range []keyResolver{resolver.FNV1a, resolver.JavaHash, resolver.JSHash, resolver.CRC32, resolver.SipHash13} {
		for _, shards := range []int{7, 16, 100} {
			count := make([]int, shards)
			for i := range ids {
				count[r.Shard(user(fmt.Sprintf("01H42K4ABWQ5V2XQEP3A%06d", i*7919)), shards)]++
			}
			for shard, n := range count {
				assert.InDelta(t, ids/shards, n, float64(ids/shards)*0.4, "%s: aggregates in shard %d of %d", r.Name(), shard, shards)
			}
		}
	}
}

func user(value string) aggregate.ID { return aggregate.ID{Type: "user-account", Value: value} }
