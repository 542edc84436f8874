package journal_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// userNeedsA is the requirement of the tests: payloads of users have the encoding "a".
var userNeedsA = map[string][]string{user("").Type: {"a"}}

func forUsers() journal.Encoding { return journal.ForTypes(&wrapped{name: "a"}, user("").Type) }

// eachRequiring runs a test with a new journal of each layout, that requires userNeedsA.
func eachRequiring(t *testing.T, test func(t *testing.T, db *dynamotest.DB, open func(...journal.Encoding) *journal.Journal)) {
	t.Helper()
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		db := dynamotest.New(t)
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: layout, Shards: 1, RequiredByType: userNeedsA}))
		test(t, db, func(list ...journal.Encoding) *journal.Journal {
			t.Helper()
			return testjournal.Open(t, db.Client(), journal.Config{Encodings: list})
		})
	})
}

func TestOnlyPayloadsOfATypeAreEncodedAndRequired(t *testing.T) {
	eachRequiring(t, func(t *testing.T, _ *dynamotest.DB, open func(...journal.Encoding) *journal.Journal) {
		j := open(forUsers(), &wrapped{name: "b"})
		for _, id := range []aggregate.ID{user("1"), order("1")} {
			testjournal.Append(t, j, storage.Commit{
				Aggregate: id, Events: events(1, 2), Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("state")},
			})
			got, err := read(t, j.Internal(), id, 1, 2)
			require.NoError(t, err)
			assert.Equal(t, events(1, 2)[0].Payload, got[0].Payload)
			stored, err := read(t, j.Raw().Internal(), id, 1, 2)
			require.NoError(t, err)
			assert.Equal(t, map[string]string{user("").Type: "a,b", "order": "b"}[id.Type], stored[0].Encoding)
			head, err := j.Head(t.Context(), id)
			require.NoError(t, err)
			if head.Snapshot != nil {
				assert.Equal(t, "state", string(head.Snapshot.Payload))
			}
		}
	})
}

func TestNoEventOfATypeIsWrittenWithoutItsEncoding(t *testing.T) {
	eachRequiring(t, func(t *testing.T, _ *dynamotest.DB, open func(...journal.Encoding) *journal.Journal) {
		for name, j := range map[string]*journal.Journal{
			"none": open(), "for another type": open(journal.ForTypes(&wrapped{name: "a"}, "order")), "only for reading": open(journal.ForReading(forUsers())),
		} {
			_, err := j.Internal().Append(t.Context(), storage.Commit{Aggregate: user("1"), Events: events(1, 1)})
			requireNotEncoded(t, err)
			_, err = j.Version(t.Context(), user("1"))
			require.ErrorIs(t, err, journal.ErrNotFound, name)
			testjournal.Append(t, j, storage.Commit{Aggregate: order(name), Events: events(1, 1)})
			_, err = j.Internal().AppendJoint(t.Context(), storage.Joint{Parts: []storage.Commit{
				{Aggregate: user("1"), Events: events(1, 1)}, {Aggregate: order("joint"), Events: events(1, 1)},
			}})
			requireNotEncoded(t, err)
		}
	})
}

func TestAPlainPayloadOfATypeIsRefused(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		db := dynamotest.New(t)
		plain := testjournal.New(t, db.Client(), journal.Config{Layout: layout, Shards: 1})
		for _, id := range []aggregate.ID{user("1"), order("1")} {
			testjournal.Append(t, plain, storage.Commit{Aggregate: id, Events: events(1, 2)})
		}
		j := plain.Internal()
		j.Config.RequiredByType = userNeedsA // another program has written them

		_, err := read(t, j, user("1"), 1, 2)
		requireNotEncoded(t, err)
		_, err = read(t, j, order("1"), 1, 2)
		require.NoError(t, err)
	})
}

func TestRequirementsOfTypesCanOnlyBeAdded(t *testing.T) {
	eachRequiring(t, func(t *testing.T, db *dynamotest.DB, open func(...journal.Encoding) *journal.Journal) {
		j := open(forUsers())
		assert.Equal(t, userNeedsA, j.Config().RequiredByType)
		testjournal.Append(t, j, storage.Commit{Aggregate: order("1"), Events: events(1, 1)})
		testjournal.Append(t, j, storage.Commit{Aggregate: user("1"), Events: events(1, 1)})
		config := j.Config()
		with := func(required map[string][]string) journal.Config {
			config.RequiredByType = required
			return config
		}
		more := map[string][]string{"person": {"b", "a"}}

		_, err := journal.Open(t.Context(), db.Client(), with(more))
		require.ErrorAs(t, err, new(*journal.DescriptorMismatchError))
		require.ErrorContains(t, err, "add them with journal.Create")
		for range 2 {
			require.NoError(t, journal.Create(t.Context(), db.Client(), with(more)))
		}
		require.NoError(t, journal.Create(t.Context(), db.Client(), with(nil)), "an older release")
		both := map[string][]string{user("").Type: {"a"}, "person": {"a", "b"}}
		for _, given := range []map[string][]string{nil, userNeedsA, more, both} {
			opened, err := journal.Open(t.Context(), db.Client(), with(given))
			require.NoError(t, err)
			assert.Equal(t, both, opened.Config().RequiredByType)
		}

		for _, used := range []map[string][]string{{"order": {"a"}}, {user("").Type: {"a", "b"}}} {
			err = journal.Create(t.Context(), db.Client(), with(used))
			require.ErrorAs(t, err, new(*journal.ConfigError))
			require.ErrorContains(t, err, "which has aggregates")
		}
		config.Shards = 2
		require.ErrorAs(t, journal.Create(t.Context(), db.Client(), with(map[string][]string{"other": {"a"}})), new(*journal.DescriptorMismatchError))
		assert.Equal(t, both, open().Config().RequiredByType)
	})
}

func TestConcurrentCreatesAddAllTypes(t *testing.T) {
	eachRequiring(t, func(t *testing.T, db *dynamotest.DB, open func(...journal.Encoding) *journal.Journal) {
		layout := open().Config().Layout
		ended := make(chan error)
		for n := range 5 {
			go func() {
				ended <- journal.Create(t.Context(), db.Client(), journal.Config{
					Layout: layout, Shards: 1, RequiredByType: map[string][]string{fmt.Sprint("type", n): {"a"}},
				})
			}()
		}
		for range 5 {
			require.NoError(t, <-ended)
		}
		assert.Len(t, open().Config().RequiredByType, 6)
	})
}

func TestARequirementThatCannotBeMetIsInvalid(t *testing.T) {
	t.Parallel()
	for _, config := range []journal.Config{
		{RequiredByType: map[string][]string{"": {"a"}}},
		{RequiredByType: map[string][]string{"user": nil}},
		{RequiredByType: map[string][]string{"user": {"A,B"}}},
		{Encodings: []journal.Encoding{journal.ForTypes(&wrapped{name: "a"})}},
		{Encodings: []journal.Encoding{journal.ForTypes(nil, "user")}},
		{Encodings: []journal.Encoding{journal.ForReading(journal.ForTypes(nil, "user"))}},
	} {
		assert.ErrorAs(t, config.Validate(), new(*journal.ConfigError))
	}
	db := dynamotest.New(t)
	err := journal.Adopt(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1, RequiredByType: userNeedsA})
	require.ErrorAs(t, err, new(*journal.ConfigError))
	assert.ErrorContains(t, err, "stores plain payloads")
}
