package subscriber_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
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

// skipped returns the stored records of skipped events.
func skipped(t *testing.T, j *journal.Journal) (records []groups.SkippedEvent) {
	t.Helper()
	for e, err := range groups.Of(j, "group", topic).Skipped(context.Background(), aggregate.ID{}, 0) {
		require.NoError(t, err)
		records = append(records, e)
	}
	return records
}

// skippedNumbers returns the numbers of the records, all of which must be of x.
func skippedNumbers(t *testing.T, j *journal.Journal) (numbers []uint64) {
	t.Helper()
	for _, e := range skipped(t, j) {
		require.Equal(t, account("x"), e.Aggregate)
		numbers = append(numbers, e.Number)
	}
	return numbers
}

// stored returns the stored position on x.
func stored(t *testing.T, j *journal.Journal) uint64 {
	t.Helper()
	position, err := groups.New(j).Position(context.Background(), "group", account("x"))
	require.NoError(t, err)
	return position
}

// nack receives the same message n times and nacks it.
func nack(t *testing.T, messages <-chan *message.Message, payload string, n int) {
	t.Helper()
	for range n {
		msg := receive(t, messages)
		require.Equal(t, payload, string(msg.Payload))
		msg.Nack()
	}
}

// takeAway makes the next member that checks take shard 0 in a new term.
func takeAway(t *testing.T, j *journal.Journal) {
	t.Helper()
	_, err := checkpoint.New(j).ModifyMembership(context.Background(), checkpoint.Key{Group: "group", Topic: topic},
		func(r checkpoint.Membership) (checkpoint.Membership, error) {
			r, nobody := r.Join(checkpoint.Member{Operator: true})
			return r.Take(nobody, []int{0}).Leave(nobody), nil
		})
	require.NoError(t, err)
}

func TestAnEventThatKeepsFailingIsSkippedAndARecordOfItStays(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 4)
	config := quick(j)
	config.Failures = subscriber.Skip(3)
	undecodable := errors.New("cannot read this: " + strings.Repeat("ü", 2000))
	config.Unmarshaler = unmarshaler(func(r *journal.Record) (*message.Message, error) {
		if string(r.Payload) == "x/3" {
			return nil, undecodable
		}
		return message.NewMessage(r.EventID, r.Payload), nil
	})
	sub, messages := subscribe(t, config)
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
	nack(t, messages, "x/2", 3)
	assert.Equal(t, expect("x", 4, 4), receiveAll(t, messages, 1), "the aggregate goes on")

	records := skipped(t, j)
	require.Len(t, records, 2)
	for i, want := range []string{"the message was nacked without a reason (see subscriber.NackReason), 3 times", "cannot read this"} {
		r := records[i]
		assert.Equal(t, groups.SkippedEvent{Aggregate: account("x"), Number: uint64(i + 2), EventType: "deposited", At: r.At, Reason: r.Reason}, r)
		assert.Contains(t, r.Reason, want)
		assert.LessOrEqual(t, len(r.Reason), 1024)
		assert.WithinDuration(t, time.Now(), r.At, patience)
	}
	assert.EqualValues(t, 2, sub.Stats().Skipped)
	require.NoError(t, sub.Close())

	_, messages = subscribe(t, config)
	write(t, j, "x", 4, 1)
	assert.Equal(t, expect("x", 5, 5), receiveAll(t, messages, 1), "nothing of it comes again")
}

// Positions are flushed in batches, and the skip includes earlier acks.
func TestASkipMovesThePositionFromWhereItIsStored(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 4)
	config := quick(j)
	config.Timing.CommitInterval = time.Hour
	config.Failures = subscriber.Skip(1)
	sub, messages := subscribe(t, config)
	receiveAll(t, messages, 2)
	assert.Zero(t, stored(t, j), "nothing is flushed yet")
	nack(t, messages, "x/3", 1)
	last := receive(t, messages)
	require.Equal(t, "x/4", string(last.Payload))

	assert.EqualValues(t, 3, stored(t, j))
	assert.Equal(t, []uint64{3}, skippedNumbers(t, j))
	last.Ack()
	require.NoError(t, sub.Close())
	assert.EqualValues(t, 4, stored(t, j), "it goes on from there")
}

func TestAnEventIsSkippedOnceAlthoughTheWriteFails(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dynamotest.Fault{
		"replies are lost":   dynamotest.LoseReply(),
		"nothing gets there": dynamotest.CutConnection(),
		"transactions meet":  dynamotest.Conflict(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := create(t, 1)
			j, faulty := open(t, client), dynamotest.NewProxy(t, client)
			write(t, j, "x", 0, 3)
			config := quick(open(t, faulty.Client(testdb.Once)))
			config.Failures = subscriber.Skip(2)
			sub, messages := subscribe(t, config)

			// The membership exists by then. Creating it takes a transaction too.
			receiveAll(t, messages, 1)
			faulty.Inject(fault, dynamotest.On("TransactWriteItems"), dynamotest.Times(2))
			nack(t, messages, "x/2", 2)
			assert.Equal(t, expect("x", 3, 3), receiveAll(t, messages, 1), "it does not come again")

			assert.Equal(t, []uint64{2}, skippedNumbers(t, j))
			assert.EqualValues(t, 1, sub.Stats().Skipped)
		})
	}
}

func TestAnEventWhoseRecordCannotBeWrittenComesAgainAfterARestart(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j, faulty := open(t, client), dynamotest.NewProxy(t, client)
	write(t, j, "x", 0, 2)
	config := quick(open(t, faulty.Client(testdb.Once)))
	config.Failures = subscriber.Skip(1)
	sub, messages := subscribe(t, config)
	msg := receive(t, messages)
	faulty.Inject(dynamotest.CutConnection(), dynamotest.On("TransactWriteItems"))
	msg.Nack()
	eventually(t, "it has tried", func() bool { return sub.Stats().Failures > 0 })
	require.NoError(t, sub.Close())
	assert.Empty(t, skipped(t, j))

	_, messages = subscribe(t, quick(j))
	assert.Equal(t, expect("x", 1, 2), receiveAll(t, messages, 2))
}

// The handler's transaction was committed, and the handler received an error.
func TestAnEventThatWasHandledAfterAllIsNotGivenUp(t *testing.T) {
	t.Parallel()
	queue := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	for name, policy := range map[string]subscriber.FailurePolicy{
		"skip": subscriber.Skip(1), "stop": subscriber.Stop(1), "park": subscriber.Park(1),
		"poison queue": subscriber.PoisonQueue(1, queue, "poison"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := create(t, 1)
			j, faulty := open(t, client), dynamotest.NewProxy(t, client)
			write(t, j, "x", 0, 2)
			config := quick(open(t, faulty.Client(testdb.Once)))
			config.Failures = policy
			sub, messages := subscribe(t, config)
			msg := receive(t, messages)
			position, _ := subscriber.PositionFromContext(msg.Context())
			faulty.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
			require.Error(t, position.Commit(msg.Context(), func(ctx context.Context, a subscriber.Advance) error {
				return transact(ctx, faulty.Client(testdb.Once), a)
			}))
			msg.Nack()

			assert.Equal(t, expect("x", 2, 2), receiveAll(t, messages, 1))
			stats := sub.Stats()
			assert.Zero(t, stats.Skipped+stats.Stopped+stats.Parked+stats.Poisoned)
			assert.Empty(t, skipped(t, j))
		})
	}
}

// A handler whose message was given up may still run its transaction, which counts.
func TestASkipWaitsForAHandlersTransaction(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 1)
		j := open(t, client)
		write(t, j, "x", 0, 2)
		config := quick(j)
		config.AckDeadline = 10 * time.Millisecond
		config.Failures = subscriber.Skip(1)
		sub, messages := subscribe(t, config)
		msg := receive(t, messages)
		goOn, committed := make(chan struct{}), make(chan error, 1)
		position, _ := subscriber.PositionFromContext(msg.Context())
		go func() {
			committed <- position.Commit(context.Background(), func(ctx context.Context, a subscriber.Advance) error {
				<-goOn
				return transact(ctx, client, a)
			})
		}()
		eventually(t, "the skip is put off", func() bool { return sub.Stats().Expired == 1 && sub.Stats().Failures > 0 })
		assert.Empty(t, skipped(t, j))
		close(goOn)
		require.NoError(t, <-committed)

		next := receive(t, messages)
		assert.Equal(t, "x/2", string(next.Payload))
		next.Ack()
		assert.Zero(t, sub.Stats().Skipped)
		assert.Empty(t, skipped(t, j))
	})
}

func TestCloseDoesNotWaitForAHandlersTransactionThatHangs(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 1)
		j := open(t, client)
		write(t, j, "x", 0, 1)
		config := quick(j)
		config.AckDeadline, config.CloseTimeout = 10*time.Millisecond, 10*time.Millisecond
		config.Failures = subscriber.Skip(1)
		sub, messages := subscribe(t, config)
		msg := receive(t, messages)
		goOn, entered := make(chan struct{}), make(chan struct{})
		defer close(goOn)
		position, _ := subscriber.PositionFromContext(msg.Context())
		go func() {
			_ = position.Commit(context.Background(), func(context.Context, subscriber.Advance) error {
				close(entered)
				<-goOn
				return errRefused
			})
		}()
		<-entered
		eventually(t, "the skip is put off", func() bool { return sub.Stats().Expired == 1 && sub.Stats().Failures > 0 })

		closes(t, sub)
		assert.Empty(t, skipped(t, j))
	})
}

func TestAMemberThatLostItsShardSkipsNothing(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j, faulty := open(t, client), dynamotest.NewProxy(t, client)
	write(t, j, "x", 0, 2)
	config := quick(open(t, faulty.Client(testdb.Once)))
	config.Failures = subscriber.Skip(1)
	sub, messages := subscribe(t, config)
	msg := receive(t, messages)
	entered, goOn := make(chan struct{}), make(chan struct{})
	faulty.Inject(dynamotest.Pause(func(context.Context) {
		close(entered)
		<-goOn
	}), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	late := faulty.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	recording := faulty.Record()
	msg.Nack()
	<-entered
	takeAway(t, j)
	other := quick(j)
	other.Failures = subscriber.Skip(100)
	_, others := subscribe(t, other)
	again := receive(t, others)
	require.Equal(t, "x/1", string(again.Payload), "the next owner has it")

	close(goOn)
	eventually(t, "the write arrives, though nobody waits for it any more", func() bool { return late.Arrive() == 1 })
	for _, call := range recording.Calls("TransactWriteItems") {
		require.Error(t, call.Err)
	}
	again.Ack()
	assert.Equal(t, expect("x", 2, 2), receiveAll(t, others, 1))
	assert.Empty(t, skipped(t, j))
	assert.Zero(t, sub.Stats().Skipped)
}

func TestWhatWasSkippedStaysSkippedWhenTheMemberDiesBeforeTheReply(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j, faulty := open(t, client), dynamotest.NewProxy(t, client)
	write(t, j, "x", 0, 2)
	config := quick(open(t, faulty.Client(testdb.Once)))
	config.Failures = subscriber.Skip(1)
	_, messages := subscribe(t, config)
	msg := receive(t, messages)
	done, goOn := make(chan struct{}), make(chan struct{})
	defer close(goOn)
	faulty.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	faulty.Inject(dynamotest.PauseReply(func(context.Context) {
		close(done)
		<-goOn
	}), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))
	msg.Nack()
	<-done
	takeAway(t, j)

	_, others := subscribe(t, quick(j))
	assert.Equal(t, expect("x", 2, 2), receiveAll(t, others, 1))
	assert.Equal(t, []uint64{1}, skippedNumbers(t, j))
}
