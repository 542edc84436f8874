package subscriber_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// leased starts a member with its own lease.
func leased(t *testing.T, client journal.Client, lease time.Duration) *subscriber.Subscriber {
	t.Helper()
	config := quick(open(t, client))
	config.Timing.LeaseDuration = lease
	sub, _ := subscribe(t, config)
	return sub
}

func TestMembersWithDifferentLeasesKeepTheirShards(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 4)
		long := leased(t, client, 6*time.Second)
		short := leased(t, client, time.Second)
		eventually(t, "they share", func() bool { return len(numbers(long)) == 2 && len(numbers(short)) == 2 })
		j := open(t, client)
		before := membership(t, j)

		// With the longer lease, the time between two heartbeats exceeds the shorter lease.
		awaitHeartbeats(t, j, 2)

		after := membership(t, j)
		assert.Equal(t, before.Owners, after.Owners)
		assert.Equal(t, before.Epochs, after.Epochs)
	})
}

func TestADeadMemberIsReplacedAfterItsOwnLease(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 2)
		p := &process{Client: client}
		first := leased(t, p, time.Second)
		eventually(t, "it has all shards", func() bool { return len(numbers(first)) == 2 })
		p.kill()

		standby := leased(t, client, time.Hour)
		eventually(t, "it has all shards", func() bool { return len(numbers(standby)) == 2 })
	})
}

func TestAMemberThatMissesSomeHeartbeatsKeepsItsShards(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 2)
		faulty := dynamotest.NewProxy(t, client)
		flaky, steady := leased(t, faulty.Client(testdb.Once), 2*time.Second), leased(t, client, time.Second)
		eventually(t, "they share", func() bool { return len(numbers(flaky)) == 1 && len(numbers(steady)) == 1 })
		j := open(t, client)
		before := membership(t, j)

		faulty.Inject(dynamotest.CutConnection(), dynamotest.On("UpdateItem"), onHeartbeat(), dynamotest.Times(2))
		awaitHeartbeats(t, j, 2)

		after := membership(t, j)
		assert.Equal(t, before.Owners, after.Owners)
		assert.Equal(t, before.Epochs, after.Epochs)
	})
}

func TestAMemberThatWaitsForAReplyToItsHeartbeatEndsItsWorkInTime(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 1)
		faulty := dynamotest.NewProxy(t, client)
		write(t, open(t, client), "x", 0, 1)
		_, messages := subscribe(t, shortLease(open(t, faulty.Client(testdb.Once))))
		msg := receive(t, messages)
		goOn := make(chan struct{})
		hang := func(context.Context) { <-goOn } // the handler ignores its context
		faulty.Inject(dynamotest.Pause(hang), dynamotest.On("UpdateItem"), onHeartbeat())
		defer close(goOn)

		ended(t, msg)
	})
}

func TestAMemberThatClosesKeepsItsShardUntilItsHandlersHaveAnswered(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 1)
		j := open(t, client)
		write(t, j, "x", 0, 2)
		config := quick(open(t, client))
		config.Timing.LeaseDuration, config.CloseTimeout = time.Second, patience
		first, messages := subscribe(t, config)
		msg := receive(t, messages)
		config.Journal = open(t, client)
		_, again := subscribe(t, config)
		owner := membership(t, j).Owners[0]
		closed := make(chan error)
		go func() { closed <- first.Close() }()

		awaitHeartbeats(t, j, 3)

		assert.Equal(t, owner, membership(t, j).Owners[0])
		msg.Ack()
		require.NoError(t, <-closed)
		assert.Equal(t, expect("x", 2, 2), receiveAll(t, again, 1))
	})
}

func TestAShardThatIsTakenWhileItsMemberClosesCutsOffItsHandler(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 1)
		j := open(t, client)
		write(t, j, "x", 0, 1)
		config := quick(open(t, client))
		config.Timing.LeaseDuration, config.CloseTimeout = time.Second, 2*patience
		sub, messages := subscribe(t, config)
		msg := receive(t, messages)
		closed := make(chan error)
		go func() { closed <- sub.Close() }()
		awaitHeartbeats(t, j, 1) // it waits for the handler
		require.NoError(t, msg.Context().Err())

		key := checkpoint.Key{Group: "group", Topic: topic}
		require.NoError(t, checkpoint.New(j).Operate(t.Context(), key, 0, func(context.Context, checkpoint.Shard, checkpoint.Membership) error {
			return nil
		}))

		ended(t, msg)
		require.NoError(t, <-closed)
	})
}

// One change of the membership cannot remove all of them.
func TestAnyNumberOfDeadMembersIsRemoved(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 4)
		j := open(t, client)
		crowd := checkpoint.NewMembership(4, time.Time{})
		for range 161 {
			crowd, _ = crowd.Join(checkpoint.Member{Lease: 100 * time.Millisecond})
		}
		_, err := checkpoint.New(j).ChangeMembership(t.Context(), checkpoint.Key{Group: "group", Topic: topic}, checkpoint.Membership{}, crowd)
		require.NoError(t, err)

		sub := leased(t, client, time.Second)

		eventually(t, "it is alone", func() bool { return len(membership(t, j).Members) == 1 })
		eventually(t, "it holds all shards", func() bool { return len(numbers(sub)) == 4 })
	})
}
