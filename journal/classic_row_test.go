package journal

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/rows"
)

// What ownRecord reads is what recordOf reads, whatever of an item is missing or otherwise than this
// package writes it.
func TestRowsAreReadAsItemsAre(t *testing.T) {
	t.Parallel()
	l := classicOf(engineOf(Config{Shards: 4}))
	whole := l.itemOf(&Record{
		Aggregate: aggregate.ID{Type: "account", Value: "a-1"}, Number: 7, EventID: "e", EventType: "deposited", Payload: []byte("{}"),
		Encoding: "zip", Metadata: aggregate.Metadata{"k": "v"}, OccurredAt: time.UnixMilli(1_700_000_000_000), CommitID: "c",
	})
	own := 0
	compare := func(it item, because string) {
		want, err := l.recordOf(it)
		if read, ok := l.ownRecord(rows.Of(it), false); ok {
			own++
			require.NoError(t, err, because)
			require.Equal(t, want, read, because)
		}
		read := l.readRow(rows.Of(it), false)
		require.Equal(t, want, read.record, because)
		require.Equal(t, err != nil, read.corrupt != nil, because)
	}
	compare(whole, "whole")
	assert.Equal(t, 1, own)
	for _, name := range append(slices.Sorted(maps.Keys(whole)), "other") {
		without := maps.Clone(whole)
		delete(without, name)
		compare(without, "without "+name)
		for kind := range byte(8) {
			for _, text := range []string{"", "0", "07", "7", "8", "-7", "account-2", "a-1", "account-a-1-7", "x", "9223372036854775808"} {
				odd := maps.Clone(without)
				odd[name] = valueOf(kind, text)
				compare(odd, name+" "+text)
			}
		}
	}
	assert.Greater(t, own, 10)

	t.Run("numbers only", func(t *testing.T) {
		t.Parallel()
		it := item{}
		a := l.config.Attributes
		for _, name := range []string{a.PartitionKey, a.SortKey, a.OccurredAt, a.AggregateID, a.SequenceNumber} {
			it[name] = whole[name]
		}

		read := l.readRow(rows.Of(it), true)

		require.NotNil(t, read.record)
		assert.Equal(t, uint64(7), read.record.Number)
		assert.Empty(t, read.record.EventID)
		_, fast := l.ownRecord(rows.Of(it), true)
		assert.True(t, fast)
	})
}

// The journal's own client, which learns the time, passes replies on as they are.
func TestRepliesToTheSDKAreReadAsRows(t *testing.T) {
	t.Parallel()
	for _, config := range []Config{{}, {Now: time.Now}} {
		j, err := newEngine(dynamodb.New(dynamodb.Options{}), config)
		require.NoError(t, err)
		assert.True(t, j.source.SDK)

		j, err = newEngine(struct{ Client }{}, config)
		require.NoError(t, err)
		assert.False(t, j.source.SDK)
	}
}
