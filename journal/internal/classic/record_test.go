package classic

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/layouttest"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// For any item in the table, recordOf returns a record that would be stored as the same item, or an
// error that names the item.
func FuzzRecordOf(f *testing.F) {
	kinds := func(k ...byte) []byte { return k }
	for _, k := range [][]byte{
		kinds(0, 0, 0, 1, 2, 1, 0, 0, 3, 0), kinds(0, 0, 0, 1, 0, 1, 7, 7, 7, 7), kinds(0, 0, 0, 0, 5, 5, 5, 5, 5, 5),
		kinds(7, 7, 7, 7, 7, 7, 7, 7, 7, 7), kinds(0, 0, 0, 1, 6, 1, 2, 2, 4, 2),
	} {
		f.Add(k, "user-account-1", "user-account-x-1", "user-account-x", "1", "payload", "1700000000000", "text")
		f.Add(k, "-", "--1", "-", "01", "", "1e3", "")
		f.Add(k, "a-1", "a-b-18446744073709551615", "a-b", "18446744073709551615", "\xff", "-9223372036854775808", "\x00")
	}
	l := layoutOf(engineOf())
	f.Fuzz(func(t *testing.T, kinds []byte, partition, sort, aid, number, payload, at, ours string) {
		it := table.Item{}
		for i, attribute := range []struct{ name, text string }{
			{"pkey", partition},
			{"skey", sort},
			{"aid", aid},
			{"seq_nr", number},
			{"payload", payload},
			{"occurred_at", at},
			{attrEventID, ours},
			{attrEventType, ours},
			{metadata.Attribute, ours},
			{engine.AttrCommitID, ours},
		} {
			if i < len(kinds) {
				it[attribute.name] = layouttest.Value(kinds[i], attribute.text)
			}
		}

		r, err := l.recordOf(it)
		if err != nil {
			var corrupt *journaltype.CorruptItemError
			require.ErrorAs(t, err, &corrupt)
			require.Nil(t, r)
			return
		}
		require.NotZero(t, r.Number)
		require.NotEmpty(t, r.EventID)
		require.NotEmpty(t, r.Aggregate.Type)
		require.NotEmpty(t, r.Aggregate.Value)
		require.Equal(t, sort, storage.SortKey(r.Aggregate, r.Number))
		require.Equal(t, aid, r.Aggregate.String())
		require.Positive(t, r.Size())

		// The writer may have chosen another shard than ours.
		again := l.itemOf(r)
		again["pkey"] = it["pkey"]
		r2, err := l.recordOf(again)
		require.NoError(t, err)
		require.Equal(t, r.OccurredAt.UnixMilli(), r2.OccurredAt.UnixMilli())
		r2.OccurredAt = r.OccurredAt
		if len(r.Payload) == 0 {
			r2.Payload = r.Payload
		}
		if len(r.Metadata) == 0 {
			r2.Metadata = r.Metadata
		}
		require.Equal(t, r, r2)
	})
}

func TestDerivedEventIDsOfIDsThatReadTheSameDiffer(t *testing.T) {
	t.Parallel()
	one := derivedEventID(aggregate.ID{Type: "user", Value: "account-x"}, 1)
	other := derivedEventID(aggregate.ID{Type: "user-account", Value: "x"}, 1)
	require.NotEqual(t, one, other)
	require.Equal(t, one, derivedEventID(aggregate.ID{Type: "user", Value: "account-x"}, 1))
}
