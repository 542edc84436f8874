package subscriber_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// eager returns a config that soon lists aggregates as behind. Tests use it with often.
func eager(j *journal.Journal) subscriber.Config {
	config := unanswered(quick(j))
	config.Timing.BehindAfter, config.Timing.ReconcileInterval = time.Millisecond, -1
	config.Timing.TrailingDelay = 200 * time.Millisecond // the cursor moves past events of this age
	return config
}

// often lets a subscriber write its cursors often.
var often = subscriber.CursorInterval(time.Millisecond)

// apart acks all messages except those of x, which it returns.
func apart(messages <-chan *message.Message) <-chan *message.Message {
	xs := make(chan *message.Message, 10)
	go func() {
		for msg := range messages {
			if id, _, _ := subscriber.AggregateFromContext(msg.Context()); id.Value == "x" {
				xs <- msg
			} else {
				msg.Ack()
			}
		}
	}()
	return xs
}

// busy writes events of y until a condition holds, so that the cursor can move.
func busy(t *testing.T, j *journal.Journal, written *int, what string, condition func() bool) {
	t.Helper()
	eventually(t, what, func() bool {
		write(t, j, "y", *written, 1)
		*written++
		return condition()
	})
}

// isBehind reports whether x is listed. Sometimes y is listed too.
func isBehind(t *testing.T, j *journal.Journal) bool {
	t.Helper()
	return slices.ContainsFunc(progress(t, j).Behind, func(b checkpoint.Behind) bool { return b.Aggregate == account("x") })
}

func TestAnAggregateWhoseDeletionFromTheListWasNotConfirmedIsListedAgain(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	faulty, j := dynamotest.NewProxy(t, client), open(t, client)
	write(t, j, "x", 0, 1)
	_, messages := subscribe(t, eager(open(t, faulty.Client(testdb.Once))), often)
	xs, ys := apart(messages), 0
	first := receive(t, xs)
	busy(t, j, &ys, "x is listed", func() bool { return isBehind(t, j) })
	deleted, goOn := make(chan struct{}), make(chan struct{})
	faulty.Inject(dynamotest.LoseReply(), dynamotest.On("DeleteItem"), onRow("behind/x", ""), dynamotest.Times(1))
	faulty.Inject(dynamotest.PauseReply(func(context.Context) {
		close(deleted)
		<-goOn
	}), dynamotest.On("DeleteItem"), onRow("behind/x", ""), dynamotest.Times(1))
	first.Ack()
	<-deleted

	write(t, j, "x", 1, 1)
	require.Equal(t, "x/2", string(receive(t, xs).Payload)) // its handler hangs
	close(goOn)

	busy(t, j, &ys, "x is listed again, as the cursor goes on", func() bool { return isBehind(t, j) })
}

func TestAnAggregateThatIsParkedWhileItIsTakenOffTheListStaysOnIt(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	faulty, j := dynamotest.NewProxy(t, client), open(t, client)
	write(t, j, "x", 0, 1)
	config := eager(open(t, faulty.Client(testdb.Once)))
	config.Failures = subscriber.Park(1)
	sub, messages := subscribe(t, config, often)
	xs, ys := apart(messages), 0
	first := receive(t, xs)
	busy(t, j, &ys, "x is listed", func() bool { return isBehind(t, j) })
	entered, nacked := make(chan struct{}), make(chan struct{})
	var deleting, both atomic.Bool
	listed := make(chan struct{}, 100)
	faulty.Inject(dynamotest.Pause(func(context.Context) {
		if deleting.Load() {
			both.Store(true)
		}
	}), dynamotest.On("UpdateItem"), onRow("behind/x", ""))
	faulty.Inject(dynamotest.PauseReply(func(context.Context) { listed <- struct{}{} }), dynamotest.On("UpdateItem"), onRow("behind/x", ""))
	faulty.Inject(dynamotest.Pause(func(context.Context) {
		deleting.Store(true)
		close(entered)
		<-nacked
		select {
		case <-listed: // if x could be listed during the deletion, it would happen in this time
		case <-time.After(200 * time.Millisecond):
		}
	}), dynamotest.On("DeleteItem"), onRow("behind/x", ""), dynamotest.Times(1))
	faulty.Inject(dynamotest.PauseReply(func(context.Context) { deleting.Store(false) }), dynamotest.On("DeleteItem"), onRow("behind/x", ""), dynamotest.Times(1))
	first.Ack()
	<-entered
	write(t, j, "x", 1, 1)
	receive(t, xs).Nack()
	close(nacked)

	eventually(t, "it is parked", func() bool { return sub.Stats().Parked == 1 })
	require.NoError(t, sub.Close())
	assert.False(t, both.Load(), "writes of one row take turns")
	behind := progress(t, j).Behind
	require.Len(t, behind, 1)
	assert.NotNil(t, behind[0].Parked)
}

func TestTheCursorDoesNotPassAnAggregateThatCouldNotBeListed(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	faulty, j := dynamotest.NewProxy(t, client), open(t, client)
	write(t, j, "x", 0, 1)
	refused := faulty.Inject(dynamotest.CutConnection(), dynamotest.On("UpdateItem"), onRow("behind/x", ""))
	first, messages := subscribe(t, eager(open(t, faulty.Client(testdb.Once))), often)
	xs, ys := apart(messages), 0
	occurred := record(t, receive(t, xs)).OccurredAt
	busy(t, j, &ys, "it could not be listed", func() bool { return refused.Fired() >= 5 })

	assert.False(t, progress(t, j).Cursor.After(occurred))
	require.NoError(t, first.Close())
	_, messages = subscribe(t, eager(j), often)
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, apart(messages), 1))
}

func record(t *testing.T, msg *message.Message) *journal.Record {
	t.Helper()
	r, ok := subscriber.RecordFromContext(msg.Context())
	require.True(t, ok)
	return r
}

// No cursor leads to the event, so the next owner must reconcile again.
func TestAReconciliationCountsOnceWhatItHasFoundIsHandled(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		config := eager(j)
		config.Timing.BehindAfter, config.Timing.ReconcileInterval = time.Hour, 2*time.Second
		_, messages := subscribe(t, config, often)
		ys := 0
		xs := apart(messages)
		busy(t, j, &ys, "a reconciliation is stored", func() bool { return !progress(t, j).Reconciled.IsZero() })
		write(t, at(t, client, func() time.Time { return time.Now().Add(-time.Second) }), "x", 0, 1)
		msg := receive(t, xs)
		handed := time.Now()
		busy(t, j, &ys, "the cursor goes on", func() bool { return progress(t, j).Cursor.After(handed.Add(5 * time.Second)) })
		assert.True(t, progress(t, j).Reconciled.Before(handed))
		assert.False(t, isBehind(t, j), "it only waits for its handler")
		msg.Ack()
		busy(t, j, &ys, "another one is stored", func() bool { return progress(t, j).Reconciled.After(handed) })
	})
}

// A former owner deletes the entry of an aggregate that it has handled. The request may arrive when
// only that entry leads to later events.
func TestALateRemovalDoesNotHideEventsThatOnlyTheListLedTo(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		write(t, j, "x", 0, 1)
		first, messages := subscribe(t, eager(j), often)
		xs, ys := apart(messages), 0
		receive(t, xs) // never answered
		busy(t, j, &ys, "x is listed", func() bool { return isBehind(t, j) })
		former := first.Shards()[0].Epoch
		require.NoError(t, first.Close())
		group, store := checkpoint.Group{Name: "group"}, checkpoint.New(j)
		require.NoError(t, store.Advance(t.Context(), group, account("x"), former, 0, 1), "it was handled all the same")
		// The event is dated before the cursor.
		write(t, at(t, client, func() time.Time { return time.UnixMilli(1) }), "x", 1, 1)

		second, messages := subscribe(t, eager(j), often)
		assert.Equal(t, "x/2", string(receive(t, apart(messages)).Payload)) // never answered
		eventually(t, "a late removal is refused", func() bool {
			late := checkpoint.Revision{Epoch: former, Number: 1 << 60}
			return errors.Is(store.UnlistBehind(t.Context(), group, account("x"), late), checkpoint.ErrFenced)
		})
		assert.True(t, isBehind(t, j))
		require.NoError(t, second.Close())

		_, messages = subscribe(t, eager(j), often)
		assert.Equal(t, "x/2", string(receive(t, apart(messages)).Payload))
	})
}

// If the first stream of an aggregate were forgotten, a second one could list the aggregate while
// the first deletes its entry.
func TestAnAggregateThatIsOnTheListIsNotForgotten(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		faulty, j := dynamotest.NewProxy(t, client), open(t, client)
		write(t, j, "x", 0, 1)
		_, messages := subscribe(t, eager(open(t, faulty.Client(testdb.Once))), often, subscriber.IdleStreams(1))
		xs, ys := apart(messages), 0
		first := receive(t, xs)
		busy(t, j, &ys, "x is listed", func() bool { return isBehind(t, j) })
		refused := faulty.Inject(dynamotest.CutConnection(), dynamotest.On("DeleteItem"), onRow("behind/x", ""))
		first.Ack()
		busy(t, j, &ys, "it cannot be taken off", func() bool { return refused.Fired() >= 3 })
		write(t, j, "x", 1, 1)
		receive(t, xs) // never answered
		cursor := progress(t, j).Cursor
		busy(t, j, &ys, "the attempt that was under way is over", func() bool { return progress(t, j).Cursor.After(cursor) })
		var unlisted sync.Once
		gone := make(chan struct{})
		faulty.Inject(dynamotest.Pause(func(context.Context) { unlisted.Do(func() { close(gone) }) }), dynamotest.On("DeleteItem"), onRow("behind/x", ""))
		refused.Remove()
		cursor = progress(t, j).Cursor
		busy(t, j, &ys, "the cursor goes on", func() bool { return progress(t, j).Cursor.After(cursor.Add(100 * time.Millisecond)) })

		assert.True(t, isBehind(t, j), "x/2 is not handled")
		select {
		case <-gone:
			assert.Fail(t, "x was taken off the list")
		default:
		}
	})
}

func TestAnAggregateIsNotForgottenBeforeItsPositionIsStored(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j := open(t, client)
	config := quick(open(t, client))
	config.Timing.CommitInterval = time.Hour
	_, messages := subscribe(t, config, subscriber.IdleStreams(1))
	for _, id := range []string{"x", "y", "z"} {
		write(t, j, id, 0, 1)
		receiveAll(t, messages, 1)
	}
	for n := 1; n <= 5; n++ {
		write(t, j, "z", n, 1)
		receiveAll(t, messages, 1)
	}
	write(t, j, "x", 1, 1)
	assert.Equal(t, expect("x", 2, 2), receiveAll(t, messages, 1))
}
