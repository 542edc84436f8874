package journal_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/resolver"
)

// keep commits one event and a snapshot of it.
func keep(t *testing.T, j *engine.Engine, value string, version uint64) storage.Receipt {
	t.Helper()
	receipt := mustAppend(t, j, storage.Commit{
		Aggregate: user(value), Expected: version - 1, Events: events(int(version), 1), Snapshot: stateAt(version),
	})
	return receipt
}

func TestAJournalIsWrittenAndReadInEachLayout(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		_, err := s.Head(t.Context(), user("1"))
		require.ErrorIs(t, err, journal.ErrNotFound)
		s.write(t, user("1"), 1, 1)
		head := mustHead(t, s, user("1"))
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 1}, head, "no snapshot yet")
		keep(t, s.Engine, "1", 2)
		s.write(t, user("1"), 3, 1)

		head = mustHead(t, s, user("1"))
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 3, Snapshot: stateAt(2)}, head)
		s.requireVersion(t, user("1"), 3)
		records, err := read(t, s.Engine, user("1"), 1, 3)
		require.NoError(t, err)
		requireNumbers(t, records, 1, 3)

		_, err = s.Append(t.Context(), storage.Commit{Aggregate: user("1"), Expected: 2, Events: events(3, 1), Snapshot: stateAt(3)})
		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict)
		assert.EqualValues(t, 3, conflict.Actual)
		head = mustHead(t, s, user("1"))
		assert.Equal(t, stateAt(2), head.Snapshot, "a commit that is refused leaves no state")

		j := s.through(t, s.onCommits(func(call int, send func() (*http.Response, error)) (*http.Response, error) {
			if call == 1 {
				return lose(t, send)
			}
			return send()
		}))
		receipt := keep(t, j, "2", 1)
		s.requireWrittenOnce(t, "2", receipt, 1)
	})
}

func TestOpenTakesTheLayoutThatWasStored(t *testing.T) {
	t.Parallel()
	for _, stored := range layouts {
		s := setup(t, journal.Config{Layout: stored})
		config := s.Config()
		config.Layout = ""

		j := testjournal.Open(t, s.client, config)
		assert.Equal(t, stored, j.Config().Layout)
	}
}

func TestOpenRefusesTablesOfAnotherLayout(t *testing.T) {
	t.Parallel()
	for _, stored := range layouts {
		for _, given := range layouts {
			if stored == given {
				continue
			}
			s := setup(t, journal.Config{Layout: stored})
			s.write(t, user("1"), 1, 1)
			config := s.Config()
			config.Layout, config.Classic = given, journal.ClassicOptions{}

			_, err := journal.Open(t.Context(), s.client, config)

			var mismatch *journal.DescriptorMismatchError
			require.ErrorAs(t, err, &mismatch)
			assert.Equal(t, journal.DescriptorMismatchError{
				Table: config.Tables.Journal, Field: "layout", Stored: string(stored), Given: string(given),
			}, *mismatch)
			assert.EqualError(t, journal.Create(t.Context(), s.client, config), fmt.Sprintf("create table %q: %v", config.Tables.Journal, mismatch))
			s.requireVersion(t, user("1"), 1)
		}
	}
}

func TestPackedRefusesEachOptionOfClassic(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	for field, given := range map[string]journal.ClassicOptions{
		"Classic.Attributes":     {Attributes: journal.Attributes{TTL: "ttl"}},
		"Classic.Indexes":        {Indexes: journal.Indexes{SnapshotAggregate: "snapshot-aid-index"}},
		"Classic.Resolver":       {Resolver: resolver.FNV1a},
		"Classic.OccurredAtUnit": {OccurredAtUnit: time.Millisecond},
	} {
		config := s.Config()
		config.Classic = given
		_, schemaErr := journal.Schema(config)
		found := config
		found.Layout = ""
		_, foundErr := journal.Open(t.Context(), s.client, found)
		for what, err := range map[string]error{
			"create": journal.Create(t.Context(), s.client, config), "schema": schemaErr, "open": config.Validate(), "open, stored layout": foundErr,
		} {
			var invalid *journal.ConfigError
			require.ErrorAs(t, err, &invalid, "%s %s", what, field)
			assert.Equal(t, field, invalid.Field, what)
			assert.ErrorContains(t, err, "leave it empty", what)
		}
	}
}

func TestTheConfigOfAJournalOpensItAgain(t *testing.T) {
	t.Parallel()
	for _, given := range configs() {
		s := setup(t, given)
		j := testjournal.Open(t, s.client, s.Config())
		config := j.Config()
		assert.Equal(t, config.Layout == journal.Packed, config.Classic == journal.ClassicOptions{})

		again := testjournal.Open(t, s.client, config)
		assert.Equal(t, j.Internal().Config.ClassicOptions, again.Internal().Config.ClassicOptions)
		require.NoError(t, journal.MarkRestored(t.Context(), s.client, config))
	}
}

func TestOpenRefusesALayoutThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	s.change(t, s.Config().Tables.Journal, s.key("millrace", "descriptor"), item{"millrace_layout": text("later")})
	config := s.Config()
	config.Layout = ""
	_, err := journal.Open(t.Context(), s.client, config)
	require.ErrorAs(t, err, new(*journal.DescriptorMismatchError))
	require.ErrorContains(t, err, "layout later")
}

func TestALayoutThatThereIsNotIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	for name, do := range map[string]func(context.Context, journal.Client, journal.Config) error{"create": journal.Create, "adopt": journal.Adopt} {
		config := s.Config()
		config.Layout = "fat"
		var invalid *journal.ConfigError
		require.ErrorAs(t, do(t.Context(), s.client, config), &invalid, name)
		assert.Equal(t, "Layout", invalid.Field, name)
	}
}

func TestTablesMadeBeforeThereWasALayoutAreClassic(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	s.change(t, s.Config().Tables.Journal, s.key("millrace", "descriptor"), item{"millrace_layout": nil})
	for _, layout := range []journal.Layout{"", journal.Classic} {
		j := s.through(t, s.client, func(c *journal.Config) { c.Layout = layout })
		assert.Equal(t, journal.Classic, j.Config.Layout)
	}
}

// A commit pays for the state, wherever the state is in the item that the commit writes.
func TestACommitPaysForTheStateInTheHead(t *testing.T) {
	t.Parallel()
	for layout, want := range map[journal.Layout]struct{ with, without, version float64 }{
		// A state of 100 KB takes 98 units with its keys, and the transaction doubles this. The
		// index takes the same once more.
		journal.Classic: {2*98 + 98, 2*98 + 98, 25},
	} {
		s, db := inMemory(t, journal.Config{Layout: layout})
		large := &journal.Snapshot{Payload: make([]byte, 100_000)}
		s.write(t, user("1"), 1, 1)
		cost := func(expected uint64, snapshot *journal.Snapshot) float64 {
			t.Helper()
			calls := db.Record()
			defer calls.Stop()
			mustAppend(t, s, storage.Commit{Aggregate: user("1"), Expected: expected, Events: events(int(expected)+1, 1), Snapshot: snapshot})
			units := 0.0
			for _, c := range calls.Calls()[0].Capacity {
				if c.Table == s.Config().Tables.Snapshot {
					units += c.WriteUnits
				}
			}
			return units
		}
		large.Number = 2
		assert.InDelta(t, want.with, cost(1, large), 0, "%s, with a snapshot", layout)
		assert.InDelta(t, want.without, cost(2, nil), 0, "%s, without one", layout)
		calls := db.Record()
		s.requireVersion(t, user("1"), 3)
		units, _ := calls.Units()
		assert.InDelta(t, want.version, units, 0, "%s, the version alone", layout)
		calls.Reset()
		head := mustHead(t, s, user("1"))
		assert.EqualValues(t, 2, head.Snapshot.Number)
		assert.Len(t, calls.Calls(), 1, "one round trip")
	}
}

func TestACommandWithoutEventsStoresNoSnapshot(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		s := setup(t, journal.Config{Layout: layout})
		keep(t, s.Engine, "1", 1)

		receipt := mustAppend(t, s, storage.Commit{
			Aggregate: user("1"), Expected: 1, CommandID: "c", Snapshot: &journal.Snapshot{Number: 1, Payload: []byte("other")},
			Redundancy: &storage.Redundancy{Listed: []uint64{}, Keep: 1},
		})
		assert.True(t, receipt.SnapshotLeftOut)
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 1, Snapshot: stateAt(1)}, s.head(t, user("1")))
		assert.Empty(t, s.snapshots(t, user("1")))
	}
}
