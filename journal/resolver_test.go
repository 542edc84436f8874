package journal_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// The hashes are those that the authors of FNV publish for these texts:
// http://www.isthe.com/chongo/src/fnv/test_fnv.c
func TestFNV1aIsTheHashThatItsAuthorsDescribe(t *testing.T) {
	t.Parallel()
	for value, hash := range map[string]uint64{
		"":       0xcbf29ce484222325,
		"a":      0xaf63dc4c8601ec8c,
		"b":      0xaf63df4c8601f1a5,
		"foobar": 0x85944171f73967e8,
	} {
		for _, shards := range []int{1, 2, 7, 16, 1_000, journal.MaxShards} {
			got := journal.FNV1a.Shard(aggregate.ID{Type: "any", Value: value}, shards)
			assert.Equal(t, int(hash%uint64(shards)), got, "%q in %d shards", value, shards)
		}
	}
}

// Aggregates that are stored must be found again: no version of this package may place them elsewhere.
func TestFNV1aNeverMovesAnAggregate(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "fnv1a-64", journal.FNV1a.Name())
	for value, shard := range map[string]int{
		"01H42K4ABWQ5V2XQEP3A48VE0Z":           10,
		"müller":                               12,
		"2f1c7a52-1111-4222-8333-444444444444": 5,
	} {
		assert.Equal(t, shard, journal.FNV1a.Shard(aggregate.ID{Type: "user-account", Value: value}, 16), value)
		assert.Equal(t, shard, journal.FNV1a.Shard(aggregate.ID{Type: "order", Value: value}, 16), "the type does not matter")
	}
}

func TestFNV1aSpreadsAggregatesEvenly(t *testing.T) {
	t.Parallel()
	const ids, shards = 16_000, 16
	var count [shards]int
	for i := range ids {
		count[journal.FNV1a.Shard(user(fmt.Sprint(i)), shards)]++
	}
	for shard, n := range count {
		assert.InDelta(t, ids/shards, n, ids/shards*0.2, "aggregates in shard %d", shard)
	}
}
