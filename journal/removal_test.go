package journal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// covered writes n events and a snapshot of the last one. In the packed layout each event is a
// separate commit, because commits are removed as a whole.
func (s store) covered(t *testing.T, id aggregate.ID, n int) {
	t.Helper()
	if !s.isPacked() {
		s.write(t, id, 1, n-1)
	}
	for i := 1; i < n && s.isPacked(); i++ {
		s.write(t, id, i, 1)
	}
	mustAppend(t, s, storage.Commit{
		Aggregate: id, Expected: uint64(n - 1), Events: events(n, 1), Snapshot: stateAt(uint64(n)),
	})
}

// numbers returns the numbers of an aggregate's events in the table, by their keys.
func (s store) numbers(t *testing.T, id aggregate.ID) []int {
	t.Helper()
	if s.isPacked() {
		return s.packedNumbers(t, id)
	}
	var found []int
	for _, it := range s.scan(t, s.Config().Tables.Journal) {
		if aid, ok := it[s.Engine.Config.Attributes.AggregateID].(*types.AttributeValueMemberS); !ok || aid.Value != id.String() {
			continue
		}
		var n int
		_, err := fmt.Sscan(it[s.Engine.Config.Attributes.SequenceNumber].(*types.AttributeValueMemberN).Value, &n)
		require.NoError(t, err)
		found = append(found, n)
	}
	slices.Sort(found)
	return found
}

func numbersFrom(from, to int) (numbers []int) {
	for n := from; n <= to; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

func (s store) head(t *testing.T, id aggregate.ID) journal.Head {
	t.Helper()
	head := mustHead(t, s, id)
	return head
}

// eachLayout runs a test with all layouts, and with other names.
func eachLayout(t *testing.T, test func(t *testing.T, s store)) {
	t.Helper()
	t.Parallel()
	for name, config := range configs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, setup(t, config))
		})
	}
}

func TestTruncateRemovesTheEventsBelowAndTheAggregateGoesOn(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		s.covered(t, id, 30)
		s.write(t, id, 31, 2)
		var progress []int

		require.NoError(t, s.Truncate(t.Context(), id, 21, journal.RemoveOptions{Progress: func(n int) { progress = append(progress, n) }}))

		assert.Equal(t, []int{20}, progress)
		assert.Equal(t, numbersFrom(21, 32), s.numbers(t, id))
		assert.Equal(t, journal.Head{Aggregate: id, Version: 32, Snapshot: stateAt(30), TruncatedBefore: 21}, s.head(t, id))
		s.write(t, id, 33, 1)
		records, err := read(t, s.Engine, id, 21, 33)
		require.NoError(t, err)
		requireNumbers(t, records, 21, 33)
		_, err = s.Append(t.Context(), storage.Commit{Aggregate: id, Events: events(1, 1)})
		require.ErrorIs(t, err, journal.ErrConflict, "numbers are not used again")

		require.NoError(t, s.Truncate(t.Context(), id, 31, journal.RemoveOptions{}), "further")
		require.NoError(t, s.Truncate(t.Context(), id, 5, journal.RemoveOptions{}), "less far changes nothing")
		assert.Equal(t, numbersFrom(31, 33), s.numbers(t, id))
		assert.EqualValues(t, 31, s.head(t, id).TruncatedBefore)
	})
}

func TestAReaderOfTruncatedEventsIsToldWhereToGoOn(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		s.covered(t, id, 40)
		require.NoError(t, s.Truncate(t.Context(), id, 31, journal.RemoveOptions{}))
		for name, r := range map[string]struct{ from, to uint64 }{
			"all missing, by key":    {1, 5},
			"some missing, by key":   {28, 33},
			"one missing":            {30, 30},
			"all missing, by index":  {1, 30},
			"some missing, by index": {1, 40},
			"the last one by index":  {30, 40},
		} {
			records, err := read(t, s.Engine, id, r.from, r.to)
			var truncated *journal.TruncatedError
			require.ErrorAs(t, err, new(*journal.TruncatedError), name)
			require.NotErrorAs(t, err, new(*journal.CorruptItemError), name)
			require.ErrorAs(t, err, &truncated, name)
			assert.Equal(t, journal.TruncatedError{ID: id, Before: 31}, *truncated, name)
			assert.Empty(t, records, name)
		}
		for _, to := range []uint64{33, 40} {
			records, err := read(t, s.Engine, id, 31, to)
			require.NoError(t, err)
			requireNumbers(t, records, 31, int(to))
		}
		// A missing event above is still corrupt, whatever is truncated below.
		s.remove(t, s.Config().Tables.Journal, s.keyOf(id, 35))
		_, err := read(t, s.Engine, id, 31, 40)
		require.ErrorAs(t, err, new(*journal.CorruptItemError))
	})
}

func TestEventsThatNoSnapshotStandsForAreNotTruncated(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		without, with := user("without"), user("with")
		s.write(t, without, 1, 3)
		s.covered(t, with, 3)
		s.write(t, with, 4, 2)
		for _, c := range []struct {
			id     aggregate.ID
			before uint64
		}{{without, 2}, {without, 4}, {with, 5}, {with, 6}, {with, 7}} {
			err := s.Truncate(t.Context(), c.id, c.before, journal.RemoveOptions{})
			require.ErrorIs(t, err, journal.ErrNotCovered)
			require.ErrorContains(t, err, fmt.Sprintf("of event %d or later", c.before-1))
			require.ErrorContains(t, err, fmt.Sprintf("truncate %s before event %d", c.id, c.before))
		}
		assert.Equal(t, numbersFrom(1, 3), s.numbers(t, without))
		assert.Equal(t, numbersFrom(1, 5), s.numbers(t, with))
		assert.Zero(t, s.head(t, with).TruncatedBefore)
		require.NoError(t, s.Truncate(t.Context(), with, 4, journal.RemoveOptions{}), "all that it stands for")
		assert.Equal(t, numbersFrom(4, 5), s.numbers(t, with))

		require.ErrorIs(t, s.Truncate(t.Context(), user("nobody"), 2, journal.RemoveOptions{}), journal.ErrNotFound)
		require.ErrorAs(t, s.Truncate(t.Context(), user(""), 2, journal.RemoveOptions{}), new(*aggregate.InvalidIDError))
		require.NoError(t, s.Delete(t.Context(), with, 5, journal.RemoveOptions{}))
		require.ErrorAs(t, s.Truncate(t.Context(), with, 2, journal.RemoveOptions{}), new(*journal.DeletedError))
	})
}

// It is not known of which event a foreign snapshot is.
func TestAForeignSnapshotStandsForNoEvents(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		s.covered(t, user("1"), 3)
		s.foreignUpdate(t, user("1"), 4, "theirs")
		require.ErrorIs(t, s.Truncate(t.Context(), user("1"), 2, journal.RemoveOptions{}), journal.ErrNotCovered)
		assert.Equal(t, numbersFrom(1, 3), s.numbers(t, user("1")))
	})
}

func TestTheHeadSaysThatEventsGoBeforeTheyGo(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for name, remove := range map[string]func(j *engine.Engine, id aggregate.ID) error{
			"truncate": func(j *engine.Engine, id aggregate.ID) error {
				return j.Truncate(t.Context(), id, 4, journal.RemoveOptions{})
			},
			"delete": func(j *engine.Engine, id aggregate.ID) error {
				return j.Delete(t.Context(), id, 5, journal.RemoveOptions{})
			},
		} {
			s.covered(t, user(name), 5)
			proxy := dynamotest.NewProxy(t, s.client)
			j := s.through(t, proxy.Client(testdb.Once))
			proxy.Inject(dynamotest.Refuse(&smithy.GenericAPIError{Code: "AccessDeniedException"}), dynamotest.On("UpdateItem"))
			require.ErrorIs(t, remove(j, user(name)), journal.ErrAccess)
			assert.Equal(t, numbersFrom(1, 5), s.numbers(t, user(name)), "nothing goes that the head does not know of")
		}
	})
}

func TestDeleteLeavesATombstone(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		c, a, id := s.Config(), s.Engine.Config.Attributes, user("1")
		listed := []uint64{}
		for n := range uint64(5) {
			listed = snap(t, s.Engine, id, n, storage.Redundancy{Listed: listed, Keep: 5}).Redundant
		}
		if !s.isPacked() {
			// A row of another program, which the head does not list.
			foreign := s.keyOf(id, 2)
			foreign[a.AggregateID], foreign[a.SequenceNumber] = text(id.String()), number(2)
			require.NoError(t, s.RemoveSnapshots(t.Context(), id, []uint64{2}))
			s.put(t, c.Tables.Snapshot, foreign)
		}
		var progress []int

		require.NoError(t, s.Delete(t.Context(), id, 5, journal.RemoveOptions{Progress: func(n int) { progress = append(progress, n) }}))

		assert.Equal(t, []int{5}, progress)
		if !s.isPacked() {
			tombstone := s.keyOf(id, 0)
			tombstone[a.AggregateID], tombstone[a.SequenceNumber], tombstone[a.Version], tombstone[a.TTL] = text(id.String()), number(0), number(5), number(0)
			tombstone["truncated_before"], tombstone["deleted_at"] = number(6), number(1_700_000_000_000)
			// No commit's condition is true with this number.
			tombstone["snapshot_seq_nr"] = &types.AttributeValueMemberN{Value: "18446744073709551615"}
			assert.Equal(t, []item{tombstone}, s.scan(t, c.Tables.Snapshot))
		}
		assert.Len(t, s.scan(t, c.Tables.Snapshot), 1, "the tombstone")
		found, err := s.Inspect(t.Context(), id, func(*journal.Record) { t.Error("there is an event") })
		require.NoError(t, err)
		assert.Empty(t, found.Corrupt)
		assert.Empty(t, s.numbers(t, id))
		at := time.UnixMilli(1_700_000_000_000).UTC()
		assert.Equal(t, journal.Head{Aggregate: id, Version: 5, TruncatedBefore: 6, DeletedAt: at}, s.head(t, id))

		_, versionErr := s.Version(t.Context(), id)
		errs := map[string]error{"Version": versionErr}
		for _, expected := range []uint64{0, 4, 5, 6} {
			_, errs[fmt.Sprint("Append at ", expected)] = s.Append(t.Context(), storage.Commit{Aggregate: id, Expected: expected, Events: events(6, 1)})
		}
		_, errs["a command without events"] = s.execute(t, id, 5, 0, "c")
		for name, err := range errs {
			var deleted *journal.DeletedError
			require.ErrorAs(t, err, new(*journal.DeletedError), name)
			require.NotErrorIs(t, err, journal.ErrConflict, name)
			require.ErrorAs(t, err, &deleted, name)
			assert.Equal(t, journal.DeletedError{ID: id, Version: 5, At: at}, *deleted, name)
		}
		_, err = read(t, s.Engine, id, 1, 5)
		require.ErrorAs(t, err, new(*journal.TruncatedError))

		s.clock.advance(time.Hour)
		nothing := journal.RemoveOptions{Progress: func(int) { t.Error("there is no progress to tell") }}
		require.NoError(t, s.Delete(t.Context(), id, 5, nothing), "a tombstone is no error")
		assert.Equal(t, at, s.head(t, id).DeletedAt)
	})
}

func TestDeleteOfAnotherVersionIsAConflictAndRemovesNothing(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		s.covered(t, id, 3)
		before := s.scan(t, s.Config().Tables.Snapshot)
		for _, expected := range []uint64{0, 2, 4} {
			var conflict *journal.ConflictError
			require.ErrorAs(t, s.Delete(t.Context(), id, expected, journal.RemoveOptions{}), &conflict)
			assert.Equal(t, journal.ConflictError{ID: id, Expected: expected, Actual: 3}, *conflict)
		}
		assert.ElementsMatch(t, before, s.scan(t, s.Config().Tables.Snapshot))
		assert.Equal(t, numbersFrom(1, 3), s.numbers(t, id))
		require.ErrorIs(t, s.Delete(t.Context(), user("nobody"), 0, journal.RemoveOptions{}), journal.ErrNotFound)
		require.ErrorAs(t, s.Delete(t.Context(), user(""), 0, journal.RemoveOptions{}), new(*aggregate.InvalidIDError))
	})
}

func TestACommitThatOvertakesADeletionWins(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		s.covered(t, id, 3)
		proxy := dynamotest.NewProxy(t, s.client)
		j := s.through(t, proxy.Client(testdb.Once))
		proxy.Inject(dynamotest.Pause(func(context.Context) { s.write(t, id, 4, 1) }), dynamotest.On(s.either("UpdateItem", "PutItem")), dynamotest.Times(1))

		err := j.Delete(t.Context(), id, 3, journal.RemoveOptions{})

		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict)
		assert.Equal(t, journal.ConflictError{ID: id, Expected: 3, Actual: 4}, *conflict)
		assert.Equal(t, numbersFrom(1, 4), s.numbers(t, id))
		assert.Equal(t, journal.Head{Aggregate: id, Version: 4, Snapshot: stateAt(3)}, s.head(t, id))
	})
}

func TestACommitThatOvertakesATruncationIsTakenIntoAccount(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		s.covered(t, id, 3)
		proxy := dynamotest.NewProxy(t, s.client)
		j := s.through(t, proxy.Client(testdb.Once))
		version := 3
		overtake := dynamotest.Pause(func(context.Context) { version++; s.write(t, id, version, 1) })
		proxy.Inject(overtake, dynamotest.On("UpdateItem"), dynamotest.Times(2))
		require.NoError(t, j.Truncate(t.Context(), id, 3, journal.RemoveOptions{}))
		assert.Equal(t, numbersFrom(3, 5), s.numbers(t, id))

		if s.isPacked() { // a truncation does not change a row that a commit writes
			return
		}
		proxy.Inject(overtake, dynamotest.On("UpdateItem"))
		require.ErrorIs(t, j.Truncate(t.Context(), id, 4, journal.RemoveOptions{}), journal.ErrConflict)
		assert.EqualValues(t, 3, s.head(t, id).TruncatedBefore)
	})
}

// If the head were moved back, the events that the other truncation has removed would be reported
// as corrupt.
func TestALateTruncationDoesNotTakeBackOneThatWentFurther(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		s.covered(t, id, 20)
		proxy := dynamotest.NewProxy(t, s.client)
		proxy.Inject(dynamotest.Pause(func(context.Context) {
			require.NoError(t, s.Truncate(t.Context(), id, 15, journal.RemoveOptions{}))
		}), dynamotest.On("UpdateItem"), dynamotest.Times(1))

		require.NoError(t, s.through(t, proxy.Client(testdb.Once)).Truncate(t.Context(), id, 5, journal.RemoveOptions{}))

		assert.EqualValues(t, 15, s.head(t, id).TruncatedBefore)
		_, err := read(t, s.Engine, id, 1, 20)
		require.ErrorAs(t, err, new(*journal.TruncatedError))
	})
}

func TestTruncateBeforeTheFirstEventDeletesNothing(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		s.covered(t, id, 5)
		proxy := dynamotest.NewProxy(t, s.client)
		deletions := proxy.Inject(dynamotest.Throttle(), dynamotest.On("DeleteItem", "BatchWriteItem"))

		for before := range uint64(2) {
			require.NoError(t, s.through(t, proxy.Client(testdb.Once)).Truncate(t.Context(), id, before, journal.RemoveOptions{}))
		}

		assert.Zero(t, deletions.Fired())
		assert.Equal(t, numbersFrom(1, 5), s.numbers(t, id))
	})
}

func TestATruncationThatEndedEarlyIsFinishedByAnyOther(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		s.covered(t, id, 20)
		proxy := dynamotest.NewProxy(t, s.client)
		// In the packed layout, the first update marks event 1.
		proxy.Inject(dynamotest.Throttle(), dynamotest.On(s.either("BatchWriteItem", "UpdateItem")), dynamotest.After(len(s.either("", "1"))))
		require.ErrorIs(t, s.through(t, proxy.Client(testdb.Once)).Truncate(t.Context(), id, 15, journal.RemoveOptions{}), journal.ErrThrottled)
		require.Equal(t, numbersFrom(1, 20), s.numbers(t, id))

		require.NoError(t, s.Truncate(t.Context(), id, 5, journal.RemoveOptions{}))

		assert.Equal(t, numbersFrom(15, 20), s.numbers(t, id))
	})
}

func TestADeletionThatMeetsAnotherOrATruncationSucceeds(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		for name, meet := range map[string]func(id aggregate.ID) error{
			"a deletion":             func(id aggregate.ID) error { return s.Delete(t.Context(), id, 5, journal.RemoveOptions{}) },
			"truncated to the end":   func(id aggregate.ID) error { return s.Truncate(t.Context(), id, 6, journal.RemoveOptions{}) },
			"truncated a part of it": func(id aggregate.ID) error { return s.Truncate(t.Context(), id, 3, journal.RemoveOptions{}) },
		} {
			id := user(name)
			s.covered(t, id, 5)
			proxy := dynamotest.NewProxy(t, s.client)
			proxy.Inject(dynamotest.Pause(func(context.Context) { require.NoError(t, meet(id)) }), dynamotest.On(s.either("UpdateItem", "PutItem")), dynamotest.Times(1))
			require.NoError(t, s.through(t, proxy.Client(testdb.Once)).Delete(t.Context(), id, 5, journal.RemoveOptions{}), name)
			assert.Empty(t, s.numbers(t, id))
			assert.False(t, s.head(t, id).DeletedAt.IsZero())
		}
	})
}

// eachRemoval runs a test for truncation and deletion, at once and by time to live.
func eachRemoval(t *testing.T, test func(t *testing.T, config journal.Config, remove func(context.Context, *engine.Engine, aggregate.ID) error)) {
	t.Helper()
	t.Parallel()
	for layout, config := range configs() {
		for _, after := range []time.Duration{0, time.Hour} {
			if after > 0 && config.Layout == journal.Packed {
				continue // commits have no time to live
			}
			for name, remove := range map[string]func(context.Context, *engine.Engine, aggregate.ID) error{
				"truncate": func(ctx context.Context, j *engine.Engine, id aggregate.ID) error {
					return j.Truncate(ctx, id, 13, journal.RemoveOptions{After: after})
				},
				"delete": func(ctx context.Context, j *engine.Engine, id aggregate.ID) error {
					return j.Delete(ctx, id, 12, journal.RemoveOptions{After: after})
				},
			} {
				t.Run(fmt.Sprint(name, " ", layout, " ", after), func(t *testing.T) {
					t.Parallel()
					test(t, config, remove)
				})
			}
		}
	}
}

func TestARemovalGoesOnAfterAFaultAtAnyRequest(t *testing.T) {
	eachRemoval(t, func(t *testing.T, config journal.Config, remove func(context.Context, *engine.Engine, aggregate.ID) error) {
		for name, fault := range map[string]dynamotest.Fault{
			"refused":    dynamotest.Refuse(&smithy.GenericAPIError{Code: "AccessDeniedException", Message: "says the test"}),
			"lost reply": dynamotest.LoseReply(),
		} {
			step := 1
			if testdb.Race {
				step = 4
			}
			for n, done := 0, false; !done; n += step {
				require.Less(t, n, 100)
				s, db := inMemory(t, config)
				id := user("1")
				s.covered(t, id, 12)
				once := s.through(t, db.Client(func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 }))
				db.Inject(dynamotest.SmallPages(5))
				injection := db.Inject(fault, dynamotest.After(n), dynamotest.Times(1))

				err := remove(t.Context(), once, id)

				if done = injection.Fired() == 0; done {
					require.NoError(t, err)
				} else {
					require.Error(t, err, "%s, request %d", name, n)
					require.Equal(t, name == "refused", errors.Is(err, journal.ErrAccess), "%s, request %d: %v", name, n, err)
					// All events that are missing now have been announced.
					if _, err := read(t, s.Engine, id, 1, 12); err != nil {
						require.ErrorAs(t, err, new(*journal.TruncatedError), "%s, request %d", name, n)
					}
				}
				injection.Remove()
				require.NoError(t, remove(t.Context(), s.Engine, id), "%s, request %d", name, n)
				db.Clock().Advance(2 * time.Hour)
				require.Empty(t, s.numbers(t, id), "%s, request %d", name, n)
				_, err = read(t, s.Engine, id, 1, 12)
				require.ErrorAs(t, err, new(*journal.TruncatedError))
			}
		}
	})
}

func TestARemovalIsDoneByTheSDKsRetriesThoughRepliesAreLost(t *testing.T) {
	eachRemoval(t, func(t *testing.T, config journal.Config, remove func(context.Context, *engine.Engine, aggregate.ID) error) {
		s, db := inMemory(t, config)
		id := user("1")
		s.covered(t, id, 12)
		for _, operation := range []string{"UpdateItem", "BatchWriteItem"} {
			db.Inject(dynamotest.LoseReply(), dynamotest.On(operation), dynamotest.Times(1))
		}
		db.Inject(dynamotest.Unprocessed(3), dynamotest.On("BatchWriteItem"), dynamotest.Times(3))
		require.NoError(t, remove(t.Context(), s.Engine, id))
		db.Clock().Advance(2 * time.Hour)
		assert.Empty(t, s.numbers(t, id))
	})
}

func TestARemovalEndsWithItsContext(t *testing.T) {
	eachRemoval(t, func(t *testing.T, config journal.Config, remove func(context.Context, *engine.Engine, aggregate.ID) error) {
		s, db := inMemory(t, config)
		s.covered(t, user("1"), 12)
		ctx, cancel := cancellable(t)
		db.Inject(dynamotest.Unprocessed(30), dynamotest.On("BatchWriteItem"))
		db.Observe(func(c dynamotest.Call) {
			if c.Operation == "Query" {
				cancel()
			}
		})
		err := remove(ctx, s.Engine, user("1"))
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestEventsWithATimeToLiveAreThereUntilItHasPassed(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{})
	id := user("1")
	s.covered(t, id, 30)
	progress := 0
	options := journal.RemoveOptions{After: time.Hour, Progress: func(n int) { progress = n }}
	require.NoError(t, s.Truncate(t.Context(), id, 21, options))
	assert.Equal(t, 20, progress)
	records, err := read(t, s.Engine, id, 1, 30)
	require.NoError(t, err)
	requireNumbers(t, records, 1, 30)
	page, err := s.TailShard(t.Context(), storage.TailQuery{AggregateType: id.Type, Shard: s.Shard(id)})
	require.NoError(t, err)
	assert.Len(t, page.Records, 30)

	db.Clock().Advance(30 * time.Minute)
	progress = 0
	require.NoError(t, s.Truncate(t.Context(), id, 21, options))
	assert.Zero(t, progress, "what has a time already keeps it")

	require.NoError(t, s.Truncate(t.Context(), id, 11, journal.RemoveOptions{After: 10 * time.Minute, Progress: options.Progress}))
	assert.Equal(t, 20, progress, "unless it is to go earlier")
	db.Clock().Advance(11 * time.Minute)
	assert.Equal(t, numbersFrom(21, 30), s.numbers(t, id))
	_, err = read(t, s.Engine, id, 1, 30)
	require.ErrorAs(t, err, new(*journal.TruncatedError))

	require.NoError(t, s.Delete(t.Context(), id, 30, options))
	assert.Equal(t, numbersFrom(21, 30), s.numbers(t, id))
	assert.Nil(t, s.head(t, id).Snapshot, "the state goes at once")
	require.NoError(t, s.Delete(t.Context(), id, 30, journal.RemoveOptions{}))
	assert.Empty(t, s.numbers(t, id), "and the events too, when asked for")
}

func TestRemovalLeavesAggregatesWhoseIDsBeginAlikeAlone(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		id := user("1")
		others := []aggregate.ID{
			user("1-1"), user("1-state"), user("1-0"), user("10"), user("1-"), {Type: "user", Value: "account-1"}, {Type: "user-account-1", Value: "1"},
		}
		for n := 2; len(others) < 20; n++ {
			if other := user(fmt.Sprintf("1-%d", n)); s.Shard(other) == s.Shard(id) {
				others = append(others, other)
			}
		}
		want := map[aggregate.ID]journal.Head{}
		for _, id := range append([]aggregate.ID{id}, others...) {
			snap(t, s.Engine, id, 0, storage.Redundancy{Listed: []uint64{}, Keep: 1})
			s.write(t, id, 2, 1)
			want[id] = s.head(t, id)
		}
		delete(want, id)

		require.NoError(t, s.Truncate(t.Context(), id, 2, journal.RemoveOptions{}))
		require.NoError(t, s.Delete(t.Context(), id, 2, journal.RemoveOptions{}))

		for other, head := range want {
			assert.Equal(t, head, s.head(t, other), "%#v", other)
			records, err := read(t, s.Engine, other, 1, 2)
			require.NoError(t, err, "%#v", other)
			requireNumbers(t, records, 1, 2)
			got, err := s.SnapshotBefore(t.Context(), head, 1)
			require.NoError(t, err)
			assert.Equal(t, stateAt(1), got, "%#v", other)
		}
	})
}

func TestAnIndexThatLagsLeavesNoEventBehind(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{})
	db.Inject(dynamotest.DelayIndex(time.Hour, time.Hour))
	s.covered(t, user("1"), 30)
	require.NoError(t, s.Truncate(t.Context(), user("1"), 21, journal.RemoveOptions{}))
	assert.Equal(t, numbersFrom(21, 30), s.numbers(t, user("1")))
	require.NoError(t, s.Delete(t.Context(), user("1"), 30, journal.RemoveOptions{}))
	assert.Empty(t, s.numbers(t, user("1")))
}

func TestADamagedEventIsRemovedToo(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		c, id := s.Config(), user("1")
		s.covered(t, id, 12)
		s.change(t, c.Tables.Journal, s.keyOf(id, 10), item{c.Classic.Attributes.SequenceNumber: nil})
		s.change(t, c.Tables.Journal, s.keyOf(id, 11), item{c.Classic.Attributes.SequenceNumber: number(1), c.Classic.Attributes.AggregateID: nil})
		require.NoError(t, s.Delete(t.Context(), id, 12, journal.RemoveOptions{}))
		assert.Len(t, s.scan(t, c.Tables.Journal), 1, "the descriptor")
	})
}

func TestProgressIsToldAfterEachPage(t *testing.T) {
	t.Parallel()
	s, db := inMemory(t, journal.Config{})
	s.covered(t, user("1"), 50)
	db.Inject(dynamotest.SmallPages(20))
	var progress []int
	require.NoError(t, s.Delete(t.Context(), user("1"), 50, journal.RemoveOptions{Progress: func(n int) { progress = append(progress, n) }}))
	assert.Equal(t, []int{20, 40, 50}, progress)
}

func TestATombstoneShowsNoStateThatIsYetToBeRemoved(t *testing.T) {
	eachLayout(t, func(t *testing.T, s store) {
		s.covered(t, user("1"), 3)
		proxy := dynamotest.NewProxy(t, s.client)
		proxy.Inject(dynamotest.Throttle(), dynamotest.On(s.either("Query", "UpdateItem")))
		require.ErrorIs(t, s.through(t, proxy.Client(testdb.Once)).Delete(t.Context(), user("1"), 3, journal.RemoveOptions{}), journal.ErrThrottled)

		head := s.head(t, user("1"))

		assert.False(t, head.DeletedAt.IsZero())
		assert.Nil(t, head.Snapshot)
	})
}

func TestAnEventThatIsGoneAlreadyIsNotMadeAgainByItsTimeToLive(t *testing.T) {
	onClassic(t, func(t *testing.T, s store) {
		s.covered(t, user("1"), 3)
		proxy := dynamotest.NewProxy(t, s.client)
		proxy.Inject(dynamotest.Pause(func(context.Context) {
			s.remove(t, s.Config().Tables.Journal, s.keyOf(user("1"), 1))
			s.remove(t, s.Config().Tables.Journal, s.keyOf(user("1"), 2))
		}), dynamotest.On("UpdateItem"), dynamotest.Table(s.Config().Tables.Journal))
		require.NoError(t, s.through(t, proxy.Client(testdb.Once)).Truncate(t.Context(), user("1"), 3, journal.RemoveOptions{After: 100 * 365 * 24 * time.Hour}))
		assert.Len(t, s.scan(t, s.Config().Tables.Journal), 2, "event 3 and the descriptor")
	})
}

func TestRemovalAndHeadsReadStronglyConsistent(t *testing.T) {
	t.Parallel()
	s := setup(t, journal.Config{})
	s.covered(t, user("1"), 3)
	client := &meddler{Client: s.client}
	client.query = func(_ int, in *dynamodb.QueryInput, send func() (*dynamodb.QueryOutput, error)) (*dynamodb.QueryOutput, error) {
		assert.True(t, aws.ToBool(in.ConsistentRead))
		return send()
	}
	client.scan = func(_ int, in *dynamodb.ScanInput, send func() (*dynamodb.ScanOutput, error)) (*dynamodb.ScanOutput, error) {
		assert.True(t, aws.ToBool(in.ConsistentRead))
		return send()
	}
	s.Engine = s.through(t, client)
	require.Len(t, s.heads(t, journal.HeadsQuery{}), 1)
	require.Len(t, s.heads(t, journal.HeadsQuery{AggregateType: "user-account"}), 1)
	require.NoError(t, s.Truncate(t.Context(), user("1"), 2, journal.RemoveOptions{}))
	require.NoError(t, s.Delete(t.Context(), user("1"), 3, journal.RemoveOptions{}))
}
