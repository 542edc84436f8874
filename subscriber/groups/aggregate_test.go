package groups_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// parked waits until aggregates are listed as parked.
func (s store) parked(t *testing.T, n int) (list []groups.BehindAggregate) {
	t.Helper()
	eventually(t, "aggregates are parked", func() bool {
		var err error
		list, err = collect(s.Parked(t.Context(), aggregate.ID{}))
		return err == nil && len(list) == n
	})
	return list
}

func TestAfterASkipAParkedAggregateGoesOnWithTheNextEvent(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 2)
		config := s.quick()
		config.Failures = subscriber.Park(2)
		var got handled
		poisonous := func(payload string) bool { return payload == "x/2" }
		got.consume(t, config, poisonous)
		got.consume(t, config, poisonous)
		s.write(t, "x", 0, 4)
		s.write(t, "y", 0, 4)

		list := s.parked(t, 1)
		assert.Equal(t, account("x"), list[0].Aggregate)
		assert.EqualValues(t, 2, list[0].Next)
		assert.EqualValues(t, 2, list[0].Parked.Number)
		assert.Contains(t, list[0].Parked.Reason, "nacked")
		assert.WithinDuration(t, time.Now(), list[0].Parked.At, patience)
		s.waitApplied(t, "y", 4) // the other aggregate flows on
		s.waitApplied(t, "x", 1) // so that no member handles it again after the skip

		require.NoError(t, s.Skip(t.Context(), group, account("x"), 2))

		eventually(t, "the group continues", func() bool { return len(got.of("x")) >= 3 })
		s.caughtUp(t)
		assert.Equal(t, []string{"x/1", "x/3", "x/4"}, got.of("x"))
		assert.Equal(t, expect("y", 1, 4), got.of("y"))
		s.parked(t, 0)
		err := s.Skip(t.Context(), group, account("x"), 2)
		var next *groups.NotNextError
		require.ErrorAs(t, err, &next)
		assert.EqualValues(t, 5, next.Next)
		require.ErrorIs(t, s.Skip(t.Context(), group, account("x"), 5), groups.ErrNoSuchEvent)
		require.ErrorIs(t, s.Skip(t.Context(), group, account("nobody"), 1), journal.ErrNotFound)

		s.write(t, "x", 4, 1)
		eventually(t, "later events come too", func() bool { return len(got.of("x")) == 4 })
	})
}

func TestAnEditThatCannotBeDoneDisturbsNobody(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	var got handled
	got.consume(t, s.alone(), nil)
	s.write(t, "x", 0, 4)
	s.caughtUp(t)

	require.ErrorAs(t, s.Skip(t.Context(), group, account("x"), 4), new(*groups.NotNextError))
	require.ErrorIs(t, s.Skip(t.Context(), group, account("x"), 5), groups.ErrNoSuchEvent)
	require.ErrorIs(t, s.Unpark(t.Context(), group, account("x")), groups.ErrNotParked)
	require.ErrorIs(t, s.ResetAggregate(t.Context(), group, account("x"), 5), groups.ErrNoSuchEvent)
	require.ErrorAs(t, s.ResetAggregate(t.Context(), group, aggregate.ID{}, 5), new(*aggregate.InvalidIDError))

	g := mustGet(t, s)
	assert.EqualValues(t, 1, g.Shards[0].Epoch, "the shard has not changed hands")
}

func TestAnUnparkedAggregateIsTriedAgain(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 2)
		config := s.quick()
		config.Failures = subscriber.Park(1)
		var mended atomic.Bool
		refuse := func(payload string) bool { return payload == "x/1" && !mended.Load() }
		var got handled
		got.consume(t, config, refuse)
		got.consume(t, config, refuse)
		s.write(t, "x", 0, 3)
		s.parked(t, 1)
		require.ErrorIs(t, s.Unpark(t.Context(), group, account("y")), journal.ErrNotFound)
		s.write(t, "y", 0, 1)
		require.ErrorIs(t, s.Unpark(t.Context(), group, account("y")), groups.ErrNotParked)

		mended.Store(true)
		require.NoError(t, s.Unpark(t.Context(), group, account("x")))

		eventually(t, "the group continues", func() bool { return len(got.of("x")) == 3 })
		assert.Equal(t, expect("x", 1, 3), got.of("x"))
		s.parked(t, 0)
	})
}

func TestAnAggregateThatIsResetComesAgainInOrder(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 2)
		var got handled
		got.consume(t, s.quick(), nil)
		got.consume(t, s.quick(), nil)
		s.write(t, "x", 0, 5)
		s.write(t, "y", 0, 5)
		tick(t)
		for i := range 10 { // later events in both shards, so that the cursors pass those of x
			s.write(t, fmt.Sprint("z", i), 0, 1)
		}
		eventually(t, "all were handled", func() bool { return got.count() == 20 })
		s.caughtUp(t)
		time.Sleep(time.Minute)

		require.NoError(t, s.ResetAggregate(t.Context(), group, account("x"), 2))

		eventually(t, "they come again", func() bool { return len(got.of("x")) == 8 })
		s.caughtUp(t)
		assert.Equal(t, append(expect("x", 1, 5), expect("x", 3, 5)...), got.of("x"))
		assert.Equal(t, expect("y", 1, 5), got.of("y"))
		eventually(t, "it is taken off the list of those behind", func() bool {
			list, err := collect(s.Behind(t.Context(), aggregate.ID{}))
			return err == nil && len(list) == 0
		})
		require.ErrorIs(t, s.ResetAggregate(t.Context(), group, account("x"), 6), groups.ErrNoSuchEvent)
	})
}

func TestAHandlerInTheMiddleOfItsWorkCannotUndoAnEdit(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		_, messages := subscribe(t, s.quick())
		s.write(t, "x", 0, 5)
		first := receive(t, messages)
		require.Equal(t, "x/1", string(first.Payload))

		require.NoError(t, s.ResetAggregate(t.Context(), group, account("x"), 3))
		first.Ack()

		var got handled
		go got.handle(messages, nil)
		s.caughtUp(t)
		// The former owner delivers all events before it notices. Then the events after the edit
		// come again.
		assert.Equal(t, append(expect("x", 2, 5), expect("x", 4, 5)...), got.of("x"))
	})
}

func TestABlockedAggregateShowsWithTheEventThatBlocksIt(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		earlier := func() time.Time { return time.Now().Add(-time.Minute) }
		open(t, s.Client().(*dynamodb.Client), journal.Config{Now: earlier}).write(t, "x", 0, 1)
		config := s.quick()
		config.Start = subscriber.Now()
		var got handled
		got.consume(t, config, func(payload string) bool { return payload == "x/2" || payload == "x/3" })
		eventually(t, "the group exists", func() bool {
			_, err := s.Status(t.Context())
			return err == nil
		})
		s.write(t, "x", 1, 3)
		tick(t)
		s.write(t, "y", 0, 1) // the cursor can pass it only if it passes x
		var list []groups.BehindAggregate
		eventually(t, "it is listed with its failure", func() bool {
			var err error
			list, err = collect(s.Behind(t.Context(), aggregate.ID{}))
			return err == nil && len(list) == 1 && list[0].Failure != nil
		})
		assert.EqualValues(t, 2, list[0].Failure.Number)
		assert.Regexp(t, `^the message was nacked without a reason .*, (once|\d+ times)$`, list[0].Failure.Reason)
		assert.WithinDuration(t, time.Now(), list[0].Failure.At, patience)
		list[0].Failure = nil
		assert.Equal(t, groups.BehindAggregate{Aggregate: account("x"), Next: 2, Head: 4}, list[0])

		require.NoError(t, s.Skip(t.Context(), group, account("x"), 2))
		require.NoError(t, s.Skip(t.Context(), group, account("x"), 3))

		eventually(t, "the group continues", func() bool { return len(got.of("x")) == 1 })
		assert.Equal(t, expect("x", 4, 4), got.of("x"))
	})
}

func TestAnAggregateWhoseLastEventIsSkippedIsNotListed(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.begin(t, time.Time{})
	s.write(t, "x", 0, 3)
	s.acked(t, "x", 2)

	require.NoError(t, s.Skip(t.Context(), group, account("x"), 3)) // no member removes the entry

	listed, err := collect(s.Behind(t.Context(), aggregate.ID{}))
	require.NoError(t, err)
	assert.Empty(t, listed)
}

func TestAnAggregateThatALaterEventBlocksStaysListed(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.begin(t, time.Time{})
	var got handled
	var blocking atomic.Pointer[string]
	block := func(payload string) { blocking.Store(&payload) }
	block("x/1")
	got.consume(t, s.alone(), func(payload string) bool { return payload == *blocking.Load() })
	s.write(t, "x", 0, 1)
	tick(t)
	s.write(t, "y", 0, 1) // the cursor can pass it only if it passes x
	var list []groups.BehindAggregate
	next := func(number uint64) func() bool {
		return func() bool {
			var err error
			list, err = collect(s.Behind(t.Context(), aggregate.ID{}))
			return err == nil && len(list) == 1 && list[0].Next == number
		}
	}
	eventually(t, "event 1 is listed", next(1))
	s.write(t, "x", 1, 1) // the entry was written before this event

	block("x/2")

	eventually(t, "event 2 is listed", next(2))
	if failure := list[0].Failure; failure != nil { // the entry was written again since
		assert.EqualValues(t, 2, failure.Number)
		list[0].Failure = nil
	}
	assert.Equal(t, groups.BehindAggregate{Aggregate: account("x"), Next: 2, Head: 2}, list[0])
	block("")
	s.caughtUp(t)
}

func TestAFailureOfAnEventThatIsHandledDoesNotShow(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.begin(t, time.Time{})
	s.write(t, "x", 0, 3)
	require.NoError(t, checkpoint.New(s.Journal).ListBehind(t.Context(), checkpoint.Group{Name: group}, checkpoint.Revision{Epoch: 1},
		checkpoint.Behind{Aggregate: account("x"), Head: 3, Failure: &checkpoint.Failure{Number: 2, At: time.UnixMilli(5), Reason: "broken"}}))
	shown := func() []groups.BehindAggregate {
		listed, err := collect(s.Behind(t.Context(), aggregate.ID{}))
		require.NoError(t, err)
		var compared []groups.BehindAggregate
		lag := s.lag(t, groups.LagOptions{Behind: func(b groups.BehindAggregate) { compared = append(compared, b) }})
		assert.Equal(t, listed, compared)
		assert.Equal(t, 1, lag.Blocked)
		assert.Zero(t, lag.Parked)
		return listed
	}

	s.acked(t, "x", 1)
	failure := &groups.Failure{Number: 2, At: time.UnixMilli(5), Reason: "broken"}
	assert.Equal(t, []groups.BehindAggregate{{Aggregate: account("x"), Next: 2, Head: 3, Failure: failure}}, shown())
	s.acked(t, "x", 2)
	assert.Equal(t, []groups.BehindAggregate{{Aggregate: account("x"), Next: 3, Head: 3}}, shown())
}

func TestAnEditIsDoneAgainWhereTheShardWasTakenAwayMeanwhile(t *testing.T) {
	t.Parallel()
	proxy := dynamotest.NewProxy(t, create(t, 1))
	s := open(t, proxy.Client(testdb.Once), journal.Config{})
	s.write(t, "x", 0, 3)
	store, k := checkpoint.New(s.Journal), checkpoint.Key{Group: group, Topic: topic}
	membership, member := checkpoint.NewMembership(1, time.Time{}).Join(checkpoint.Member{})
	_, err := store.ChangeMembership(t.Context(), k, checkpoint.Membership{}, membership)
	require.NoError(t, err)
	taken := proxy.Inject(dynamotest.PauseReply(func(ctx context.Context) {
		_, err := store.ModifyMembership(ctx, k, func(r checkpoint.Membership) (checkpoint.Membership, error) {
			return r.Take(member, []int{0}), nil
		})
		assert.NoError(t, err)
	}), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))

	require.NoError(t, s.Skip(t.Context(), group, account("x"), 1))

	assert.Equal(t, 1, taken.Fired())
	g := mustGet(t, s)
	assert.EqualValues(t, 3, g.Shards[0].Epoch, "the operator's, the member's, the operator's")
	assert.Len(t, g.Free(), 1)
	list, err := collect(s.Behind(t.Context(), aggregate.ID{}))
	require.NoError(t, err)
	assert.Equal(t, []groups.BehindAggregate{{Aggregate: account("x"), Next: 2, Head: 3}}, list)
	assert.Len(t, s.skipped(t), 1, "the record is the operator's last one")
}
