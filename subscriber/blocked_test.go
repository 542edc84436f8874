package subscriber_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

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

// entryOf returns the entry of x on the behind list, if there is one.
func entryOf(t *testing.T, j *journal.Journal) (checkpoint.Behind, bool) {
	t.Helper()
	b, listed, err := checkpoint.New(j).Listed(t.Context(), checkpoint.Group{Name: "group"}, account("x"))
	require.NoError(t, err)
	return b, listed
}

// injector is a database or a proxy.
type injector interface {
	Inject(dynamotest.Fault, ...dynamotest.When) *dynamotest.Injection
}

// holdEntry fails the writes of the entry of x until release.
func holdEntry(faults injector) *dynamotest.Injection {
	return faults.Inject(dynamotest.CutConnection(), dynamotest.On("UpdateItem"), onRow("behind/x", ""))
}

// awaitFailure waits until the failure of x is noted.
func awaitFailure(t *testing.T, sub *subscriber.Subscriber) {
	t.Helper()
	eventually(t, "the failure is noted", func() bool {
		shards := sub.Shards()
		return len(shards) == 1 && shards[0].Blocked == 1
	})
}

// release lets the entry of x be written. A write that began before the failure was noted does not
// contain it, so release first waits until a later write has begun.
func release(t *testing.T, j *journal.Journal, ys *int, held *dynamotest.Injection) {
	t.Helper()
	before := held.Fired()
	busy(t, j, ys, "a later write has begun", func() bool { return held.Fired() >= before+2 })
	held.Remove()
}

// refuse nacks a message with an error.
func refuse(msg *message.Message, err error) {
	subscriber.SetNackReason(msg.Context(), err)
	msg.Nack()
}

// once returns a config that retries a failed event after an hour.
func once(c subscriber.Config) subscriber.Config {
	c.NackResendSleep, c.MaxNackResendSleep = time.Hour, time.Hour
	return c
}

func TestAnAggregateThatFailsIsListedWithTheReasonAndTheAttempts(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		faulty, j := dynamotest.NewProxy(t, client), open(t, client)
		write(t, j, "x", 0, 2)
		held := holdEntry(faulty)
		sub, messages := subscribe(t, eager(open(t, faulty.Client(testdb.Once))), often)
		xs, ys := apart(messages), 0
		receive(t, xs).Ack()
		began := time.Now().Truncate(time.Millisecond)
		for range 3 {
			refuse(receive(t, xs), errDeclined)
		}
		fourth := receive(t, xs) // so the third failure has been recorded
		release(t, j, &ys, held)
		busy(t, j, &ys, "x is listed", func() bool { return isBehind(t, j) })

		entry, _ := entryOf(t, j)
		require.NotNil(t, entry.Failure)
		assert.EqualValues(t, 2, entry.Failure.Number)
		assert.Equal(t, "the card was declined, 3 times", entry.Failure.Reason)
		assert.False(t, entry.Failure.At.Before(began) || entry.Failure.At.After(time.Now()), "%s", entry.Failure.At)
		assert.Nil(t, entry.Parked)

		fourth.Ack()
		busy(t, j, &ys, "its entry is gone", func() bool { return !isBehind(t, j) })
		assert.EqualValues(t, 3, sub.Stats().Nacked)
	})
}

func TestAnAggregateWhoseHandlerTakesLongIsListedWithoutAFailure(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 1)
	_, messages := subscribe(t, eager(j), often)
	xs, ys := apart(messages), 0
	receive(t, xs) // never answered
	busy(t, j, &ys, "x is listed", func() bool { return isBehind(t, j) })

	entry, _ := entryOf(t, j)
	assert.Nil(t, entry.Failure)
}

func TestAnAggregateThatFailsAfterItWasListedIsListedWithTheReason(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 1)
	_, messages := subscribe(t, once(eager(j)), often)
	xs, ys := apart(messages), 0
	slow := receive(t, xs)
	busy(t, j, &ys, "x is listed", func() bool { return isBehind(t, j) })
	refuse(slow, errDeclined)
	busy(t, j, &ys, "the entry has the failure", func() bool {
		entry, _ := entryOf(t, j)
		return entry.Failure != nil && entry.Failure.Reason == "the card was declined, once"
	})
}

// The next owner writes the entry again if it does not lead to all events. That may be before its
// first attempt.
func TestANewOwnerKeepsTheFailureUntilAnAttemptOfItsOwnFails(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	faulty, j := dynamotest.NewProxy(t, client), open(t, client)
	write(t, j, "x", 0, 1)
	xs, ys := 1, 0
	takeOver := func() (*subscriber.Subscriber, <-chan *message.Message) {
		write(t, j, "x", xs, 1) // the former entry does not lead to it
		xs++
		sub, messages := subscribe(t, once(eager(open(t, faulty.Client(testdb.Once)))), often)
		return sub, apart(messages)
	}
	rewritten := func(sub *subscriber.Subscriber) checkpoint.Behind {
		var entry checkpoint.Behind
		busy(t, j, &ys, "the owner has written the entry", func() bool {
			entry, _ = entryOf(t, j)
			shards := sub.Shards()
			return len(shards) == 1 && entry.Epoch == shards[0].Epoch
		})
		return entry
	}
	held := holdEntry(faulty)
	first, messages := takeOver()
	refuse(receive(t, messages), errDeclined)
	awaitFailure(t, first)
	release(t, j, &ys, held)
	failure := rewritten(first).Failure
	require.NotNil(t, failure)
	require.Equal(t, "the card was declined, once", failure.Reason)
	require.NoError(t, first.Close())

	second, messages := takeOver()
	receive(t, messages) // never answered
	assert.Equal(t, failure, rewritten(second).Failure)
	require.NoError(t, second.Close())

	held = holdEntry(faulty)
	third, messages := takeOver()
	refuse(receive(t, messages), errors.New("the card has expired"))
	awaitFailure(t, third)
	release(t, j, &ys, held)
	failure = rewritten(third).Failure
	require.NotNil(t, failure)
	assert.Equal(t, "the card has expired, once", failure.Reason)
	require.NoError(t, third.Close())

	_, messages = takeOver()
	receiveAll(t, messages, xs)
	busy(t, j, &ys, "its entry is gone", func() bool { return !isBehind(t, j) })
}

// panicking is an error of a handler with a bug.
type panicking struct{}

func (panicking) Error() string { panic("a bug") }

func TestAReasonOfAnySortIsListedAtTheCostOfOneUnit(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		err  error
		want string
	}{
		"long":       {errors.New(strings.Repeat("ä", 5<<10)), strings.Repeat("ä", 147) + ", once"},
		"no text":    {errors.New("bad \xff byte"), "bad ? byte, once"},
		"long bytes": {errors.New(strings.Repeat("a\xff", 5<<10)), strings.Repeat("a", 147) + ", once"},
		"panics":     {panicking{}, "%!v(PANIC=Error method: a bug), once"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, j := counted(t, 0)
			write(t, j, "x", 0, 1)
			recording := db.Record()
			defer recording.Stop()
			held := holdEntry(db)
			sub, messages := subscribe(t, once(eager(open(t, db.Client(testdb.Once)))), often)
			xs, ys := apart(messages), 0
			refuse(receive(t, xs), of.err)
			awaitFailure(t, sub)
			release(t, j, &ys, held)
			busy(t, j, &ys, "x is listed", func() bool { return isBehind(t, j) })

			entry, _ := entryOf(t, j)
			require.NotNil(t, entry.Failure)
			assert.Equal(t, of.want, entry.Failure.Reason)
			assert.True(t, utf8.ValidString(entry.Failure.Reason))
			assert.LessOrEqual(t, len(entry.Failure.Reason), checkpoint.MaxFailure)
			for _, call := range recording.Calls("UpdateItem") {
				assert.LessOrEqual(t, call.WriteUnits, 1.0)
			}
		})
	}
}

func TestAnAggregateWhoseEventCannotBeGivenUpIsListedWithTheReasonOfThat(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	faulty, j := dynamotest.NewProxy(t, client), open(t, client)
	write(t, j, "x", 0, 1)
	config := eager(open(t, faulty.Client(testdb.Once)))
	config.Failures = subscriber.PoisonQueue(1, unreachable{}, "poison")
	held := holdEntry(faulty)
	sub, messages := subscribe(t, config, often)
	xs, ys := apart(messages), 0
	refuse(receive(t, xs), errDeclined) // the next attempt is never answered
	eventually(t, "it cannot be given up", func() bool { return sub.Stats().Failures == 1 })
	release(t, j, &ys, held)
	busy(t, j, &ys, "x is listed", func() bool { return isBehind(t, j) })

	entry, _ := entryOf(t, j)
	require.NotNil(t, entry.Failure)
	assert.Contains(t, entry.Failure.Reason, fmt.Sprintf("publish event 1 of %s to the poison queue: the queue is down, ", account("x")))
}

// unreachable is a publisher whose broker is down.
type unreachable struct{}

func (unreachable) Publish(string, ...*message.Message) error { return errors.New("the queue is down") }
func (unreachable) Close() error                              { return nil }
