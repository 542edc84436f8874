package subscriber_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// state reads the group.
func state(t *testing.T, j *journal.Journal) groups.Status {
	t.Helper()
	g, err := groups.Of(j, "group", topic).Status(context.Background())
	require.NoError(t, err)
	return g
}

// atRest waits until the group is paused and no member owns a shard.
func atRest(t *testing.T, j *journal.Journal) {
	t.Helper()
	eventually(t, "the group is paused and at rest", func() bool {
		now := state(t, j)
		return now.Paused && len(now.Free()) == len(now.Shards)
	})
}

func TestAnEventThatKeepsFailingStopsTheGroupUntilItIsResumed(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 4)
		j, g := open(t, client), groups.Of(open(t, client), "group", topic)
		config := shortLease(j)
		config.Failures = subscriber.Stop(3)
		first, messages := subscribe(t, config)
		second, others := subscribe(t, config)
		eventually(t, "they share", func() bool { return len(numbers(first)) == 2 && len(numbers(second)) == 2 })
		write(t, j, "x", 0, 2)
		if held := numbers(second); j.Internal().Shard(account("x")) == held[0] || j.Internal().Shard(account("x")) == held[1] {
			first, second, messages, others = second, first, others, messages
		}

		nack(t, messages, "x/1", 3)
		atRest(t, j)
		now := state(t, j)
		assert.True(t, now.Paused)
		require.NotNil(t, now.Stopped)
		assert.Equal(t, groups.Stopped{
			Aggregate: account("x"), Number: 1, EventType: "deposited", At: now.Stopped.At, Reason: "the message was nacked without a reason (see subscriber.NackReason), 3 times",
		}, *now.Stopped)
		assert.WithinDuration(t, time.Now(), now.Stopped.At, patience)
		assert.EqualValues(t, 1, first.Stats().Stopped)
		assert.Zero(t, second.Stats().Stopped)
		assert.Zero(t, stored(t, j), "nothing is passed over")

		write(t, j, "y", 0, 1)
		awaitHeartbeats(t, j, 2)
		require.NoError(t, g.Pause(t.Context()))
		assert.NotNil(t, state(t, j).Stopped, "to pause it changes nothing")
		assert.EqualValues(t, 3, first.Stats().Delivered, "nothing came")
		assert.Zero(t, second.Stats().Delivered, "nothing came")

		require.NoError(t, g.Resume(t.Context()))
		now = state(t, j)
		assert.False(t, now.Paused)
		assert.Nil(t, now.Stopped)
		all := make(chan string)
		go func() {
			failures := 0
			for {
				select {
				case msg := <-messages:
					if string(msg.Payload) == "x/1" && failures < 2 {
						failures++
						msg.Nack() // attempts are counted from the start
						continue
					}
					all <- string(msg.Payload)
					msg.Ack()
				case msg := <-others:
					if string(msg.Payload) == "x/1" && failures < 2 {
						failures++
						msg.Nack()
						continue
					}
					all <- string(msg.Payload)
					msg.Ack()
				case <-t.Context().Done():
					return
				}
			}
		}()
		assert.ElementsMatch(t, []string{"x/1", "x/2", "y/1"}, []string{<-all, <-all, <-all})
		assert.False(t, state(t, j).Paused)
	})
}

// Bursts count on, see TestStopAndBlockCountAcrossBursts.
func TestStopCountsFromTheLastChangeOfTheOwner(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := open(t, create(t, 1))
		config := shortLease(j)
		config.Failures = subscriber.Stop(3)
		write(t, j, "x", 0, 1)
		for range 3 {
			sub, messages := subscribe(t, config)
			nack(t, messages, "x/1", 2)
			receive(t, messages) // in the handler while the member ends
			require.NoError(t, sub.Close())
			require.Nil(t, state(t, j).Stopped)
		}
		_, messages := subscribe(t, config)
		nack(t, messages, "x/1", 3)
		atRest(t, j)
		assert.NotNil(t, state(t, j).Stopped)
	})
}

func TestAGroupThatWasStoppedAndResumedAtOnceIsNotStoppedByARepeatedWrite(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j, faulty := open(t, client), dynamotest.NewProxy(t, client)
	write(t, j, "x", 0, 1)
	config := quick(open(t, faulty.Client(testdb.Once)))
	config.Failures = subscriber.Stop(2)
	_, messages := subscribe(t, config)
	faulty.Inject(dynamotest.LoseReply(), dynamotest.On("UpdateItem"), onStop(), dynamotest.Times(1))
	faulty.Inject(dynamotest.PauseReply(func(ctx context.Context) {
		assert.True(t, state(t, j).Paused, "it was done")
		assert.NoError(t, groups.Of(j, "group", topic).Resume(ctx))
	}), dynamotest.On("UpdateItem"), onStop(), dynamotest.Times(1))
	nack(t, messages, "x/1", 2)

	again := receive(t, messages)
	assert.False(t, state(t, j).Paused)
	again.Nack()
	nack(t, messages, "x/1", 1) // attempts are counted from the start
	atRest(t, j)
	assert.NotNil(t, state(t, j).Stopped, "and it stops again")
}

func TestAGroupIsStoppedOnceAlthoughRepliesAreLost(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j, faulty := open(t, client), dynamotest.NewProxy(t, client)
	write(t, j, "x", 0, 1)
	config := quick(open(t, faulty.Client(testdb.Once)))
	config.Failures = subscriber.Stop(2)
	sub, messages := subscribe(t, config)
	faulty.Inject(dynamotest.LoseReply(), dynamotest.On("UpdateItem"), onStop(), dynamotest.Times(1))
	nack(t, messages, "x/1", 2)

	atRest(t, j)
	assert.EqualValues(t, 1, sub.Stats().Stopped)
	assert.EqualValues(t, 2, sub.Stats().Delivered, "it does not come again")
	require.NotNil(t, state(t, j).Stopped)
}

func TestAFormerOwnerStopsNothing(t *testing.T) {
	t.Parallel()
	for name, interfere := range map[string]func(t *testing.T, j *journal.Journal, g *groups.Group){
		"its shard was taken over": func(t *testing.T, j *journal.Journal, _ *groups.Group) { takeAway(t, j) },
		"the group was reset": func(t *testing.T, _ *journal.Journal, g *groups.Group) {
			assert.NoError(t, g.Reset(context.Background(), subscriber.Beginning(), nil))
		},
		"the group was removed": func(t *testing.T, _ *journal.Journal, g *groups.Group) {
			assert.NoError(t, g.Remove(context.Background(), groups.RemoveOptions{Force: true}))
		},
		"the group was paused and resumed": func(t *testing.T, _ *journal.Journal, g *groups.Group) {
			assert.NoError(t, g.Pause(context.Background()))
			assert.NoError(t, g.Resume(context.Background()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				client := create(t, 1)
				j, faulty := open(t, client), dynamotest.NewProxy(t, client)
				write(t, j, "x", 0, 1)
				config := shortLease(open(t, faulty.Client(testdb.Once)))
				config.Failures = subscriber.Stop(1)
				sub, messages := subscribe(t, config)
				meanwhile := dynamotest.Pause(func(context.Context) { interfere(t, j, groups.Of(j, "group", topic)) })
				faulty.Inject(meanwhile, dynamotest.On("UpdateItem"), onStop(), dynamotest.Times(1))
				nack(t, messages, "x/1", 1)

				assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1), "it comes again")
				assert.Zero(t, sub.Stats().Stopped)
				assert.False(t, state(t, j).Paused)
			})
		})
	}
}

func TestAGroupThatAnOperatorHasPausedMeanwhileIsPausedByThem(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j, faulty := open(t, client), dynamotest.NewProxy(t, client)
	write(t, j, "x", 0, 1)
	config := quick(open(t, faulty.Client(testdb.Once)))
	config.Failures = subscriber.Stop(1)
	sub, messages := subscribe(t, config)
	faulty.Inject(dynamotest.Pause(func(ctx context.Context) {
		assert.NoError(t, groups.Of(j, "group", topic).Pause(ctx))
	}), dynamotest.On("UpdateItem"), onStop(), dynamotest.Times(1))
	nack(t, messages, "x/1", 1)

	atRest(t, j)
	now := state(t, j)
	assert.True(t, now.Paused)
	assert.Nil(t, now.Stopped)
	assert.Zero(t, sub.Stats().Stopped)
}

func TestAStoppedGroupGoesOnWithoutTheEventThatAnOperatorSkips(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 1)
		g := groups.New(j)
		write(t, j, "x", 0, 2)
		config := shortLease(j)
		config.Failures = subscriber.Stop(1)
		_, messages := subscribe(t, config)
		nack(t, messages, "x/1", 1)
		atRest(t, j)

		why := state(t, j).Stopped
		require.NotNil(t, why)
		require.NoError(t, g.Skip(t.Context(), "group", why.Aggregate, why.Number))
		assert.NotNil(t, state(t, j).Stopped, "until it is resumed")
		require.NoError(t, g.Of("group", topic).Resume(t.Context()))

		assert.Equal(t, expect("x", 2, 2), receiveAll(t, messages, 1))
		assert.Equal(t, []uint64{1}, skippedNumbers(t, j))
	})
}
