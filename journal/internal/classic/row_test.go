package classic

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/layouttest"
	"github.com/millrace-dev/millrace/internal/rows"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// ownRecord, which reads rows, must return the same as recordOf, which reads items. This holds even
// if parts of an item are missing or differ from what this package writes.
func TestRowsAreReadAsItemsAre(t *testing.T) {
	t.Parallel()
	l := layoutOf(engineOf())
	whole := l.itemOf(&journaltype.Record{
		Aggregate: aggregate.ID{Type: "account", Value: "a-1"}, Number: 7, EventID: "e", EventType: "deposited", Payload: []byte("{}"),
		Encoding: "zip", Metadata: aggregate.Metadata{"k": "v"}, OccurredAt: time.UnixMilli(1_700_000_000_000), CommitID: "c",
	})
	own := 0
	compare := func(it table.Item, because string) {
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
				odd[name] = layouttest.Value(kind, text)
				compare(odd, name+" "+text)
			}
		}
	}
	assert.Greater(t, own, 10)
	long := l.itemOf(&journaltype.Record{
		Aggregate: aggregate.ID{Type: "account", Value: strings.Repeat("x", aggregate.MaxIDBytes)}, Number: 1, EventID: "e", CommitID: "c", Payload: []byte("{}"),
	})
	compare(long, "of an id that is too long")

	t.Run("numbers only", func(t *testing.T) {
		t.Parallel()
		it := table.Item{}
		a := l.Config.Attributes
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
