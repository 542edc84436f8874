package packed

import (
	"bytes"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/layouttest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Events of any bytes are read as they were written.
func FuzzPackedEvents(f *testing.F) {
	f.Add("id", "type", []byte("payload"), "key", "value", "zip", int64(0), uint8(3))
	f.Add("", "", []byte{}, "", "", "", int64(-1), uint8(1))
	f.Add("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "\x00", []byte{0xff}, "\xff", "\xfe", "", int64(1_700_000_000_000), uint8(99))
	f.Add("6BA7B810-9dad-11d1-80b4-00c04fd430c8", "t", []byte(nil), "k", "", "a,b", int64(-62_135_596_800_000), uint8(2))
	p := layoutOf()
	id := aggregate.ID{Type: "user/account", Value: "1/2"}
	f.Fuzz(func(t *testing.T, eventID, eventType string, payload []byte, key, value, encoding string, millis int64, n uint8) {
		for _, text := range []string{eventID, eventType, encoding} {
			if !utf8.ValidString(text) {
				return // no commit has such a text
			}
		}
		events := make([][]byte, max(n, 1))
		for i := range events {
			e := storage.Event{ID: eventID, Type: eventType, Payload: payload, Metadata: aggregate.Metadata{key: value}, Encoding: encoding}
			at := &millis
			if i%2 == 1 {
				e.Metadata, at = nil, nil
			}
			var err error
			events[i], err = packEvent(&e, at)
			require.NoError(t, err)
		}
		joined, err := joinEvents(events)
		require.NoError(t, err)
		written := time.UnixMilli(1_700_000_000_000).UTC()
		it := p.commitItem(id, 7, commitValue("commit"), written, "command")
		it[attrCount] = table.NumberValue(len(events))
		p.setEvents(it, joined)

		parsed, err := p.parse(it)
		require.NoError(t, err)
		records, err := p.recordsOf(parsed)

		require.NoError(t, err)
		require.Len(t, records, len(events))
		for i, r := range records {
			want := journaltype.Record{
				Aggregate: id, Number: uint64(7 + i), EventID: eventID, EventType: eventType, Payload: payload, Encoding: encoding, CommitID: "commit",
				Metadata: aggregate.Metadata{key: value}, OccurredAt: time.UnixMilli(millis).UTC(), WrittenAt: written,
			}
			if i%2 == 1 {
				want.Metadata, want.OccurredAt = nil, written
			}
			if eventID == "" {
				want.EventID = eventIDIn(parsed.commit, want.Number)
			}
			if len(payload) == 0 {
				want.Payload = []byte{}
			}
			require.Equal(t, &want, r)
		}
	})
}

// Any data in place of the events is read as events or as a corrupt item.
func FuzzDamagedPackedEvents(f *testing.F) {
	whole, err := packEvent(&storage.Event{ID: "6ba7b810-9dad-11d1-80b4-00c04fd430c8", Type: "t", Metadata: aggregate.Metadata{"k": "v"}}, new(int64))
	require.NoError(f, err)
	for n := range 3 {
		joined, err := joinEvents([][]byte{whole, whole}[:n])
		require.NoError(f, err)
		f.Add(joined, uint64(n))
		f.Add(joined[:len(joined)/2], uint64(n))
		f.Add(bytes.ReplaceAll(joined, []byte("k"), nil), uint64(n))
	}
	f.Add([]byte{}, uint64(1))
	for _, damaged := range [][]byte{
		{0x81, 0x86, 0x60, 0x40, 0x81, 0x40, 0xf6, 0xf6, 0x60}, // metadata with one half of a pair
		{0x81, 0x86, 0x60, 0x40, 0xf6, 0x41, 0x01, 0xf6, 0x60}, // an id of one byte
		{0x81, 0x86, 0x60, 0x40, 0xf6, 0x05, 0xf6, 0x60},       // an id that is a number
	} {
		f.Add(damaged, uint64(1))
	}
	// A list of 2^63-1 elements.
	f.Add([]byte{0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint64(1)<<62)
	p := layoutOf()
	f.Fuzz(func(t *testing.T, damaged []byte, count uint64) {
		it := p.commitItem(aggregate.ID{Type: "a", Value: "b"}, 1, commitValue("commit"), time.UnixMilli(0), "")
		it[attrCount], it[attrSmall] = table.NumberValue(count), table.BinaryValue(damaged)
		parsed, err := p.parse(it)
		if err != nil {
			require.ErrorAs(t, err, new(*journaltype.CorruptItemError))
			return
		}
		records, err := p.recordsOf(parsed)
		if err != nil {
			var corrupt *journaltype.CorruptItemError
			require.ErrorAs(t, err, &corrupt)
			require.Equal(t, "1", corrupt.SortKey)
			require.Nil(t, records)
			return
		}
		require.Len(t, records, int(parsed.count))
		for _, r := range records {
			require.NotEmpty(t, r.EventID)
		}
	})
}

// An item has its events in one of two attributes. An item with both must be read in the same way
// each time.
func TestAnItemWithTwoListsOfEventsHasOne(t *testing.T) {
	t.Parallel()
	p := layoutOf()
	it := p.commitItem(aggregate.ID{Type: "a", Value: "b"}, 1, commitValue("commit"), time.UnixMilli(0), "")
	it[attrCount], it[attrSmall], it[attrLarge] = table.NumberValue(1), table.BinaryValue([]byte("small")), table.BinaryValue([]byte("large"))
	for range 50 {
		parsed, err := p.parse(it)
		require.NoError(t, err)
		require.Equal(t, []byte("large"), parsed.events)
	}
}

// For any item in the table, parse returns a place in an aggregate's history, or an error that
// names the item.
func FuzzParse(f *testing.F) {
	kinds := func(k ...byte) []byte { return k }
	for _, k := range [][]byte{
		kinds(0, 1, 2, 1, 1, 2, 7, 7, 7, 7), kinds(0, 1, 0, 1, 1, 7, 0, 1, 1, 1), kinds(0, 1, 0, 1, 7, 7, 7, 7, 7, 1), kinds(7, 7, 7, 7, 7, 7, 7, 7, 7, 7),
		kinds(0, 0, 0, 0, 5, 5, 5, 5, 5, 5), kinds(0, 1, 6, 1, 1, 6, 6, 1, 1, 1),
	} {
		f.Add(k, "a/b", "1", "=commit", "1", "0")
		f.Add(k, "a\x1fb/c/d", "18446744073709551615", "0123456789abcdef", "4611686018427387904", "1700000000000")
		f.Add(k, "a/b", "5.00000000000000001", "-", "0", "-1")
		f.Add(k, "ab", "-1", "=", "1e3", "x")
		f.Add(k, "/", "0", "", "-1", "")
		f.Add(k, "a/b", "1.", "=c", "99999999999999999999", "1.5")
	}
	p := layoutOf()
	f.Fuzz(func(t *testing.T, kinds []byte, partition, number, commit, count, rest string) {
		it := table.Item{}
		for i, attribute := range []struct{ name, text string }{
			{"pkey", partition},
			{"skey", number},
			{attrCommit, commit},
			{attrCount, count},
			{attrTime, rest},
			{attrSmall, rest},
			{attrID, rest},
			{attrFirst, count},
			{attrLast, count},
			{attrDeleted, rest},
			{attrHold, count},
		} {
			if i < len(kinds) {
				it[attribute.name] = layouttest.Value(kinds[i], attribute.text)
			}
		}
		parsed, err := p.parse(it)
		if err != nil {
			var corrupt *journaltype.CorruptItemError
			require.ErrorAs(t, err, &corrupt)
			require.Nil(t, parsed)
			if kinds := append(kinds, 7, 7); kinds[0]%8 == 0 && kinds[1]%8 == 1 {
				require.Equal(t, [2]string{partition, number}, [2]string{corrupt.PartitionKey, corrupt.SortKey})
			}
			return
		}
		require.NoError(t, parsed.id.Validate())
		require.Equal(t, partition, partitionOf(parsed.id))
		require.NotEmpty(t, parsed.commit)
		require.Positive(t, parsed.first)
		require.GreaterOrEqual(t, parsed.last()+1, parsed.first, "which is no place in a history")
		_ = parsed.commands()
		if _, err := p.recordsOf(parsed); err != nil {
			require.ErrorAs(t, err, new(*journaltype.CorruptItemError))
		}
	})
}

func TestEveryCommitIDIsReadAsItWasGiven(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, id := range []string{"c", "=c", "-c", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6BA7B810-9dad-11d1-80b4-00c04fd430c8", ""} {
		commit, commitID, ok := commitOf(commitValue(id))
		require.True(t, ok, id)
		require.Equal(t, id, commitID)
		require.NotContains(t, seen, commit)
		seen[commit] = id
	}
	for _, v := range []types.AttributeValue{nil, table.StringValue(""), table.StringValue("="), table.StringValue("c"), table.BinaryValue([]byte("short")), table.NumberValue(1)} {
		_, _, ok := commitOf(v)
		require.False(t, ok, "%v", v)
	}
}
