package subscriber_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// apparatus is a journal in a process with a fake clock, and a proxy for members that meet faults.
func apparatus(t *testing.T, shards int) (*journal.Journal, *dynamotest.DB, *dynamotest.Proxy) {
	t.Helper()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: shards}))
	return open(t, db.Client()), db, dynamotest.NewProxy(t, db.Client())
}

// forGood returns a fault with which the reply never comes.
func forGood() dynamotest.Fault { return dynamotest.Latency(1000*time.Hour, 1000*time.Hour) }

// receivePatiently returns the next message, by the fake clock.
func receivePatiently(t *testing.T, messages <-chan *message.Message, patience time.Duration) *message.Message {
	t.Helper()
	select {
	case msg := <-messages:
		msg.Ack()
		return msg
	case <-time.After(patience):
		require.FailNow(t, "no message came")
		return nil
	}
}

func TestAReadOfTheMembershipThatHangsDoesNotStopAMember(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j, _, proxy := apparatus(t, 1)
		_, messages := subscribe(t, subscriber.Config{Journal: open(t, proxy.Client()), ConsumerGroup: "group"})
		write(t, j, "x", 0, 1)
		receiveAll(t, messages, 1)
		time.Sleep(3 * time.Second)                      // the read of its position
		down := proxy.Inject(dynamotest.CutConnection()) // longer than a lease
		time.Sleep(14 * time.Second)
		hung := proxy.Inject(forGood(), dynamotest.On("GetItem"), dynamotest.Times(1))
		down.Remove()
		time.Sleep(time.Second)
		write(t, j, "x", 1, 1)
		began := time.Now()
		assert.Equal(t, expect("x", 2, 2), receiveAll(t, messages, 1))
		assert.Less(t, time.Since(began), time.Minute)
		assert.Equal(t, 1, hung.Fired())
	})
}

func TestAReadOfHeadsThatHangsDoesNotEndTheReconciliations(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j, db, proxy := apparatus(t, 2)
		_, messages := subscribe(t, subscriber.Config{
			Journal: open(t, proxy.Client()), ConsumerGroup: "group", Timing: subscriber.Timing{
				ReconcileInterval: 10 * time.Minute,
				PollInterval:      10 * time.Second, MaxPollInterval: time.Minute, CommitInterval: 10 * time.Second, LeaseDuration: 5 * time.Minute,
			},
		})
		write(t, j, "x", 0, 1)
		receiveAll(t, messages, 1)
		hung := proxy.Inject(forGood(), dynamotest.On("Query"), dynamotest.Table("snapshot"), dynamotest.Times(1))
		time.Sleep(20 * time.Minute)
		write(t, at(t, db.Client(), func() time.Time { return time.Now().Add(-24 * time.Hour) }), "late", 0, 1)
		began := time.Now()
		require.Equal(t, "late/1", string(receivePatiently(t, messages, time.Hour).Payload))
		assert.Less(t, time.Since(began), 15*time.Minute)
		assert.Equal(t, 1, hung.Fired())
	})
}

func TestCloseDoesNotWaitForAHeartbeatThatHangs(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{10 * time.Second, time.Minute} {
		testdb.WithFakeTime(t, func(t *testing.T) {
			j, _, proxy := apparatus(t, 1)
			config := subscriber.Config{Journal: open(t, proxy.Client()), ConsumerGroup: "group", Timing: subscriber.Timing{LeaseDuration: lease}, CloseTimeout: 2 * time.Second}
			sub, messages := subscribe(t, config)
			write(t, j, "x", 0, 1)
			receive(t, messages) // never answered
			proxy.Inject(forGood(), dynamotest.On("UpdateItem"), onRow("shards", ""))
			time.Sleep(lease/4 + time.Second)
			var closing atomic.Bool
			go func() {
				for n := range 20 {
					_, err := j.Internal().Append(context.Background(), storage.Commit{
						Aggregate: account("y"), Expected: uint64(n), Events: []storage.Event{{Type: "deposited", Payload: []byte("1")}},
					})
					assert.NoError(t, err)
					time.Sleep(100 * time.Millisecond)
				}
			}()
			var late atomic.Int64
			go func() {
				for range messages {
					if closing.Load() {
						late.Add(1)
					}
				}
			}()
			began := time.Now()
			closing.Store(true)
			require.NoError(t, sub.Close())
			assert.LessOrEqual(t, time.Since(began), config.CloseTimeout+time.Second)
			assert.LessOrEqual(t, late.Load(), int64(1), "no message goes out any more")
			time.Sleep(5 * time.Second)
		})
	}
}

func TestCloseStoresPositionsAlthoughItIsThrottledForAMoment(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j, _, proxy := apparatus(t, 1)
		write(t, j, "x", 0, 20)
		config := subscriber.Config{Journal: open(t, proxy.Client(testdb.Once)), ConsumerGroup: "group", Timing: subscriber.Timing{CommitInterval: time.Hour}}
		sub, messages := subscribe(t, config)
		receiveAll(t, messages, 20)
		throttled := proxy.Inject(dynamotest.Throttle(), dynamotest.On("UpdateItem"), onRow("position/", ""), dynamotest.Times(3))
		require.NoError(t, sub.Close())
		assert.Equal(t, 3, throttled.Fired())
		assert.EqualValues(t, 20, stored(t, j))
	})
}

func TestAShardWhosePositionsCannotBeStoredHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	j, _, proxy := apparatus(t, 2)
	sick, well := "", ""
	for n := 0; sick == "" || well == ""; n++ {
		id := string(rune('a' + n))
		if j.Internal().Shard(account(id)) == 0 {
			sick = id
		} else {
			well = id
		}
	}
	const most, inFlight = 10, 4
	config := unanswered(quick(open(t, proxy.Client())))
	config.MaxInFlight = inFlight
	proxy.Inject(dynamotest.Throttle(), dynamotest.On("UpdateItem"), dynamotest.Matching(func(_ string, in any) bool {
		update := in.(*dynamodb.UpdateItemInput)
		partition, _ := update.Key["pkey"].(*types.AttributeValueMemberS)
		sort, _ := update.Key["skey"].(*types.AttributeValueMemberS)
		return partition.Value == "group/account-0" && strings.HasPrefix(sort.Value, "position/")
	}))
	_, messages := subscribe(t, config, subscriber.MaxUnstored(most))
	written := 0
	for n := 0; written < 5*most; n++ {
		if id := sick + string(rune('a'+n%26)) + string(rune('a'+n/26)); j.Internal().Shard(account(id)) == 0 {
			write(t, j, id, 0, 1)
			written++
		}
	}
	receiveAll(t, messages, most)
	write(t, j, well, 0, 1)
	for {
		msg := receive(t, messages)
		msg.Ack()
		if string(msg.Payload) == well+"/1" {
			return
		}
	}
}

func TestABroadcastDeliversALateEventOfAForgottenAggregate(t *testing.T) {
	t.Parallel()
	j, db, shown := late(t, "late")
	shown.Store(true)
	config := broadcast(j)
	config.TrailingDelay = 100 * time.Millisecond
	_, messages := subscribe(t, config, subscriber.IdleStreams(1), subscriber.MaxUnstored(2))
	other := open(t, db.Client()) // commits through it do not wake the subscriber
	n := 0
	others := func() {
		for range 5 {
			write(t, other, string(rune('a'+n)), 0, 1)
			require.Equal(t, string(rune('a'+n))+"/1", receiveAll(t, messages, 1)[0])
			n++
			time.Sleep(50 * time.Millisecond)
		}
	}
	write(t, other, "late", 0, 1)
	require.Equal(t, expect("late", 1, 1), receiveAll(t, messages, 1))
	others() // x is then forgotten
	shown.Store(false)
	write(t, other, "late", 1, 1)
	others()
	shown.Store(true)
	write(t, other, "late", 2, 1)
	assert.Equal(t, expect("late", 2, 3), receiveAll(t, messages, 2))
}

// Events that handlers hold, and those that wait behind them, exceed the buffer, while lanes are
// free.
func TestHandlersThatHangWithLargeEventsBlockNoOtherAggregate(t *testing.T) {
	t.Parallel()
	for name, events := range map[string]int{"one event each": 1, "ten events each": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				j, _, _ := apparatus(t, 4)
				const hanging = 20
				for n := range hanging {
					commit := storage.Commit{Aggregate: account(fmt.Sprint("hanging", n))}
					for range events {
						commit.Events = append(commit.Events, storage.Event{Type: "deposited", Payload: make([]byte, 4000/events)})
					}
					_, err := j.Internal().Append(t.Context(), commit)
					require.NoError(t, err)
				}
				_, messages := subscribe(t, unanswered(subscriber.Config{Journal: j, ConsumerGroup: "group", BufferBytes: 64 << 10}))
				for range hanging {
					receive(t, messages) // never answered
				}
				write(t, j, "healthy", 0, 3)
				assert.Equal(t, expect("healthy", 1, 3), receiveAll(t, messages, 3))
			})
		})
	}
}
