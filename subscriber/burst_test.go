package subscriber_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
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

// bursts runs bursts of one group, and records what its handler receives.
type bursts struct {
	t      *testing.T
	config subscriber.Config
	// handle is called for each message after it was recorded. It may be nil.
	handle func(*message.Message) error
	// logger is that of the router. It may be nil.
	logger watermill.LoggerAdapter

	mu       sync.Mutex
	received []string
}

func (b *bursts) run(ctx context.Context, hints ...subscriber.Hint) subscriber.Left {
	b.t.Helper()
	left, err := b.try(ctx, subscriber.Burst{Hints: hints})
	require.NoError(b.t, err)
	return left
}

func (b *bursts) try(ctx context.Context, burst subscriber.Burst) (subscriber.Left, error) {
	b.t.Helper()
	sub, err := subscriber.NewSubscriber(b.config, testLogger(b.t))
	require.NoError(b.t, err)
	router, err := message.NewRouter(message.RouterConfig{}, b.logger)
	require.NoError(b.t, err)
	router.AddConsumerHandler("handler", topic, sub, func(msg *message.Message) error {
		b.mu.Lock()
		b.received = append(b.received, string(msg.Payload))
		b.mu.Unlock()
		if b.handle != nil {
			return b.handle(msg)
		}
		return nil
	})
	return burst.Run(ctx, router)
}

// take returns what was received since the last call, sorted by aggregate.
func (b *bursts) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	received := b.received
	b.received = nil
	slices.SortStableFunc(received, func(x, y string) int {
		return strings.Compare(strings.Split(x, "/")[0], strings.Split(y, "/")[0])
	})
	return received
}

func hint(id string, version uint64) subscriber.Hint {
	return subscriber.Hint{Aggregate: account(id), Version: version}
}

func TestABurstHandlesTheEventsOfItsHints(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		write(t, j, "x", 0, 3)
		write(t, j, "y", 0, 2)
		assert.Zero(t, b.run(t.Context(), hint("x", 3)))
		assert.Equal(t, expect("x", 1, 3), b.take())
		write(t, j, "x", 3, 2)
		assert.Zero(t, b.run(t.Context(), hint("x", 5), hint("y", 2), hint("unknown", 7)))
		assert.Equal(t, append(expect("x", 4, 5), expect("y", 1, 2)...), b.take())
		write(t, j, "y", 2, 1)
		assert.Zero(t, b.run(t.Context(), hint("x", 1), hint("x", 99), hint("y", 99)))
		assert.Equal(t, expect("y", 3, 3), b.take())
	})
}

func TestASweepHandlesWhatHintsHaveMissed(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		write(t, j, "x", 0, 3)
		assert.Zero(t, b.run(t.Context()))
		assert.Equal(t, expect("x", 1, 3), b.take())
		write(t, j, "x", 3, 2)
		write(t, j, "y", 0, 200)
		assert.Zero(t, b.run(t.Context(), hint("y", 1)))
		assert.Zero(t, b.run(t.Context()))
		assert.Equal(t, append(expect("x", 4, 5), expect("y", 1, 200)...), b.take())
		assert.Zero(t, b.run(t.Context()))
		assert.Empty(t, b.take())
	})
}

// What a group of a burst commits to a topic is handled by the same burst.
func TestABurstHandlesWhatItsHandlersCommit(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 4, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		b.handle = func(msg *message.Message) error {
			if payload := string(msg.Payload); len(payload) < len("x/1")+6 {
				write(t, j, strings.Split(payload, "/")[0]+"x", 0, 1)
			}
			return nil
		}
		write(t, j, "x", 0, 1)
		assert.Zero(t, b.run(t.Context(), hint("x", 1)))
		assert.Equal(t, []string{"x/1", "xx/1", "xxx/1", "xxxx/1", "xxxxx/1", "xxxxxx/1", "xxxxxxx/1"}, b.take())
	})
}

// A goroutine that is left would fail the test too, because it runs in fake time.
func TestAfterABurstNothingRuns(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 4, func(t *testing.T, client *dynamodb.Client) {
		proxy := dynamotest.NewProxy(t, client)
		j := open(t, proxy.Client())
		logger := watermill.NewCaptureLogger()
		b := &bursts{t: t, config: quick(j), logger: logger}
		write(t, j, "x", 0, 3)
		b.run(t.Context())
		for range 5 {
			write(t, j, "x", len(b.received), 1)
			b.run(t.Context(), hint("x", 9))
			b.run(t.Context())
		}
		assert.Len(t, b.take(), 8)
		recording := proxy.Record()
		time.Sleep(time.Hour)
		assert.Empty(t, recording.Calls())
		assert.Empty(t, logger.Captured()[watermill.ErrorLogLevel])
	})
}

// What a hint leads to is read with strong consistency, because no further hint would come.
func TestWhatAHintLeadsToIsReadConsistently(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
		proxy := dynamotest.NewProxy(t, client)
		j := open(t, proxy.Client())
		b := &bursts{t: t, config: quick(j)}
		b.run(t.Context()) // makes the group
		write(t, j, "x", 0, 2)
		var reads atomic.Int64
		check := func(table *string, consistent *bool) {
			if *table != j.Config().Tables.Checkpoint {
				reads.Add(1)
				assert.True(t, aws.ToBool(consistent), "a read of %s", *table)
			}
		}
		proxy.Inject(dynamotest.Throttle(), dynamotest.Matching(func(_ string, input any) bool {
			switch in := input.(type) {
			case *dynamodb.QueryInput:
				assert.Nil(t, in.IndexName)
				check(in.TableName, in.ConsistentRead)
			case *dynamodb.GetItemInput:
				check(in.TableName, in.ConsistentRead)
			case *dynamodb.BatchGetItemInput:
				for table, keys := range in.RequestItems {
					check(&table, keys.ConsistentRead)
				}
			}
			return false // it only looks
		}))
		assert.Zero(t, b.run(t.Context(), hint("x", 2)))
		assert.Equal(t, []string{"x/1", "x/2"}, b.take())
		assert.Greater(t, reads.Load(), int64(1))
	})
}

// A sweep hands the shards on which others work over to these, so that it never misses one.
func TestABurstAlsoSweepsForASweep(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		b, other := &bursts{t: t, config: quick(j)}, &bursts{t: t, config: quick(open(t, client))}
		b.run(t.Context()) // makes the group
		write(t, j, "lost", 0, 1)
		write(t, j, "x", 0, 1)
		b.handle = func(*message.Message) error {
			time.Sleep(2 * time.Second)
			return nil
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			assert.Zero(t, b.run(t.Context(), hint("x", 1)))
		}()
		time.Sleep(time.Second)
		assert.Zero(t, other.run(t.Context()), "the other burst does it")
		<-ended
		assert.Equal(t, []string{"lost/1", "x/1"}, b.take())
		assert.Empty(t, other.take())
	})
}

// What is handed over to a burst that has no more time is counted, and the next one does it.
func TestWhatIsHandedOverTooLateIsLeft(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		b, other := &bursts{t: t, config: quick(j)}, &bursts{t: t, config: quick(open(t, client))}
		b.run(t.Context()) // makes the group
		write(t, j, "x", 0, 100)
		write(t, j, "y", 0, 1)
		b.handle = func(*message.Message) error {
			time.Sleep(2 * time.Second)
			return nil
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			assert.Equal(t, 2, b.run(ctx, hint("x", 100)).Aggregates, "x and y")
		}()
		time.Sleep(time.Second)
		assert.Zero(t, other.run(t.Context(), hint("y", 1)), "the other burst does it")
		<-ended
		assert.NotContains(t, b.take(), "y/1")
		write(t, j, "z", 0, 1)
		other.run(t.Context(), hint("z", 1))
		assert.Subset(t, other.take(), []string{"y/1", "z/1"})
	})
}

// Operators see that no process is missing.
func TestOperatorsSeeThatAGroupWorksInBursts(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		of := groups.Of(j, b.config.ConsumerGroup, topic)
		status := func() groups.Status {
			s, err := of.Status(t.Context())
			require.NoError(t, err)
			return s
		}
		write(t, j, "x", 0, 1)
		b.handle = func(*message.Message) error {
			for _, m := range status().Members {
				assert.False(t, m.Until.IsZero(), "a burst says when it ends")
				assert.False(t, m.Dead)
			}
			return nil
		}
		b.run(t.Context())
		s := status()
		assert.WithinDuration(t, time.Now(), s.LastBurst, time.Second)
		assert.Empty(t, s.Members)
		due, err := of.NextDue(t.Context())
		require.NoError(t, err)
		assert.Zero(t, due)

		time.Sleep(time.Minute)
		b.run(t.Context(), hint("y", 1))
		assert.Equal(t, s.LastBurst, status().LastBurst, "there was nothing to do")
		write(t, j, "y", 0, 1)
		b.run(t.Context(), hint("y", 1))
		assert.Greater(t, status().LastBurst, s.LastBurst)

		sub, _ := subscribe(t, b.config)
		require.Eventually(t, func() bool { return len(status().Members) == 1 }, patience, time.Second)
		assert.Zero(t, status().LastBurst, "a process runs for long")
		require.NoError(t, sub.Close())
		assert.Zero(t, status().LastBurst, "nothing handles the events any more")
	})
}

// An event that fails is tried again within the burst, then by a sweep when its pause has ended.
func TestAFailedEventWaitsForItsPauseAcrossBursts(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		b.config.NackResendSleep, b.config.MaxNackResendSleep = 100*time.Millisecond, time.Hour
		b.config.Failures = subscriber.Park(12)
		b.handle = func(msg *message.Message) error { return errors.New("fails") }
		write(t, j, "x", 0, 2)
		left := b.run(t.Context(), hint("x", 2))
		assert.Equal(t, 1, left.Aggregates)
		assert.Len(t, b.take(), 4, "its pauses are 0.1, 0.2, 0.4 and 0.8 seconds")
		for attempt := 5; attempt < 12; attempt++ {
			assert.Equal(t, 1, b.run(t.Context(), hint("x", 2)).Aggregates)
			assert.Empty(t, b.take(), "attempt %d is not due", attempt)
			time.Sleep(time.Until(left.Due))
			left = b.run(t.Context())
			assert.WithinDuration(t, left.Due, b.run(t.Context()).Due, time.Millisecond, "a sweep that visits nothing tells it")
			assert.Len(t, b.take(), 1, "attempt %d", attempt)
			assert.Greater(t, time.Until(left.Due), 100*time.Millisecond<<(attempt-2))
			due, err := groups.Of(j, b.config.ConsumerGroup, topic).NextDue(t.Context())
			require.NoError(t, err)
			assert.WithinDuration(t, left.Due, due, time.Millisecond, "it is stored")
		}
		time.Sleep(time.Until(left.Due))
		left = b.run(t.Context())
		assert.Len(t, b.take(), 1, "the last attempt")
		assert.Zero(t, left)
		assert.Zero(t, b.run(t.Context(), hint("x", 2)))
		assert.Empty(t, b.take(), "it is parked")
	})
}

// A process whose clock is a day ahead stores the time of the next attempt.
func TestAFailedEventDoesNotWaitForTheTimeOfAWrongClock(t *testing.T) {
	t.Parallel()
	for name, hints := range map[string][]subscriber.Hint{"hint": {hint("x", 1)}, "sweep": nil, "deferred": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
				tomorrow := func() time.Time { return time.Now().Add(24 * time.Hour) }
				right := &bursts{t: t, config: quick(open(t, client))}
				wrong := &bursts{t: t, config: quick(testjournal.Open(t, client, journal.Config{Now: tomorrow}))}
				wrong.config.NackResendSleep, wrong.config.MaxNackResendSleep = 30*time.Second, time.Minute
				wrong.handle = func(*message.Message) error { return errors.New("fails") }
				for _, b := range []*bursts{right, wrong} { // which would visit the shard
					b.config.Timing.ReconcileInterval = -1
					if name == "deferred" {
						b.config.Failures = subscriber.Defer(subscriber.Backoff{Pause: 30 * time.Second, MaxPause: time.Minute, Attempts: 100})
					}
				}
				right.run(t.Context())
				write(t, right.config.Journal, "x", 0, 1)
				for range 2 { // the second one stores when the shard is due
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					wrong.run(ctx)
				}
				assert.Equal(t, []string{"x/1"}, wrong.take())

				time.Sleep(time.Minute)
				right.run(t.Context(), hints...)
				assert.Equal(t, []string{"x/1"}, right.take())
			})
		})
	}
}

func TestABurstEndsBeforeItsDeadline(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		b.config.CloseTimeout = 3 * time.Second
		b.handle = func(*message.Message) error {
			time.Sleep(time.Second)
			return nil
		}
		write(t, j, "x", 0, 100)
		for last := 0; last < 100; last = len(b.received) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			deadline, _ := ctx.Deadline()
			left := b.run(ctx)
			assert.True(t, time.Now().Before(deadline))
			assert.GreaterOrEqual(t, len(b.received), min(100, last+20))
			assert.Equal(t, len(b.received) < 100, left.Aggregates == 1)
			cancel()
		}
		assert.Equal(t, expect("x", 1, 100), b.take())
	})
}

// A member that runs for long keeps its shards, and a burst gets those that are free.
func TestABurstLeavesTheShardsOfMembersAlone(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 4, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		sub, messages := subscribe(t, quick(j))
		write(t, j, "x", 0, 1)
		assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
		write(t, j, "x", 1, 1)
		b.run(t.Context(), hint("x", 2))
		b.run(t.Context())
		assert.Empty(t, b.take())
		assert.Equal(t, expect("x", 2, 2), receiveAll(t, messages, 1))
		closes(t, sub)
		write(t, j, "x", 2, 1)
		b.run(t.Context(), hint("x", 3))
		assert.Equal(t, expect("x", 3, 3), b.take())
		_, messages = subscribe(t, quick(j))
		write(t, j, "x", 3, 1)
		assert.Equal(t, expect("x", 4, 4), receiveAll(t, messages, 1))
	})
}

// A process that is killed in a burst keeps its shards until its lease ends at the deadline.
func TestABurstThatWasKilledHoldsShardsUntilItsDeadline(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		proxy := dynamotest.NewProxy(t, client)
		killed := &bursts{t: t, config: quick(open(t, proxy.Client()))}
		killed.handle = func(*message.Message) error {
			proxy.Inject(dynamotest.CutConnection())
			return nil
		}
		j := open(t, client)
		write(t, j, "x", 0, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, _ = killed.try(ctx, subscriber.Burst{})
		deadline, _ := ctx.Deadline()
		b := &bursts{t: t, config: quick(j)}
		assert.Zero(t, b.run(t.Context()))
		time.Sleep(time.Until(deadline.Add(3 * time.Second)))
		assert.Zero(t, b.run(t.Context()))
		assert.Equal(t, expect("x", 1, 1), b.take())
	})
}

func TestABurstOfAPausedGroupDoesNothing(t *testing.T) {
	t.Parallel()
	j := setup(t, 2)
	b := &bursts{t: t, config: quick(j)}
	write(t, j, "x", 0, 1)
	b.run(t.Context())
	b.take()
	require.NoError(t, groups.Of(j, "group", topic).Pause(t.Context()))
	write(t, j, "x", 1, 1)
	b.run(t.Context(), hint("x", 2))
	b.run(t.Context())
	assert.Empty(t, b.take())
	require.NoError(t, groups.Of(j, "group", topic).Resume(t.Context()))
	b.run(t.Context(), hint("x", 2))
	assert.Equal(t, expect("x", 2, 2), b.take())
}

func TestABurstRefusesABroadcast(t *testing.T) {
	t.Parallel()
	j := setup(t, 2)
	sub, err := subscriber.NewBroadcast(subscriber.BroadcastConfig{Journal: j}, nil)
	require.NoError(t, err)
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	require.NoError(t, err)
	router.AddConsumerHandler("handler", topic, sub, func(*message.Message) error { return nil })
	_, err = subscriber.Burst{}.Run(t.Context(), router)
	require.ErrorContains(t, err, "a broadcast has no position")
}

func TestABurstReportsThatTablesAreMissing(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	client := db.Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 2, Layout: journal.Packed}))
	b := &bursts{t: t, config: quick(open(t, client))}
	_, err := client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: ptr("checkpoint")})
	require.NoError(t, err)
	_, err = b.try(t.Context(), subscriber.Burst{})
	require.ErrorIs(t, err, journal.ErrTableMissing)
}

// A sweep reconciles a part at a time, and continues where an earlier sweep has ended.
func TestSweepsReconcileWhatTheTailDoesNotShow(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		proxy := dynamotest.NewProxy(t, client)
		// With a page that takes 4 seconds, a sweep compares one or two pages.
		proxy.Inject(dynamotest.Pause(func(context.Context) { time.Sleep(4 * time.Second) }), dynamotest.On("Query"), dynamotest.Matching(func(_ string, in any) bool {
			q, ok := in.(*dynamodb.QueryInput)
			return ok && (*q.TableName == "snapshot" || q.IndexName != nil && *q.IndexName == "journal-aid-index")
		}))
		b := &bursts{t: t, config: quick(open(t, proxy.Client()))}
		b.config.Timing.ReconcileInterval = time.Hour
		writer := open(t, client)
		for n := range 400 {
			_, err := writer.Internal().Append(t.Context(), storage.Commit{
				Aggregate: account(fmt.Sprint(n)), Events: []storage.Event{{Type: "deposited", Payload: bytes.Repeat([]byte("x"), 9000)}},
				Snapshot: &journal.Snapshot{Number: 1, Payload: bytes.Repeat([]byte("x"), 9000)},
			})
			require.NoError(t, err)
		}
		b.run(t.Context())
		b.take()
		write(t, at(t, client, func() time.Time { return time.Now().Add(-240 * time.Hour) }), "zzz", 0, 1)
		require.NoError(t, groups.Of(writer, "group", topic).Reconcile(t.Context()))
		sweeps := 0
		for ; sweeps < 30 && len(b.received) == 0; sweeps++ {
			b.run(t.Context())
			time.Sleep(time.Minute)
		}
		assert.Equal(t, expect("zzz", 1, 1), b.take())
		assert.Greater(t, sweeps, 1, "the first sweep cannot compare all aggregates")
		requests := proxy.Record()
		b.run(t.Context())
		b.run(t.Context())
		requests.Reset()
		b.run(t.Context())
		assert.Len(t, requests.Calls(), 3, "the membership, the row of the cursor, the tail")
	})
}

// A burst whose shard another burst visits hands its aggregates over to that one, which handles
// them before it ends.
func TestABurstHandsAggregatesOverToAnother(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		first, second := &bursts{t: t, config: quick(j)}, &bursts{t: t, config: quick(open(t, client))}
		handed := make(chan struct{})
		first.handle = func(msg *message.Message) error {
			if string(msg.Payload) == "x/1" {
				for id := range 3 {
					write(t, second.config.Journal, fmt.Sprint("y", id), 0, 1)
					assert.Zero(t, second.run(t.Context(), hint(fmt.Sprint("y", id), 1)))
				}
				close(handed)
			}
			return nil
		}
		write(t, j, "x", 0, 2)
		assert.Zero(t, first.run(t.Context(), hint("x", 2)))
		<-handed
		assert.Empty(t, second.take())
		assert.Equal(t, []string{"x/1", "x/2", "y0/1", "y1/1", "y2/1"}, first.take())
		left, err := checkpoint.New(j).ReadMembership(t.Context(), checkpoint.Key{Group: "group", Topic: topic})
		require.NoError(t, err)
		assert.Empty(t, left.Handed)
		assert.Empty(t, left.Members)

		// More than fit are left to the next sweep.
		first.handle = func(msg *message.Message) error {
			if string(msg.Payload) == "x/3" {
				var hints []subscriber.Hint
				for n := range 100 {
					write(t, second.config.Journal, fmt.Sprint("z", n), 0, 1)
					hints = append(hints, hint(fmt.Sprint("z", n), 1))
				}
				assert.Equal(t, 50, second.run(t.Context(), hints...).Aggregates)
			}
			return nil
		}
		write(t, j, "x", 2, 1)
		assert.Zero(t, first.run(t.Context(), hint("x", 3)))
		assert.Len(t, first.take(), 51)
		assert.Zero(t, first.run(t.Context()))
		assert.Len(t, first.take(), 50)
	})
}

// The group has handled events of the aggregate before.
func TestABurstHandsAnAggregateOverThatTheGroupKnows(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		first, second := &bursts{t: t, config: quick(j)}, &bursts{t: t, config: quick(open(t, client))}
		write(t, j, "y", 0, 5)
		first.run(t.Context())
		first.take()
		first.handle = func(msg *message.Message) error {
			if string(msg.Payload) == "x/1" {
				write(t, second.config.Journal, "y", 5, 2)
				assert.Zero(t, second.run(t.Context(), hint("y", 7)))
			}
			return nil
		}
		write(t, j, "x", 0, 1)
		assert.Zero(t, first.run(t.Context(), hint("x", 1)))
		assert.Equal(t, append(expect("x", 1, 1), expect("y", 6, 7)...), first.take())
	})
}

// An event that ends the process is given up like one that fails. Others are not suspected.
func TestAnEventThatEndsTheProcessIsParked(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
		endsTheProcess(t, client, 8, 0)
	})
}

// After each kill there is a burst in which the event is not due.
func TestAnEventThatSeldomEndsTheProcessIsParked(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
		endsTheProcess(t, client, 16, 2*time.Minute)
	})
}

func endsTheProcess(t *testing.T, client *dynamodb.Client, times int, pause time.Duration) {
	t.Helper()
	j := open(t, client)
	for n := range 4 {
		write(t, j, fmt.Sprint("x", n), 0, 3)
	}
	var mu sync.Mutex
	kills, handled := 0, map[string]bool{}
	for range times {
		proxy := dynamotest.NewProxy(t, client)
		b := &bursts{t: t, config: quick(open(t, proxy.Client()))}
		b.config.Failures, b.config.Timing.CommitInterval = subscriber.Park(3), time.Second
		b.config.NackResendSleep, b.config.MaxNackResendSleep = pause, pause
		killed := false
		b.handle = func(msg *message.Message) error {
			mu.Lock()
			wait := killed || string(msg.Payload) == "x3/2"
			defer func() {
				mu.Unlock()
				if wait {
					time.Sleep(time.Hour) // the process has ended
				}
			}()
			switch payload := string(msg.Payload); {
			case killed:
			case payload == "x3/2":
				killed = true
				kills++
				proxy.Inject(dynamotest.CutConnection())
			default:
				handled[payload] = true
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		_, err := b.try(ctx, subscriber.Burst{})
		assert.Equal(t, killed, err != nil)
		cancel()
		time.Sleep(time.Minute)
	}
	time.Sleep(2 * time.Hour) // the handlers end
	assert.LessOrEqual(t, kills, 6, "the first is not counted, and if x3/1 was not stored, nor is the next or the next two")
	assert.Len(t, handled, 10)
	var parked []string
	for p, err := range groups.Of(j, "group", topic).Parked(t.Context(), aggregate.ID{}) {
		require.NoError(t, err)
		parked = append(parked, fmt.Sprint(p.Aggregate.Value, "/", p.Parked.Number))
		assert.Contains(t, p.Parked.Reason, "the process ended during the attempt")
	}
	assert.Equal(t, []string{"x3/2"}, parked)
}

// Bursts that follow each other closely leave the shards to a member that joins.
func TestAMemberGetsTheShardsFromBursts(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		ctx, stop := context.WithCancel(t.Context())
		var bursting sync.WaitGroup
		for burster := range 3 {
			name := func(n int) string { return fmt.Sprintf("%d-%d", burster, n) }
			for n := range 100 {
				write(t, j, name(n), 0, 1)
			}
			b := &bursts{t: t, config: quick(open(t, client))}
			b.handle = func(*message.Message) error {
				time.Sleep(100 * time.Millisecond)
				return nil
			}
			bursting.Add(1)
			go func() {
				defer bursting.Done()
				for n := 0; n < 100 && ctx.Err() == nil; n++ {
					_, err := b.try(t.Context(), subscriber.Burst{Hints: []subscriber.Hint{hint(name(n), 1)}})
					assert.NoError(t, err)
					if n > 10 { // the first ones follow each other closely
						time.Sleep(250 * time.Millisecond)
					}
				}
			}()
		}
		time.Sleep(time.Second)
		_, messages := subscribe(t, quick(j))
		var last string
		for begun := time.Now(); time.Since(begun) < 15*time.Second; {
			select {
			case msg := <-messages:
				last = string(msg.Payload)
				msg.Ack()
			case <-time.After(time.Second):
			}
		}
		assert.NotEmpty(t, last)
		stop()
		bursting.Wait()
	})
}

func TestABurstOfAGroupThatStartsLaterDoesNothing(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		b.config.Start = subscriber.At(time.Now().Add(time.Hour))
		write(t, j, "x", 0, 1)
		b.run(t.Context())
		b.run(t.Context(), hint("x", 1))
		assert.Empty(t, b.take())
		time.Sleep(2 * time.Hour)
		write(t, j, "x", 1, 1)
		b.run(t.Context(), hint("x", 0))
		assert.Equal(t, expect("x", 2, 2), b.take())
	})
}

// A handler may keep the context of a message.
func TestASubscriptionAfterABurstIsRefused(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := open(t, createIn(t, journal.Packed, 1))
		b := &bursts{t: t, config: quick(j)}
		kept := make(chan context.Context, 1)
		b.handle = func(msg *message.Message) error {
			kept <- msg.Context()
			return nil
		}
		write(t, j, "x", 0, 1)
		b.run(t.Context())
		sub, err := subscriber.NewSubscriber(quick(j), nil)
		require.NoError(t, err)
		_, err = sub.Subscribe(<-kept, topic)
		require.ErrorContains(t, err, "the burst of the context has ended")
	})
}

func TestASweepWithoutTimeMayHaveLeftSomething(t *testing.T) {
	t.Parallel()
	b := &bursts{t: t, config: quick(setup(t, 1))}
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	assert.Equal(t, subscriber.Left{Aggregates: 1, Late: true}, b.run(ctx))
	assert.Equal(t, subscriber.Left{Aggregates: 2, Late: true}, b.run(ctx, hint("x", 1), hint("y", 1)))
}

// Another burst may hand over an aggregate whose events are handled already.
func TestAHintThatLeadsToNothingIsNoError(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		b.config.Failures = subscriber.Skip(3)
		b.run(t.Context()) // makes the group
		b.handle = func(msg *message.Message) error {
			if string(msg.Payload) == "x/1" {
				assert.Zero(t, b.run(t.Context(), hint("x", 1)), "it hands x over")
			}
			return nil
		}
		write(t, j, "x", 0, 1)
		assert.Zero(t, b.run(t.Context(), hint("x", 1)))
		assert.Equal(t, expect("x", 1, 1), b.take())
	})
}
