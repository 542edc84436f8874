package journal_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// Writers and readers learn of new partitions at different times. Readers crash and continue at the
// time up to which they have read. No event is missed.
func TestPackedNoEventIsMissedWhileTheTailGrows(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		for seed := range uint64(8) {
			r := rand.New(rand.NewPCG(seed, 7))
			s, db := inMemory(t, journal.Config{Layout: journal.Packed, Shards: 2})
			open := func() *engine.Engine {
				return s.through(t, s.client)
			}
			writers, readers := []*engine.Engine{open(), open(), open()}, []*engine.Engine{open(), open()}
			versions := map[aggregate.ID]uint64{}
			cursors := make([]storage.Cursor, 2)
			seen := map[string]bool{}
			read := func() {
				for shard := range cursors {
					reader := readers[shard]
					for more := true; more; {
						page, err := reader.TailShard(t.Context(), storage.TailQuery{AggregateType: "user-account", Shard: shard, After: cursors[shard], Limit: 1 + r.IntN(20)})
						require.NoError(t, err)
						for _, record := range page.Records {
							seen[fmt.Sprint(record.Aggregate.Value, "/", record.Number)] = true
						}
						cursors[shard], more = page.Next, page.More
					}
				}
			}
			grown := 2
			for range 300 {
				switch r.IntN(10) {
				case 0:
					if _, err := writers[r.IntN(len(writers))].GrowTail(t.Context(), grown*2); err == nil {
						grown *= 2
					} else {
						require.ErrorAs(t, err, new(*journal.ConfigError))
					}
				case 1:
					// A reader crashes. Another one continues at the stored time.
					shard := r.IntN(2)
					readers[shard] = open()
					cursors[shard] = storage.Cursor{OccurredAt: cursors[shard].OccurredAt}
				case 2:
					writers[r.IntN(len(writers))] = open()
				case 3:
					db.Clock().Advance(time.Duration(r.IntN(240)) * time.Second)
				case 4, 5:
					db.Clock().Advance(time.Duration(r.IntN(2000)) * time.Millisecond)
					read()
				default:
					id := user(fmt.Sprint(r.IntN(40)))
					receipt := mustAppend(t, writers[r.IntN(len(writers))], storage.Commit{
						Aggregate: id, Expected: versions[id], Proven: true, Events: events(int(versions[id])+1, 1+r.IntN(2)),
					})
					versions[id] = receipt.Version
				}
			}
			read()
			for id, version := range versions {
				for n := uint64(1); n <= version; n++ {
					require.True(t, seen[fmt.Sprint(id.Value, "/", n)], "seed %d: event %d of %s, %d partitions", seed, n, id, grown)
				}
			}
			var all int
			for record, err := range open().Tail(t.Context(), "user-account", time.Time{}) {
				require.NoError(t, err)
				require.NotNil(t, record)
				all++
			}
			require.Len(t, seen, all)
		}
	})
}

func TestPackedAReaderThatCannotLearnOfNewPartitionsReadsNoTail(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{Layout: journal.Packed, Shards: 2})
	s.write(t, user("1"), 1, 1)
	query := storage.TailQuery{AggregateType: user("1").Type, Shard: s.Shard(user("1"))}
	calm := db.Inject(dynamotest.Throttle(), dynamotest.On("GetItem"))
	db.Clock().Advance(4 * time.Minute)
	_, err := s.TailShard(t.Context(), query)
	require.NoError(t, err, "nothing can be in a new partition yet")
	db.Clock().Advance(2 * time.Minute)
	_, err = s.TailShard(t.Context(), query)
	require.ErrorIs(t, err, journal.ErrThrottled)
	_ = calm
}

func TestPackedTheTailGrowsToPowersOfTwoOnceAtATime(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{Layout: journal.Packed, Shards: 3})
	for _, partitions := range []int{-1, 0, 2, 3, 4, 9, 3 << 20} {
		_, err := s.GrowTail(t.Context(), partitions)
		require.ErrorAs(t, err, new(*journal.ConfigError), partitions)
	}
	since, err := s.GrowTail(t.Context(), 12)
	require.NoError(t, err)
	assert.Equal(t, db.Clock().Now().Add(10*time.Minute).UnixMilli(), since.UnixMilli())
	_, err = s.GrowTail(t.Context(), 24)
	require.ErrorContains(t, err, "let them grow again after")
	db.Clock().Advance(20 * time.Minute)
	_, err = s.GrowTail(t.Context(), 24)
	require.NoError(t, err)
	partitions, err := s.through(t, s.client).TailPartitions(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 24, partitions)

	classic, _ := inMemory(t, journal.Config{})
	_, err = classic.GrowTail(t.Context(), 14)
	require.ErrorAs(t, err, new(*journal.ConfigError))
}

func TestPackedAProcessOfBeforeARestoreWritesNothing(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s, db := inMemory(t, journal.Config{Layout: journal.Packed})
		s.write(t, user("1"), 1, 1)
		require.NoError(t, journal.MarkRestored(t.Context(), s.client, s.Config()))
		db.Clock().Advance(2 * time.Minute)

		_, err := s.proven(t, user("1"), 1, 1)
		require.ErrorIs(t, err, journal.ErrRestored)
		_, err = s.proven(t, user("2"), 0, 1)
		require.ErrorIs(t, err, journal.ErrRestored)
		s.Engine = s.through(t, s.client)
		_, err = s.proven(t, user("1"), 1, 1)
		require.NoError(t, err)
	})
}

func TestPackedWritersLearnOfNewPartitions(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s, db := inMemory(t, journal.Config{Layout: journal.Packed, Shards: 1})
		_, err := s.through(t, s.client).GrowTail(t.Context(), 8)
		require.NoError(t, err)
		db.Clock().Advance(11 * time.Minute)
		used := map[string]bool{}
		for n := range 40 {
			s.write(t, user(fmt.Sprint(n)), 1, 1)
			it := s.get(t, s.Config().Tables.Journal, s.packedKey(user(fmt.Sprint(n)), "1"))
			used[fmt.Sprint(it["p"])] = true
		}
		assert.Greater(t, len(used), 4)
	})
}

func TestPackedAReportOfAProcessThatWasIdleHasNewPartitions(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s, db := inMemory(t, journal.Config{Layout: journal.Packed, Shards: 1})
		idle := s.through(t, s.client)
		_, err := s.GrowTail(t.Context(), 8)
		require.NoError(t, err)
		db.Clock().Advance(11 * time.Minute)
		for n := range 20 {
			s.write(t, user(fmt.Sprint(n)), 1, 1)
		}
		found := 0
		for _, err := range idle.Tail(t.Context(), user("").Type, time.Time{}) {
			require.NoError(t, err)
			found++
		}
		assert.Equal(t, 20, found)
		idle = s.through(t, s.client)
		_, err = s.through(t, s.client).GrowTail(t.Context(), 16)
		require.ErrorContains(t, err, "again after")
		for stray, err := range idle.Strays(t.Context(), "") {
			require.NoError(t, err)
			assert.Fail(t, "an item is in its place", stray)
		}
	})
}

// A process that wakes up reads the descriptor once for all of its requests. No request waits
// longer than it may.
func TestPackedADescriptorThatCannotBeReadHoldsUpNobodyForLong(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s, db := inMemory(t, journal.Config{Layout: journal.Packed, Shards: 1})
		db.Clock().Advance(time.Hour)
		hung := db.Inject(dynamotest.Pause(func(ctx context.Context) { <-ctx.Done() }), dynamotest.On("GetItem"))
		began := time.Now()
		var all sync.WaitGroup
		for n := range 50 {
			all.Add(1)
			go func() {
				defer all.Done()
				ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
				defer cancel()
				if n%2 == 0 {
					_, err := s.TailShard(ctx, storage.TailQuery{AggregateType: "user-account"})
					assert.Error(t, err)
					return
				}
				_, err := s.Append(ctx, storage.Commit{Aggregate: user(fmt.Sprint(n)), Proven: true, Events: events(1, 1)})
				assert.NoError(t, err)
			}()
		}
		all.Wait()
		assert.Less(t, time.Since(began), 4*time.Second)
		assert.Less(t, hung.Fired(), 4)

		for n := range 20 {
			time.Sleep(1100 * time.Millisecond) // in the bubble: until it is read again
			began = time.Now()
			_, err := s.Append(context.Background(), storage.Commit{Aggregate: user(fmt.Sprint(100 + n)), Proven: true, Events: events(1, 1)})
			require.NoError(t, err)
			assert.Less(t, time.Since(began), time.Second, "writers do not wait for it again")
		}
		time.Sleep(3 * time.Second) // until the last read has ended
	})
}

// None of the first requests of an idle process may use outdated information.
func TestPackedNoneOfManyCommitsOfAnIdleProcessPassesARestore(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s, db := inMemory(t, journal.Config{Layout: journal.Packed})
		s.write(t, user("1"), 1, 1)
		require.NoError(t, journal.MarkRestored(t.Context(), s.client, s.Config()))
		db.Clock().Advance(time.Hour)
		db.Inject(dynamotest.Latency(10*time.Millisecond, 20*time.Millisecond), dynamotest.On("GetItem"))
		var all sync.WaitGroup
		for n := range 20 {
			all.Add(1)
			go func() {
				defer all.Done()
				_, err := s.Append(context.Background(), storage.Commit{Aggregate: user(fmt.Sprint(100 + n)), Expected: 5, Proven: true, Events: events(6, 1)})
				assert.ErrorIs(t, err, journal.ErrRestored)
			}()
		}
		all.Wait()
	})
}
