package journal_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// newest collects the records that a journal yields, and the errors of single events.
func newest(t *testing.T, j *engine.Engine, limit int) (records []*journal.Record, errs []error) {
	t.Helper()
	for r, err := range j.Newest(t.Context(), "user-account", limit) {
		if err != nil {
			assert.Nil(t, r, "an error comes without a record")
			errs = append(errs, err)
			continue
		}
		records = append(records, r)
	}
	return records, errs
}

func TestNewestYieldsTheLastEventsOfEachShardNewestFirst(t *testing.T) {
	t.Parallel()
	for name, config := range configs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := inMemory(t, config)
			for n := range 60 {
				db.Clock().Advance(time.Millisecond)
				s.write(t, user(fmt.Sprint(n%9)), n/9+1, 1)
			}
			s.write(t, aggregate.ID{Type: "user", Value: "other"}, 1, 1)
			all, _ := topicTail(t, s.Engine, time.Time{})
			slices.Reverse(all)
			require.Len(t, all, 60)
			for _, pages := range []int{1_000, 3, 1} {
				db.Inject(dynamotest.SmallPages(pages))
				for _, limit := range []int{1, 2, 5, 1_000} {
					var want []*journal.Record
					perShard := map[int]int{}
					for _, r := range all {
						if shard := s.Shard(r.Aggregate); perShard[shard] < limit {
							perShard[shard]++
							want = append(want, r)
						}
					}

					got, errs := newest(t, s.Engine, limit)

					require.Empty(t, errs)
					assert.Equal(t, want, got, "limit %d, pages of %d", limit, pages)
				}
			}
		})
	}
}

func TestNewestYieldsTheLastEventOfACommitFirst(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 12)

		records, errs := newest(t, s.Engine, 12)

		require.Empty(t, errs)
		slices.Reverse(records)
		requireNumbers(t, records, 1, 12)
	})
}

func TestNewestYieldsEventsOfTheFutureFirst(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.clock.advance(time.Hour)
		s.write(t, user("ahead"), 1, 1)
		s.clock.advance(-time.Hour)
		s.write(t, user("now"), 1, 1)

		records, errs := newest(t, s.Engine, 5)

		require.Empty(t, errs)
		assert.Equal(t, []string{"ahead/1", "now/1"}, places(records))
	})
}

// Large events are not in the tail index of the packed layout, and are read when they are needed.
func TestNewestReadsLargeEventsAsTheyAreNeeded(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{Layout: journal.Packed})
	const count = 120
	for n := range count {
		db.Clock().Advance(time.Millisecond)
		mustAppend(t, s, storage.Commit{
			Aggregate: user(fmt.Sprint(n % 9)), Expected: uint64(n / 9), Events: []storage.Event{{Type: "large", Payload: noise(n, 7_900)}},
		})
	}
	all, _ := topicTail(t, s.Engine, time.Time{})
	slices.Reverse(all)
	full, whole := journal.CountUnits(t.Context())
	var got []*journal.Record
	for r, err := range s.Newest(full, "user-account", count) {
		require.NoError(t, err)
		got = append(got, r)
	}
	assert.Equal(t, all, got)

	first, some := journal.CountUnits(t.Context())
	for r, err := range s.Newest(first, "user-account", count) {
		require.NoError(t, err)
		assert.Equal(t, all[0], r)
		break
	}
	assert.InDelta(t, count-50, whole.Read()-some.Read(), 0.001, "a unit for each of the events after the first 50")
}

func TestNewestReadsPartitionsThatTheTailHasGrown(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{Layout: journal.Packed, Shards: 2})
	write := func(version int) {
		for n := range 20 {
			db.Clock().Advance(time.Millisecond)
			s.write(t, user(fmt.Sprint(n)), version, 1)
		}
	}
	write(1)
	_, err := s.GrowTail(t.Context(), 8)
	require.NoError(t, err)
	db.Clock().Advance(11 * time.Minute)
	write(2)
	all, _ := topicTail(t, s.Engine, time.Time{})
	slices.Reverse(all)

	got, errs := newest(t, s.Engine, 40)

	require.Empty(t, errs)
	assert.Equal(t, all, got)
	ctx, units := journal.CountUnits(t.Context())
	for _, err := range s.Newest(ctx, "nobody", 10) {
		require.NoError(t, err)
	}
	assert.InDelta(t, 8*0.5, units.Read(), 0.001, "half a unit for each partition")
}

func TestNewestGoesOnAfterEventsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	failing := &wrapped{name: "a"}
	s := setup(t, journal.Config{Encodings: []journal.Encoding{failing}})
	for n := range 3 {
		s.clock.advance(time.Millisecond)
		mustAppend(t, s, storage.Commit{Aggregate: user(fmt.Sprint(n)), Events: []storage.Event{{Payload: []byte("short")}}})
	}
	s.change(t, s.Config().Tables.Journal, s.keyOf(user("0"), 1), item{s.Engine.Config.Attributes.Payload: nil})
	s.change(t, s.Config().Tables.Journal, s.keyOf(user("1"), 1), item{"encoding": text("unknown")})

	records, errs := newest(t, s.Engine, 5)

	assert.Equal(t, []string{"2/1"}, places(records))
	require.Len(t, errs, 2)
	require.ErrorAs(t, errs[0], new(*journal.CorruptItemError))
	require.ErrorAs(t, errs[1], new(*journal.EncodingError))
	raw, errs := newest(t, s.Engine.Raw(), 5)
	require.Len(t, errs, 1)
	assert.Equal(t, []string{"2/1", "1/1"}, places(raw))
	assert.Equal(t, "unknown", raw[1].Encoding, "as it is stored")
}

func TestNewestYieldsWhatIsCorruptInThePackedLayout(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{Layout: journal.Packed})
	s.write(t, user("1"), 1, 1)
	s.write(t, user("2"), 1, 1)
	s.change(t, s.Config().Tables.Journal, s.keyOf(user("1"), 1), item{"c": text("?")})

	records, errs := newest(t, s.Engine, 5)

	assert.Equal(t, []string{"2/1"}, places(records))
	require.Len(t, errs, 1)
	require.ErrorAs(t, errs[0], new(*journal.CorruptItemError))
}

func TestNewestReadsOnlyTheEndOfTheTail(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		s, _ := inMemory(t, journal.Config{Layout: layout, Shards: 2})
		for n := range 300 {
			s.write(t, user(fmt.Sprint(n)), 1, 1)
		}
		ctx, units := journal.CountUnits(t.Context())
		found := 0
		for _, err := range s.Newest(ctx, "user-account", 10) {
			require.NoError(t, err)
			found++
		}
		assert.Equal(t, 20, found)
		assert.LessOrEqual(t, units.Read(), 2*1.0, "10 entries of up to 0.8 KB of each shard")
		assert.Equal(t, 2, units.Requests())
	}
}

func TestNewestEndsWithItsReaderOrAnError(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.write(t, user("1"), 1, 3)
		count := 0
		for _, err := range s.Newest(t.Context(), "user-account", 3) {
			require.NoError(t, err)
			count++
			break
		}
		assert.Equal(t, 1, count)

		ended, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, last(s.Newest(ended, "user-account", 3)), context.Canceled)
		require.ErrorAs(t, last(s.Newest(t.Context(), "", 3)), new(*aggregate.InvalidIDError))
		for _, limit := range []int{0, -1} {
			require.ErrorAs(t, last(s.Newest(t.Context(), "user-account", limit)), new(*journal.ConfigError))
		}
	})
}
