package groups_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// park lists an aggregate as parked by an event, like an owner with epoch 1.
func (s store) park(t *testing.T, id string, number uint64, reason string) {
	t.Helper()
	require.NoError(t, checkpoint.New(s.Journal).ListBehind(t.Context(), checkpoint.Group{Name: group}, checkpoint.Revision{Epoch: 1},
		checkpoint.Behind{Aggregate: account(id), Head: number, Parked: &checkpoint.Failure{Number: number, At: time.Now(), Reason: reason}}))
}

// owned creates a group of one member that owns all shards, with epoch 1.
func (s store) owned(t *testing.T) {
	t.Helper()
	membership, member := checkpoint.NewMembership(s.Shards(), time.Time{}).Join(checkpoint.Member{Lease: time.Hour})
	var all []int
	for n := range s.Shards() {
		all = append(all, n)
	}
	_, err := checkpoint.New(s.Journal).ChangeMembership(t.Context(), checkpoint.Key{Group: group, Topic: topic}, checkpoint.Membership{}, membership.Take(member, all))
	require.NoError(t, err)
}

// epochs returns the epochs of the shards.
func (s store) epochs(t *testing.T) (epochs []uint64) {
	t.Helper()
	g := mustGet(t, s)
	for _, shard := range g.Shards {
		epochs = append(epochs, shard.Epoch)
	}
	return epochs
}

// manyParked returns a group on 4 shards with some parked aggregates of one event each.
func manyParked(t *testing.T, aggregates int) (*dynamotest.DB, store) {
	t.Helper()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 4}))
	s := open(t, db.Client(), journal.Config{})
	s.owned(t)
	for n := range aggregates {
		id := fmt.Sprint("a", n)
		s.write(t, id, 0, 1)
		s.park(t, id, 1, "it fails")
	}
	return db, s
}

func TestManyAggregatesAreUnparkedAtAProportionalCost(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		const aggregates = 2000
		db, s := manyParked(t, aggregates)
		recording := db.Record()
		defer recording.Stop()

		require.NoError(t, s.Unpark(t.Context(), group, account("a0")))
		read, write := recording.Units()
		assert.LessOrEqual(t, read, 8.0, "one aggregate")
		assert.InDelta(t, 3, write, 0.1, "one aggregate: the membership twice and an entry")
		before := s.epochs(t)
		recording.Reset()

		done, err := s.UnparkAll(t.Context(), groups.Selection{})

		require.NoError(t, err)
		assert.Equal(t, aggregates-1, done)
		read, write = recording.Units()
		assert.InDelta(t, aggregates-1+4*2, write, aggregates/100, "an entry each, and the membership twice for each shard; and heartbeats, if it takes long")
		assert.Less(t, read, 2*aggregates/20.0+4*10, "two reads of the list, and the rosters")
		for shard, epoch := range s.epochs(t) {
			assert.Equal(t, before[shard]+1, epoch, "one takeover of shard %d", shard)
		}
		s.parked(t, 0)
		list, err := collect(s.Behind(t.Context(), aggregate.ID{}))
		require.NoError(t, err)
		assert.Len(t, list, aggregates, "the next owners look at all of them")

		done, err = s.UnparkAll(t.Context(), groups.Selection{})
		require.NoError(t, err)
		assert.Zero(t, done)
		for shard, epoch := range s.epochs(t) {
			assert.Equal(t, before[shard]+1, epoch, "shard %d has no work and is not taken", shard)
		}
	})
}

func TestManyEventsAreSkippedAtAProportionalCost(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		const aggregates = 400
		db, s := manyParked(t, aggregates)
		recording := db.Record()
		defer recording.Stop()

		done, err := s.SkipAll(t.Context(), groups.Selection{})

		require.NoError(t, err)
		assert.Equal(t, aggregates, done)
		read, write := recording.Units()
		assert.InDelta(t, 6*aggregates+4*2, write, 0.1, "a transaction of three rows each, and the membership twice for each shard")
		assert.Less(t, read, 2.2*aggregates+4*10, "its event and its position each")
		for shard, epoch := range s.epochs(t) {
			assert.EqualValues(t, 2, epoch, "one takeover of shard %d", shard)
		}
		assert.Len(t, s.skipped(t), aggregates)
		lag, err := s.Lag(t.Context(), groups.LagOptions{})
		require.NoError(t, err)
		assert.Zero(t, lag.Events)
	})
}

func TestParkedAggregatesAreSelectedByReasonAndEventType(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	s.owned(t)
	for id, eventType := range map[string]string{"a": "opened", "b": "closed", "c": "closed"} {
		testjournal.Append(t, s.Journal, storage.Commit{
			Aggregate: account(id), Events: []storage.Event{{Type: eventType}},
		})
	}
	s.park(t, "a", 1, "mail server: timeout")
	s.park(t, "b", 1, "mail server: timeout")
	s.park(t, "c", 1, "no such customer")
	edited := func(all func(context.Context, groups.Selection) (int, error), selection groups.Selection) (ids []string) {
		selection.Edited = func(id aggregate.ID, number uint64) {
			assert.EqualValues(t, 1, number)
			ids = append(ids, id.Value)
		}
		done, err := all(t.Context(), selection)
		require.NoError(t, err)
		assert.Equal(t, len(ids), done)
		return ids
	}

	assert.Empty(t, edited(s.UnparkAll, groups.Selection{Reason: "mail", EventType: "renamed"}))
	assert.Equal(t, []uint64{1, 1}, s.epochs(t), "no shard is taken")
	assert.Equal(t, []string{"b"}, edited(s.UnparkAll, groups.Selection{Reason: "mail", EventType: "closed"}))
	assert.Equal(t, []string{"c"}, edited(s.SkipAll, groups.Selection{EventType: "closed"}))
	assert.Equal(t, []string{"c/1"}, s.skippedNames(t))
	assert.Equal(t, "closed", s.skipped(t)[0].EventType)
	assert.Equal(t, []string{"a"}, edited(s.SkipAll, groups.Selection{Reason: "timeout"}))
	s.parked(t, 0)
}

func TestMembersGoOnAfterEditsOfManyAggregates(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 2)
		config := s.quick()
		config.Failures = subscriber.Park(1)
		var got handled
		refuse := func(payload string) bool { return slices.Contains([]string{"a/1", "b/1", "c/2", "d/2"}, payload) }
		got.consume(t, config, refuse)
		got.consume(t, config, refuse)
		for _, id := range []string{"a", "b", "c", "d"} {
			s.write(t, id, 0, 3)
		}
		s.parked(t, 4)
		for _, id := range []string{"c", "d"} {
			s.waitApplied(t, id, 1) // so that no member handles it again after the skip
		}

		done, err := s.SkipAll(t.Context(), groups.Selection{})
		require.NoError(t, err)
		assert.Equal(t, 4, done)
		s.caughtUp(t)
		assert.Equal(t, expect("a", 2, 3), got.of("a"))
		assert.Equal(t, []string{"c/1", "c/3"}, got.of("c"))

		assert.Len(t, s.skipped(t), 4)
	})
}

func TestUnparkedAggregatesAreTriedAgain(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 2)
		config := s.quick()
		config.Failures = subscriber.Park(1)
		var mended atomic.Bool
		var got handled
		got.consume(t, config, func(string) bool { return !mended.Load() })
		for n := range 10 {
			s.write(t, fmt.Sprint(n), 0, 2)
		}
		s.parked(t, 10)

		mended.Store(true)
		done, err := s.UnparkAll(t.Context(), groups.Selection{})

		require.NoError(t, err)
		assert.Equal(t, 10, done)
		s.caughtUp(t)
		for n := range 10 {
			assert.Equal(t, expect(fmt.Sprint(n), 1, 2), got.of(fmt.Sprint(n)))
		}
	})
}

func TestEditsOfManyGoOnUnderThrottling(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db, s := manyParked(t, 200)
		throttled := open(t, db.Client(testdb.Once), journal.Config{})
		throttling := db.Inject(dynamotest.Throttle(), dynamotest.On("UpdateItem", "TransactWriteItems"), dynamotest.Chance(0.2))
		before := s.epochs(t)

		var done int
		for calls := 0; done < 200 && calls < 10; calls++ { // the membership is written rarely
			n, err := throttled.UnparkAll(t.Context(), groups.Selection{})
			if err != nil {
				require.ErrorIs(t, err, journal.ErrThrottled)
			}
			done += n
		}

		assert.Equal(t, 200, done, "each of them once")
		assert.NotZero(t, throttling.Fired())
		for shard, epoch := range s.epochs(t) {
			assert.LessOrEqual(t, epoch, before[shard]+2, "shard %d changes hands only where it has work", shard)
		}
		s.parked(t, 0)
	})
}

func TestWhatWasEditedBeforeAnOutageIsKept(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		for name, all := range map[string]func(store, context.Context, groups.Selection) (int, error){
			"unpark": store.UnparkAll, "skip": store.SkipAll,
		} {
			db, s := manyParked(t, 100)
			var edits atomic.Int64
			outage := db.Inject(dynamotest.Throttle(), dynamotest.Table("checkpoint"),
				dynamotest.Matching(func(string, any) bool { return edits.Load() >= 40 }))
			first, err := all(s, t.Context(), groups.Selection{Edited: func(aggregate.ID, uint64) { edits.Add(1) }})
			require.ErrorIs(t, err, journal.ErrThrottled, name)
			assert.GreaterOrEqual(t, first, 40, name)
			assert.Less(t, first, 100, name)
			assert.Less(t, outage.Fired(), 16*11*3*5, "%s: it gives up", name)
			outage.Remove()

			rest, err := all(s, t.Context(), groups.Selection{})

			require.NoError(t, err, name)
			assert.Equal(t, 100, first+rest, name)
			s.parked(t, 0)
		}
	})
}

func TestAnEditOfManyTakesAShardAgainThatWasTakenAway(t *testing.T) {
	t.Parallel()
	db, s := manyParked(t, 40)
	store, k := checkpoint.New(s.Journal), checkpoint.Key{Group: group, Topic: topic}
	var edits atomic.Int64
	var seen []checkpoint.Behind
	taken := db.Inject(dynamotest.PauseReply(func(ctx context.Context) {
		membership, err := store.ModifyMembership(ctx, k, func(r checkpoint.Membership) (checkpoint.Membership, error) { return r.Take(1, []int{0}), nil })
		assert.NoError(t, err)
		progress, err := store.Progress(ctx, checkpoint.Shard{Group: checkpoint.Group{Name: group}, Topic: topic})
		assert.NoError(t, err)
		assert.EqualValues(t, 3, membership.Epochs[0])
		seen = progress.Behind
	}), dynamotest.On("TransactWriteItems"), dynamotest.Times(1), dynamotest.Matching(func(string, any) bool { return edits.Load() == 0 }))

	done, err := s.SkipAll(t.Context(), groups.Selection{Edited: func(aggregate.ID, uint64) { edits.Add(1) }})

	require.NoError(t, err)
	assert.Equal(t, 1, taken.Fired())
	assert.NotEmpty(t, seen)
	assert.Equal(t, 40, done, "each counts once")
	assert.EqualValues(t, 4, s.epochs(t)[0], "the operator's, the member's, the operator's")
	assert.Len(t, s.skipped(t), 40)
	s.parked(t, 0)
}

func TestNothingIsSkippedThatTheGroupHasHandledMeanwhile(t *testing.T) {
	t.Parallel()
	r, operator, w := newRival(t)
	r.park(t, "x", 1, "it fails")
	w.before = func() {
		r.takeOver(t, 0, func(epoch uint64) { r.handle(t, epoch, 0, 1) })
	}

	done, err := operator.SkipAll(t.Context(), groups.Selection{})

	require.NoError(t, err)
	assert.Zero(t, done)
	assert.EqualValues(t, 1, r.position(t))
	assert.Empty(t, r.skipped(t))
}

func TestAFormerOwnersWriteIsRefusedOrNoticedByASkipOfMany(t *testing.T) {
	t.Parallel()
	r, operator, w := newRival(t)
	_, err := r.rows.ModifyMembership(t.Context(), rivalsWork, func(now checkpoint.Membership) (checkpoint.Membership, error) {
		return now.Take(r.member, []int{0}), nil
	})
	require.NoError(t, err)
	_, _, err = r.rows.Claim(t.Context(), rivals, account("x"), 1)
	require.NoError(t, err)
	r.park(t, "x", 1, "late")
	w.before = func() { // the former owner has not noticed the takeover
		w.before = func() {}
		r.handle(t, 1, 0, 2)
	}

	done, err := operator.SkipAll(t.Context(), groups.Selection{})

	require.NoError(t, err)
	assert.Zero(t, done, "it has handled the event after all")
	assert.EqualValues(t, 2, r.position(t))
	assert.Empty(t, r.skipped(t))

	r.park(t, "y", 1, "late")
	r.write(t, "y", 0, 2)
	done, err = operator.SkipAll(t.Context(), groups.Selection{})
	require.NoError(t, err)
	assert.Equal(t, 1, done)
	require.ErrorIs(t, r.rows.Advance(t.Context(), rivals, account("y"), 1, 0, 1), checkpoint.ErrFenced)
}

func TestASkipOfManyWhoseRepliesAreLostIsDoneOnce(t *testing.T) {
	t.Parallel()
	db, s := manyParked(t, 20)
	once := open(t, db.Client(testdb.Once), journal.Config{})
	lost := db.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Times(5))

	done, err := once.SkipAll(t.Context(), groups.Selection{})

	require.NoError(t, err)
	assert.Equal(t, 5, lost.Fired())
	assert.Equal(t, 20, done)
	assert.Len(t, s.skipped(t), 20)
}

func TestAnOperatorThatIsSlowKeepsItsShard(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		var got handled
		got.consume(t, s.quick(), nil)
		s.write(t, "x", 0, 1)
		s.caughtUp(t)
		k := checkpoint.Key{Group: group, Topic: topic}

		err := checkpoint.New(s.Journal).Operate(t.Context(), k, 0, func(ctx context.Context, _ checkpoint.Shard, _ checkpoint.Membership) error {
			time.Sleep(time.Minute) // in the bubble: many times the members' leases
			return ctx.Err()
		})

		require.NoError(t, err)
		assert.EqualValues(t, 2, s.epochs(t)[0])
		eventually(t, "the member continues", func() bool { return s.epochs(t)[0] == 3 })
	})
}

func TestNothingIsSkippedOfAGroupWithExternalPositions(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s, l, got := parkedWithExternalPositions(t)
		before := s.epochs(t)

		_, err := s.SkipAll(t.Context(), groups.Selection{})
		require.ErrorIs(t, err, groups.ErrExternalPositions)
		assert.Equal(t, before, s.epochs(t))

		l.put("x", 2)
		done, err := s.UnparkAll(t.Context(), groups.Selection{})
		require.NoError(t, err)
		assert.Equal(t, 1, done)
		eventually(t, "the group continues", func() bool { return len(got.of("x")) == 2 })
		_, err = s.Of("nobody", topic).UnparkAll(t.Context(), groups.Selection{})
		require.ErrorIs(t, err, groups.ErrNoGroup)
	})
}

func TestAnEditOfManyIsRepeatedWhereItsFirstReadIsThrottled(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
	s := open(t, db.Client(), journal.Config{})
	sub, _ := subscribe(t, s.alone())
	eventually(t, "the group has begun", func() bool { return len(sub.Shards()) == 1 })
	require.NoError(t, sub.Close())
	// The SDK makes three attempts.
	db.Inject(dynamotest.Throttle(), dynamotest.Table("checkpoint"), dynamotest.Times(3))

	_, err := s.UnparkAll(t.Context(), groups.Selection{})

	require.NoError(t, err)
}
