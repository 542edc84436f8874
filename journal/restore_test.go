package journal_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// old returns records of another journal: of several commits, and one of another program.
func old(id aggregate.ID, from, n int) []*journal.Record {
	records := make([]*journal.Record, n)
	for i := range records {
		number := uint64(from + i)
		at := time.UnixMilli(1_000 + int64(number)).UTC()
		records[i] = &journal.Record{
			Aggregate: id, Number: number, EventID: "e", EventType: "old", Payload: []byte{byte(number)}, CommitID: "c",
			Metadata: aggregate.Metadata{"k": "v"}, OccurredAt: at, WrittenAt: at,
		}
	}
	return records
}

func restoration(id aggregate.ID, expected uint64, records []*journal.Record) storage.Restoration {
	return storage.Restoration{
		Expected: expected, Records: records,
		Head: journal.Head{Aggregate: id, Version: expected + uint64(len(records))},
	}
}

// requireRestored requires the original records. In the packed layout, their WrittenAt is the time
// of the restoration.
func (s store) requireRestored(t *testing.T, want, stored []*journal.Record) {
	t.Helper()
	for _, r := range stored {
		if s.isPacked() {
			assert.Equal(t, s.clock.now().UTC(), r.WrittenAt)
			r.WrittenAt = r.OccurredAt
		}
	}
	assert.Equal(t, want, stored)
}

func TestRestoredEventsAreAsTheyWere(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		records := old(user("1"), 1, 12)
		r := restoration(user("1"), 0, records[:10])
		receipt, err := s.Restore(t.Context(), r)
		require.NoError(t, err)
		assert.Equal(t, storage.Receipt{Version: 10}, receipt)
		r = restoration(user("1"), 10, records[10:])
		r.Head.Snapshot = &journal.Snapshot{Number: 11, Schema: 3, Payload: []byte("state")}
		_, err = s.Restore(t.Context(), r)
		require.NoError(t, err)

		stored, err := read(t, s.Engine, user("1"), 1, 12)
		require.NoError(t, err)
		s.requireRestored(t, records, stored)
		head := mustHead(t, s, user("1"))
		assert.Equal(t, r.Head, head)
	})
}

func TestWhatIsRestoredAlreadyIsSuccess(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		records := old(user("1"), 1, 12)
		for range 2 {
			_, err := s.Restore(t.Context(), restoration(user("1"), 0, records[:10]))
			require.NoError(t, err)
		}
		_, err := s.Restore(t.Context(), restoration(user("1"), 10, records[10:]))
		require.NoError(t, err)
		_, err = s.Restore(t.Context(), restoration(user("1"), 4, records[4:7]))
		require.NoError(t, err, "also when the head has gone on")

		_, err = s.Restore(t.Context(), restoration(user("1"), 11, old(user("1"), 12, 2)))
		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict, "one is there, the other is not")
		assert.EqualValues(t, 12, conflict.Actual)
		other := old(user("1"), 1, 10)
		other[6].Payload = []byte("another")
		_, err = s.Restore(t.Context(), restoration(user("1"), 0, other))
		require.ErrorIs(t, err, journal.ErrConflict, "one of them is another event")

		if s.isPacked() { // it has no head
			return
		}
		s.change(t, s.Config().Tables.Snapshot, s.keyOf(user("1"), 0), item{s.Engine.Config.Attributes.Version: number(9)})
		_, err = s.Restore(t.Context(), restoration(user("1"), 9, records[9:]))
		require.ErrorAs(t, err, new(*journal.CorruptItemError), "the events are there, and the head does not know it")
	})
}

func TestARestorationWhoseReplyWasLostIsSuccess(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]time.Duration{"with time to repeat it": 0, "without": time.Nanosecond} {
		for _, layout := range layouts {
			t.Run(fmt.Sprint(layout, " ", name), func(t *testing.T) {
				t.Parallel()
				testdb.WithFakeTime(t, func(t *testing.T) {
					s, db := inMemory(t, journal.Config{Layout: layout, RetryBudget: budget})
					lost := db.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Times(2))

					_, err := s.Restore(t.Context(), restoration(user("1"), 0, old(user("1"), 1, 3)))

					require.NoError(t, err)
					assert.Positive(t, lost.Fired())
					s.requireVersion(t, user("1"), 3)
				})
			})
		}
	}
}

func TestARestorationThatMayNotBeWrittenIsUnknown(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		for _, layout := range layouts {
			s, db := inMemory(t, journal.Config{Layout: layout, RetryBudget: time.Nanosecond})
			db.Inject(dynamotest.CutConnection(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
			r := restoration(user("1"), 0, old(user("1"), 1, 3))

			_, err := s.Restore(t.Context(), r)
			require.ErrorIs(t, err, journal.ErrOutcomeUnknown, layout)
			_, err = s.Restore(t.Context(), r)
			require.NoError(t, err, "it may be repeated")
		}
	})
}

func TestATruncatedAggregateIsRestoredFromWhereItBegins(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		r := storage.Restoration{
			Head:    journal.Head{Aggregate: user("1"), Version: 9, TruncatedBefore: 7, Snapshot: &journal.Snapshot{Number: 8, Payload: []byte("s")}},
			Records: old(user("1"), 7, 3),
		}
		_, err := s.Restore(t.Context(), r)
		require.NoError(t, err)
		head := mustHead(t, s, user("1"))
		assert.Equal(t, r.Head, head)
		_, err = read(t, s.Engine, user("1"), 1, 9)
		require.ErrorAs(t, err, new(*journal.TruncatedError))
		stored, err := read(t, s.Engine, user("1"), 7, 9)
		require.NoError(t, err)
		s.requireRestored(t, r.Records, stored)
	})
}

// The first record of a truncated aggregate is not event 1.
func TestAPlaceThatIsTakenIsNamedAsItIsByARestorationOfATruncatedAggregate(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		id, c := user("1"), s.Config()
		s.write(t, id, 1, 8)
		s.remove(t, c.Tables.Snapshot, s.keyOf(id, 0))
		s.remove(t, c.Tables.Journal, s.keyOf(id, 7))

		_, err := s.Restore(t.Context(), storage.Restoration{
			Head:    journal.Head{Aggregate: id, Version: 9, TruncatedBefore: 7, Snapshot: &journal.Snapshot{Number: 9, Payload: []byte("s")}},
			Records: old(id, 7, 3),
		})

		var corrupt *journal.CorruptItemError
		require.ErrorAs(t, err, &corrupt)
		assert.Equal(t, journal.CorruptItemError{
			Aggregate: id, Number: 8, Table: c.Tables.Journal, PartitionKey: storage.ShardKey(id.Type, s.Shard(id)), SortKey: "user-account-1-8",
			Reason: "exists although the head of its aggregate is at version 0",
		}, *corrupt)
		assert.Empty(t, s.get(t, c.Tables.Snapshot, s.keyOf(id, 0)), "nothing is written")
	})
}

func TestAHeadWithoutEventsIsRestored(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		tombstone := journal.Head{Aggregate: user("1"), Version: 9, TruncatedBefore: 10, DeletedAt: time.UnixMilli(5).UTC()}
		truncated := journal.Head{Aggregate: user("2"), Version: 9, TruncatedBefore: 10, Snapshot: &journal.Snapshot{Number: 9, Payload: []byte("s")}}
		for _, want := range []journal.Head{tombstone, truncated} {
			for range 2 {
				_, err := s.Restore(t.Context(), storage.Restoration{Head: want})
				require.NoError(t, err)
			}
			head := mustHead(t, s, want.Aggregate)
			assert.Equal(t, want, head)
		}
		tombstone.Version, tombstone.TruncatedBefore = 10, 11
		_, err := s.Restore(t.Context(), storage.Restoration{Head: tombstone})
		require.ErrorAs(t, err, new(*journal.DeletedError))
		_, err = s.Restore(t.Context(), restoration(user("1"), 9, old(user("1"), 10, 1)))
		require.ErrorAs(t, err, new(*journal.DeletedError))
	})
}

func TestAForeignSnapshotIsRestored(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		r := restoration(user("1"), 0, old(user("1"), 1, 3))
		r.Head.Snapshot = &journal.Snapshot{Number: 0, Payload: []byte("theirs")}
		receipt, err := s.Restore(t.Context(), r)
		require.NoError(t, err)

		head := mustHead(t, s, user("1"))
		assert.Equal(t, r.Head, head)
		assert.False(t, receipt.SnapshotLeftOut)
	})
}

func TestASnapshotThatStandsForTruncatedEventsIsNotLeftOut(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		r := restoration(user("1"), 0, old(user("1"), 1, 3))
		r.Head.Snapshot = &journal.Snapshot{Number: 3, Payload: make([]byte, storage.MaxItemBytes)}
		receipt, err := s.Restore(t.Context(), r)
		require.NoError(t, err)
		assert.True(t, receipt.SnapshotLeftOut)

		r = storage.Restoration{
			Head:    journal.Head{Aggregate: user("2"), Version: 3, TruncatedBefore: 3, Snapshot: r.Head.Snapshot},
			Records: old(user("2"), 3, 1),
		}
		_, err = s.Restore(t.Context(), r)
		require.ErrorAs(t, err, new(*journal.TooLargeError))
		s.requireNothingWritten(t, user("2"))
	})
}

func TestARestorationSaysThatItsSnapshotWasOfAnEarlierSchema(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		s.covered(t, user("1"), 4)
		require.NoError(t, s.Truncate(t.Context(), user("1"), 4, journal.RemoveOptions{}))
		r := restoration(user("1"), 4, old(user("1"), 5, 1))
		r.Head.Snapshot = &journal.Snapshot{Number: 5, Payload: []byte("older"), Schema: 2}

		receipt, err := s.Restore(t.Context(), r)

		require.NoError(t, err)
		assert.EqualValues(t, 5, receipt.Version)
		assert.True(t, receipt.SnapshotLeftOut)
		require.ErrorIs(t, receipt.SnapshotError, storage.ErrOldSchema)
		assert.Equal(t, journal.Head{Aggregate: user("1"), Version: 5, Snapshot: stateAt(4), TruncatedBefore: 4}, s.head(t, user("1")))
	})
}

func TestARestorationThatCannotBeIsRefused(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		x := user("1")
		with := func(change func(r *storage.Restoration)) storage.Restoration {
			r := restoration(x, 0, old(x, 1, 3))
			change(&r)
			return r
		}
		deleted := time.UnixMilli(1)
		for name, c := range map[string]struct {
			r    storage.Restoration
			want any
		}{
			"no aggregate":                 {storage.Restoration{}, new(*aggregate.InvalidIDError)},
			"no events":                    {restoration(x, 4, nil), journal.ErrInvalidCommit},
			"nothing at all":               {storage.Restoration{Head: journal.Head{Aggregate: x, Version: 1}}, journal.ErrInvalidCommit},
			"too many":                     {restoration(x, 0, old(x, 1, 100)), new(*journal.TooLargeError)},
			"another version":              {with(func(r *storage.Restoration) { r.Head.Version = 4 }), journal.ErrInvalidCommit},
			"a gap":                        {with(func(r *storage.Restoration) { r.Records[1].Number = 3 }), journal.ErrInvalidCommit},
			"another aggregate":            {with(func(r *storage.Restoration) { r.Records[1].Aggregate = user("2") }), journal.ErrInvalidCommit},
			"a record that is nil":         {with(func(r *storage.Restoration) { r.Records[1] = nil }), journal.ErrInvalidCommit},
			"not UTF-8":                    {with(func(r *storage.Restoration) { r.Records[1].EventType = "\xff" }), journal.ErrInvalidCommit},
			"a snapshot ahead":             {with(func(r *storage.Restoration) { r.Head.Snapshot = &journal.Snapshot{Number: 4} }), journal.ErrInvalidCommit},
			"a tombstone of events":        {with(func(r *storage.Restoration) { r.Head.DeletedAt = deleted }), journal.ErrInvalidCommit},
			"an event too large":           {with(func(r *storage.Restoration) { r.Records[1].Payload = make([]byte, storage.MaxItemBytes) }), new(*journal.TooLargeError)},
			"events too large":             {restoration(x, 0, large(x, 12)), new(*journal.TooLargeError)},
			"a number beyond uint64":       {restoration(x, math.MaxUint64, old(x, 0, 1)), new(*journal.VersionError)},
			"truncated beyond its version": {with(func(r *storage.Restoration) { r.Expected, r.Head.TruncatedBefore = 0, 9 }), journal.ErrInvalidCommit},
		} {
			_, err := s.Restore(t.Context(), c.r)
			requireKind(t, err, c.want, name)
			s.requireNothingWritten(t, x)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Restore(ctx, restoration(x, 0, old(x, 1, 1)))
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestARestorationOfAHugeVersionIsRefused(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for _, version := range []uint64{1<<53 + 1, 1 << 62, 1<<62 + 1, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
			x := user("1")
			events := restoration(x, 0, old(x, 1, 1))
			events.Head.Version, events.Head.TruncatedBefore = version, version
			events.Head.Snapshot, events.Records[0].Number = stateAt(version-1), version
			stone := storage.Restoration{Head: journal.Head{
				Aggregate: x, Version: version, TruncatedBefore: version + 1, DeletedAt: time.UnixMilli(1),
			}}
			for _, r := range []storage.Restoration{events, stone} {
				_, err := s.Restore(t.Context(), r)

				var refused *journal.VersionError
				require.ErrorAs(t, err, &refused, "version %d", version)
				s.requireNothingWritten(t, x)
			}
		}
	})
}

func TestAnAggregateOfTheHighestRestoredVersionGoesOn(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		const version = 1 << 53
		x := user("1")
		_, err := s.Restore(t.Context(), storage.Restoration{Head: journal.Head{
			Aggregate: x, Version: version, TruncatedBefore: version, Snapshot: stateAt(version),
		}, Records: old(x, version, 1)})
		require.NoError(t, err)

		s.write(t, x, version+1, 2)

		assert.EqualValues(t, version+2, s.head(t, x).Version)
	})
}

func TestATombstoneOfTheHighestRestoredVersionIsRestored(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		const version = 1 << 53
		x := user("1")
		stone := journal.Head{Aggregate: x, Version: version, TruncatedBefore: version + 1, DeletedAt: time.UnixMilli(1)}

		_, err := s.Restore(t.Context(), storage.Restoration{Head: stone})

		require.NoError(t, err)
		assert.EqualValues(t, version, s.head(t, x).Version)
	})
}

func large(id aggregate.ID, n int) []*journal.Record {
	records := old(id, 1, n)
	for _, r := range records {
		r.Payload = make([]byte, 390_000)
	}
	return records
}

func TestRecordsAreEqualInAllThatIsStored(t *testing.T) {
	t.Parallel()
	record := func() *journal.Record { return old(user("1"), 1, 1)[0] }
	same := record()
	same.Payload, same.Metadata = bytes.Clone(same.Payload), maps.Clone(same.Metadata)
	same.OccurredAt = same.OccurredAt.In(time.FixedZone("", 3600)).Add(time.Microsecond)
	assert.True(t, record().Equal(same))
	for name, change := range map[string]func(*journal.Record){
		"aggregate": func(r *journal.Record) { r.Aggregate = user("2") },
		"number":    func(r *journal.Record) { r.Number++ },
		"id":        func(r *journal.Record) { r.EventID = "" },
		"type":      func(r *journal.Record) { r.EventType = "" },
		"commit":    func(r *journal.Record) { r.CommitID = "" },
		"time":      func(r *journal.Record) { r.OccurredAt = r.OccurredAt.Add(time.Millisecond) },
		"payload":   func(r *journal.Record) { r.Payload = nil },
		"metadata":  func(r *journal.Record) { r.Metadata = nil },
	} {
		other := record()
		change(other)
		assert.False(t, record().Equal(other), name)
	}
}

// Archives have no command ids, but the journal may have its own.
func TestPackedARestorationKeepsCommandIDs(t *testing.T) {
	t.Parallel()
	s := setup(t, packed)
	records := old(user("1"), 1, 9)
	_, err := s.Restore(t.Context(), restoration(user("1"), 0, records[:3]))
	require.NoError(t, err)
	mustAppend(t, s, storage.Commit{Aggregate: user("1"), Expected: 3, Events: events(4, 1), CommandID: "pay"})
	mustAppend(t, s, storage.Commit{Aggregate: user("1"), Expected: 4, CommandID: "look"})

	next := restoration(user("1"), 4, records[4:])
	next.Head.Snapshot = &journal.Snapshot{Number: 9, Payload: []byte("{}")}
	receipt, err := s.Restore(t.Context(), next)
	require.NoError(t, err, "also where a command without events was noted")
	require.NoError(t, receipt.SnapshotError)
	for _, id := range []string{"pay", "look"} {
		s.requireKnown(t, user("1"), id)
		_, err = s.Append(t.Context(), storage.Commit{Aggregate: user("1"), Expected: 9, Events: events(10, 1), CommandID: id})
		assert.ErrorAs(t, err, new(*journal.DuplicateCommandError), id)
	}
}

func TestPackedARestorationBeginsWhereACommandWasNoted(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]journal.Head{
		"with events":   {Version: 2},
		"without":       {Version: 2, TruncatedBefore: 3, DeletedAt: time.UnixMilli(5)},
		"truncated all": {Version: 2, TruncatedBefore: 2, Snapshot: &journal.Snapshot{Number: 2, Payload: []byte("{}")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, packed)
			mustAppend(t, s, storage.Commit{Aggregate: user("1"), CommandID: "look"})
			head.Aggregate = user("1")
			_, err := s.Restore(t.Context(), storage.Restoration{Head: head, Records: old(user("1"), 1, 2)[max(1, head.TruncatedBefore)-1:]})
			require.NoError(t, err)
			s.requireKnown(t, user("1"), "look")
		})
	}
}
