package journal_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// requiring opens a new journal that requires the encoding "a".
func requiring(t *testing.T) (*dynamotest.DB, func(...journal.Encoding) *journal.Journal) {
	t.Helper()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1, RequiredEncodings: []string{"a"}}))
	return db, func(list ...journal.Encoding) *journal.Journal {
		t.Helper()
		return testjournal.Open(t, db.Client(), journal.Config{Encodings: list})
	}
}

func requireNotEncoded(t *testing.T, err error) {
	t.Helper()
	var missing *journal.EncodingError
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, "a", missing.Encoding)
	assert.ErrorContains(t, err, "which the journal requires")
}

func TestNoEventIsWrittenWithoutARequiredEncoding(t *testing.T) {
	t.Parallel()
	_, open := requiring(t)
	for name, j := range map[string]*journal.Journal{
		"none": open(), "another": open(&wrapped{name: "b"}), "only for reading": open(journal.ForReading(&wrapped{name: "a"})),
		"raw": open(&wrapped{name: "a"}).Raw(),
	} {
		_, err := j.Internal().Append(t.Context(), storage.Commit{Aggregate: user("1"), Events: events(1, 1)})
		requireNotEncoded(t, err)
		_, err = j.Version(t.Context(), user("1"))
		require.ErrorIs(t, err, journal.ErrNotFound, name)
	}
	record := &journal.Record{Aggregate: user("1"), Number: 1, EventID: "1", EventType: "Happened", Payload: []byte("plain")}
	_, err := open().Raw().Internal().Restore(t.Context(), storage.Restoration{
		Head: journal.Head{Aggregate: user("1"), Version: 1}, Records: []*journal.Record{record},
	})
	requireNotEncoded(t, err)
}

func TestAPlainPayloadIsRefusedWhereAnEncodingIsRequired(t *testing.T) {
	t.Parallel()
	db, open := requiring(t)
	j := open(&wrapped{name: "a"})
	testjournal.Append(t, j, storage.Commit{
		Aggregate: user("1"), Events: events(1, 2), Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("state")},
	})
	mustHead(t, j, user("1"))

	s := store{Engine: j.Internal(), client: db.Client()}
	forge := func(table string, number int) {
		it := s.get(t, table, s.keyOf(user("1"), number))
		delete(it, "encoding")
		it["payload"] = binary("plain")
		s.put(t, table, it)
	}
	forge("journal", 2)
	forge("snapshot", 0)

	records, err := read(t, s.Engine, user("1"), 1, 2)
	requireNotEncoded(t, err)
	assert.Len(t, records, 1, "what can be read before it")
	_, err = j.Head(t.Context(), user("1"))
	requireNotEncoded(t, err)
	raw, err := j.Raw().Head(t.Context(), user("1"))
	require.NoError(t, err, "a tool can look at it")
	assert.Equal(t, []byte("plain"), raw.Snapshot.Payload)
}

func TestTheDescriptorKeepsRequiredEncodings(t *testing.T) {
	t.Parallel()
	db, open := requiring(t)
	assert.Equal(t, []string{"a"}, open().Config().RequiredEncodings)

	_, err := journal.Open(t.Context(), db.Client(), journal.Config{RequiredEncodings: []string{"a", "b"}})
	assert.ErrorAs(t, err, new(*journal.DescriptorMismatchError))
	err = journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1})
	assert.ErrorAs(t, err, new(*journal.DescriptorMismatchError))

	err = journal.Adopt(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1, RequiredEncodings: []string{"a"}})
	assert.ErrorAs(t, err, new(*journal.ConfigError), "other programs store plain payloads")
	_, err = journal.Open(t.Context(), db.Client(), journal.Config{RequiredEncodings: []string{"A,B"}})
	assert.ErrorAs(t, err, new(*journal.ConfigError))
}
