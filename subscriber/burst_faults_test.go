package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// isQueryOf matches queries with a value that begins with a prefix.
func isQueryOf(prefix string) func(string, any) bool {
	return func(_ string, input any) bool {
		q, ok := input.(*dynamodb.QueryInput)
		if !ok {
			return false
		}
		for _, v := range q.ExpressionAttributeValues {
			if s, ok := v.(*types.AttributeValueMemberS); ok && strings.HasPrefix(s.Value, prefix) {
				return true
			}
		}
		return false
	}
}

// cursorOfShard returns the row of the cursor, if there is one shard.
func cursorOfShard(t *testing.T, client *dynamodb.Client) map[string]types.AttributeValue {
	t.Helper()
	out, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: ptr("checkpoint")})
	require.NoError(t, err)
	for _, item := range out.Items {
		if item["occurred_at"] != nil {
			return item
		}
	}
	require.Fail(t, "there is no cursor")
	return nil
}

// The deadline comes while a sweep reads the progress of a shard.
func TestASweepThatEndsEarlyKeepsTheCursor(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		proxy := dynamotest.NewProxy(t, client)
		j := open(t, proxy.Client())
		b := &bursts{t: t, config: quick(j)}
		write(t, j, "x", 0, 3)
		time.Sleep(time.Minute)
		b.run(t.Context())
		b.take()
		before := cursorOfShard(t, client)
		write(t, j, "x", 3, 1)
		proxy.Inject(dynamotest.Pause(dynamotest.For(time.Hour)), dynamotest.Table("checkpoint"), dynamotest.On("Query"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		left, err := b.try(ctx, subscriber.Burst{})
		require.NoError(t, err, "a lack of time is no error")
		assert.Equal(t, 1, left.Aggregates)
		assert.True(t, left.Late)
		assert.Equal(t, before["occurred_at"], cursorOfShard(t, client)["occurred_at"])
	})
}

// The scan of deferred events fails.
func TestADeferredEventIsRetriedAfterAScanFailed(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		proxy := dynamotest.NewProxy(t, client)
		j := open(t, proxy.Client())
		b := &bursts{t: t, config: quick(j)}
		b.config.Failures = subscriber.Defer(subscriber.Backoff{Pause: time.Minute, MaxPause: time.Minute, Attempts: 100})
		fails := true
		b.handle = func(*message.Message) error {
			if fails {
				return errors.New("fails")
			}
			return nil
		}
		write(t, j, "x", 0, 1)
		b.run(t.Context())
		assert.Len(t, b.take(), 1)
		fails = false
		time.Sleep(2 * time.Minute)
		lost := proxy.Inject(dynamotest.Throttle(), dynamotest.Matching(isQueryOf("event/")), dynamotest.On("Query"))
		_, err := b.try(t.Context(), subscriber.Burst{})
		require.ErrorIs(t, err, journal.ErrThrottled)
		lost.Remove()
		for range 5 {
			time.Sleep(time.Minute)
			b.run(t.Context())
		}
		assert.Equal(t, expect("x", 1, 1), b.take())
	})
}

// Stop counts the attempts of all bursts, and pauses grow from burst to burst.
func TestStopAndBlockCountAcrossBursts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy   subscriber.FailurePolicy
		attempts int
	}{
		"block": {subscriber.Block(), 4 + 11}, // four in the first burst
		"stop":  {subscriber.Stop(8), 8},
	} {
		t.Run(name, func(t *testing.T) {
			testdb.WithFakeTime(t, func(t *testing.T) {
				j := open(t, createIn(t, journal.Packed, 1))
				b := &bursts{t: t, config: quick(j)}
				b.config.NackResendSleep, b.config.MaxNackResendSleep = 100*time.Millisecond, time.Hour
				b.config.Failures = c.policy
				b.handle = func(*message.Message) error { return errors.New("fails") }
				write(t, j, "x", 0, 1)
				for range 12 {
					left := b.run(t.Context())
					time.Sleep(time.Until(left.Due))
				}
				assert.Len(t, b.take(), c.attempts)
				s, err := groups.Of(j, "group", topic).Status(t.Context())
				require.NoError(t, err)
				assert.Equal(t, name == "stop", s.Stopped != nil)
			})
		})
	}
}

// One aggregate cannot be read.
func TestAnAggregateThatCannotBeReadDropsNoOtherHint(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		proxy := dynamotest.NewProxy(t, client)
		j := open(t, proxy.Client())
		b := &bursts{t: t, config: quick(j)}
		write(t, j, "good", 0, 1)
		write(t, j, "bad", 0, 1)
		proxy.Inject(dynamotest.Throttle(), dynamotest.Matching(func(op string, input any) bool {
			return strings.Contains(fmt.Sprint(describe(input)), "bad")
		}))
		left, err := b.try(t.Context(), subscriber.Burst{Hints: []subscriber.Hint{hint("good", 1), hint("bad", 1)}})
		require.ErrorIs(t, err, journal.ErrThrottled)
		assert.Equal(t, 1, left.Aggregates)
		assert.Equal(t, expect("good", 1, 1), b.take())
	})
}

func describe(input any) string {
	var b strings.Builder
	add := func(m map[string]types.AttributeValue) {
		for _, v := range m {
			if s, ok := v.(*types.AttributeValueMemberS); ok {
				b.WriteString(s.Value + " ")
			}
		}
	}
	switch in := input.(type) {
	case *dynamodb.QueryInput:
		add(in.ExpressionAttributeValues)
	case *dynamodb.GetItemInput:
		add(in.Key)
	case *dynamodb.UpdateItemInput:
		add(in.Key)
	}
	return b.String()
}

// A read that hangs until the deadline leaves its hint, and that is no error.
func TestHintsWithoutTimeAreLeft(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		proxy := dynamotest.NewProxy(t, client)
		j := open(t, proxy.Client())
		b := &bursts{t: t, config: quick(j)}
		write(t, j, "x", 0, 1)
		proxy.Inject(dynamotest.Pause(dynamotest.For(time.Minute)), dynamotest.On("GetItem"))
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		left, err := b.try(ctx, subscriber.Burst{Hints: []subscriber.Hint{hint("x", 1)}})
		require.NoError(t, err)
		assert.Equal(t, 1, left.Aggregates)
		assert.True(t, left.Late)
	})
}

// A handler that cannot subscribe. The router leaves goroutines then, so this test is not in fake
// time.
func TestABurstWithABadTopicEndsAtOnce(t *testing.T) {
	t.Parallel()
	sub, err := subscriber.NewSubscriber(quick(setup(t, 1)), nil)
	require.NoError(t, err)
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 5 * time.Second}, watermill.NopLogger{})
	require.NoError(t, err)
	router.AddConsumerHandler("handler", "", sub, func(*message.Message) error { return nil })
	_, err = subscriber.Burst{}.Run(t.Context(), router)
	require.ErrorIs(t, err, subscriber.ErrEmptyTopic)
	assert.NotContains(t, err.Error(), "router close timeout")
}

// Nothing runs after Run has returned, with a short deadline and a database that hangs.
func TestNothingRunsAfterAShortDeadline(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{-time.Second, 0, 10 * time.Millisecond, 500 * time.Millisecond, 1 * time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second, 30 * time.Second} {
		t.Run(limit.String(), func(t *testing.T) {
			testdb.WithFakeTime(t, func(t *testing.T) {
				client := createIn(t, journal.Packed, 1)
				proxy := dynamotest.NewProxy(t, client)
				j := open(t, proxy.Client())
				b := &bursts{t: t, config: quick(j)}
				write(t, j, "x", 0, 3)
				var once sync.Once
				b.handle = func(*message.Message) error {
					once.Do(func() { proxy.Inject(dynamotest.Pause(dynamotest.For(time.Hour))) })
					return nil
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				began := time.Now()
				left, err := b.try(ctx, subscriber.Burst{})
				assert.LessOrEqual(t, time.Since(began), max(0, limit))
				if limit <= 0 {
					assert.True(t, left.Late)
				}
				record := proxy.Record()
				time.Sleep(time.Minute)
				for _, c := range record.Calls() {
					t.Errorf("%s ended after Run returned: %v", c.Operation, c.Err)
				}
				assert.NotContains(t, fmt.Sprint(err), "still runs")
			})
		})
	}
}

// In the packed layout a process reads again in the background how the tail has grown.
func TestNoReadInTheBackgroundOutlastsABurst(t *testing.T) {
	t.Parallel()
	for _, hangs := range []time.Duration{time.Second, time.Hour} {
		t.Run(hangs.String(), func(t *testing.T) {
			testdb.WithFakeTime(t, func(t *testing.T) {
				proxy := dynamotest.NewProxy(t, createIn(t, journal.Packed, 1))
				j := open(t, proxy.Client())
				b := &bursts{t: t, config: quick(j)}
				b.run(t.Context())
				time.Sleep(2 * time.Minute)
				write(t, j, "x", 0, 1)
				time.Sleep(2 * time.Minute)
				key := j.Internal().Layout.DescriptorKey()
				slow := proxy.Inject(dynamotest.Pause(dynamotest.For(hangs)), dynamotest.Matching(func(_ string, in any) bool {
					get, is := in.(*dynamodb.GetItemInput)
					return is && reflect.DeepEqual(get.Key, key)
				}))
				record := proxy.Record()
				b.run(t.Context())
				require.Equal(t, expect("x", 1, 1), b.take())
				require.Equal(t, 1, slow.Fired())
				requests := len(record.Calls())
				time.Sleep(time.Minute)
				assert.Len(t, record.Calls(), requests)
			})
		})
	}
}

// One request of a burst with a hint fails, each time another one.
func TestAHintWhoseReadFailsIsAnError(t *testing.T) {
	t.Parallel()
	for _, nth := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8} {
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			testdb.WithFakeTime(t, func(t *testing.T) {
				client := createIn(t, journal.Packed, 1)
				proxy := dynamotest.NewProxy(t, client)
				j := open(t, proxy.Client(testdb.Once))
				b := &bursts{t: t, config: quick(j)}
				write(t, j, "x", 0, 1)
				b.run(t.Context())
				b.take()
				write(t, j, "x", 1, 1)
				in := proxy.Inject(dynamotest.Throttle(), dynamotest.After(nth), dynamotest.Times(1))
				left, err := b.try(t.Context(), subscriber.Burst{Hints: []subscriber.Hint{hint("x", 2)}})
				require.Equal(t, 1, in.Fired())
				if got := b.take(); len(got) > 0 {
					require.NoError(t, err, "the request was repeated")
					assert.Equal(t, expect("x", 2, 2), got)
					return
				}
				require.ErrorIs(t, err, journal.ErrThrottled)
				assert.Equal(t, 1, left.Aggregates)
			})
		})
	}
}

// A group that is paused during a burst.
func TestAPauseStopsABurst(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		b.handle = func(*message.Message) error { time.Sleep(time.Second); return nil }
		write(t, j, "x", 0, 200)
		time.AfterFunc(10*time.Second, func() {
			assert.NoError(t, groups.Of(j, "group", topic).Pause(context.Background()))
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.Equal(t, 1, b.run(ctx).Aggregates)
		assert.Less(t, len(b.take()), 20)
	})
}

// A burst was killed, then the group is paused.
func TestAKilledBurstDoesNotBlockWaitIdle(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		proxy := dynamotest.NewProxy(t, client)
		killed := &bursts{t: t, config: quick(open(t, proxy.Client()))}
		killed.handle = func(*message.Message) error { proxy.Inject(dynamotest.CutConnection()); return nil }
		j := open(t, client)
		write(t, j, "x", 0, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, _ = killed.try(ctx, subscriber.Burst{})
		g := groups.Of(j, "group", topic)
		require.NoError(t, g.Pause(t.Context()))
		b := &bursts{t: t, config: quick(j)}
		for range 3 {
			time.Sleep(time.Hour)
			b.run(t.Context())
		}
		waiting, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		assert.NoError(t, g.WaitIdle(waiting))
	})
}

// The limit on deferred records.
func TestBurstsDeferUpToTheLimit(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		j := open(t, client)
		config := quick(j)
		config.Failures = subscriber.Defer(subscriber.Backoff{Pause: time.Hour, MaxPause: time.Hour, Attempts: 100})
		for i := range 16 {
			id := fmt.Sprintf("a%d", i)
			write(t, j, id, 0, 1)
			sub, err := subscriber.NewSubscriber(config, nil)
			require.NoError(t, err)
			sub.Limit(subscriber.MaxDeferred(5))
			router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
			require.NoError(t, err)
			router.AddConsumerHandler("h", topic, sub, func(*message.Message) error { return errors.New("fails") })
			burst := subscriber.Burst{Hints: []subscriber.Hint{hint(id, 1)}}
			if i%2 == 0 {
				burst = subscriber.Burst{}
			}
			_, err = burst.Run(t.Context(), router)
			require.NoError(t, err)
		}
		n := 0
		for _, err := range groups.Of(j, "group", topic).Skipped(t.Context(), aggregate.ID{}, 0) {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, 5, n)
	})
}

// A Now group whose first requests take long.
func TestANowGroupLeavesOutNoEventAfterItsFirstBurstBegan(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		proxy := dynamotest.NewProxy(t, client)
		j := open(t, client)
		b := &bursts{t: t, config: quick(open(t, proxy.Client()))}
		b.config.Start = subscriber.Now()
		proxy.Inject(dynamotest.Pause(dynamotest.For(8*time.Second)), dynamotest.On("GetItem"), dynamotest.Times(1))
		time.AfterFunc(time.Second, func() { write(t, j, "x", 0, 1) })
		b.run(t.Context())
		b.run(t.Context())
		assert.Equal(t, expect("x", 1, 1), b.take())
	})
}

// Commits of handlers with a small budget.
func TestASmallBudgetDropsNoCommit(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 4)
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		b.config.BufferBytes = 20 << 10
		b.config.MaxInFlight = 4
		b.handle = func(m *message.Message) error {
			id, n, _ := strings.Cut(string(m.Payload), "/")
			if strings.HasPrefix(id, "a") {
				write(t, j, "b"+id+n, 0, 1)
			}
			return nil
		}
		var hints []subscriber.Hint
		for i := range 10 {
			id := fmt.Sprintf("a%d", i)
			write(t, j, id, 0, 20)
			hints = append(hints, hint(id, 20))
		}
		assert.Zero(t, b.run(t.Context(), hints...))
		assert.Len(t, b.take(), 400)
	})
}

// A sweep whose handlers commit to more aggregates than the sequencer keeps.
func TestASweepHandlesWhatItsHandlersCommit(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		proxy := dynamotest.NewProxy(t, client)
		j := open(t, proxy.Client())
		b := &bursts{t: t, config: quick(j)}
		b.handle = func(m *message.Message) error {
			id, _, _ := strings.Cut(string(m.Payload), "/")
			if id == "x" {
				for i := range 1100 {
					write(t, j, fmt.Sprintf("b%d", i), 0, 1)
				}
			}
			return nil
		}
		write(t, j, "x", 0, 1)
		for i := range 50 {
			write(t, j, fmt.Sprintf("y%d", i), 0, 1)
		}
		time.Sleep(time.Second)
		tails := dynamotest.Matching(func(_ string, in any) bool { q, ok := in.(*dynamodb.QueryInput); return ok && q.IndexName != nil })
		proxy.Inject(dynamotest.SmallPages(40), tails)
		proxy.Inject(dynamotest.PauseReply(dynamotest.For(time.Second)), tails)
		b.run(t.Context())
		assert.Len(t, b.take(), 1151)
	})
}

// The deadline comes while a sweep reads a backlog.
func TestASweepThatReadsABacklogToItsDeadline(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		proxy := dynamotest.NewProxy(t, client)
		j := open(t, proxy.Client())
		b := &bursts{t: t, config: quick(j)}
		for i := range 300 {
			write(t, j, fmt.Sprintf("y%d", i), 0, 1)
		}
		tails := dynamotest.Matching(func(_ string, in any) bool { q, ok := in.(*dynamodb.QueryInput); return ok && q.IndexName != nil })
		proxy.Inject(dynamotest.SmallPages(1), tails)
		proxy.Inject(dynamotest.Pause(dynamotest.For(time.Second)), tails)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		left, err := b.try(ctx, subscriber.Burst{})
		require.NoError(t, err, "work that is left is no error")
		assert.Positive(t, left.Aggregates)
		assert.NotEmpty(t, b.take())
	})
}

// An event that fails with short pauses does not keep a burst busy to its deadline.
func TestAPoisonEventDoesNotKeepABurstBusy(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		b.config.NackResendSleep, b.config.MaxNackResendSleep = 100*time.Millisecond, 400*time.Millisecond
		b.handle = func(*message.Message) error { return errors.New("fails") }
		write(t, j, "x", 0, 1)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		left := b.run(ctx, hint("x", 1))
		assert.Equal(t, 1, left.Aggregates)
		assert.False(t, left.Late, "the event waits for its next attempt")
		assert.Len(t, b.take(), 4)
		assert.Less(t, time.Since(start), 2*time.Second)
	})
}

// Many hints with the latency of a network, and a deadline.
func TestManyHintsMakeProgress(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 4)
		proxy := dynamotest.NewProxy(t, client)
		j := open(t, client)
		b := &bursts{t: t, config: quick(open(t, proxy.Client()))}
		var hints []subscriber.Hint
		for i := range 3_000 {
			hints = append(hints, hint(fmt.Sprintf("none%d", i), 1))
		}
		for i := range 50 {
			write(t, j, fmt.Sprintf("a%d", i), 0, 1)
			hints = append(hints, hint(fmt.Sprintf("a%d", i), 1))
		}
		proxy.Inject(dynamotest.Pause(dynamotest.For(8 * time.Millisecond)))
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		left := b.run(ctx, hints...)
		assert.Positive(t, left.Aggregates)
		assert.True(t, left.Late)
		assert.NotEmpty(t, b.take())
	})
}

// slowly is a subscriber whose Subscribe begins late.
type slowly struct{ *subscriber.Subscriber }

func (s slowly) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	time.Sleep(time.Second)
	return s.Subscriber.Subscribe(ctx, topic)
}

// A handler commits before the other handler of the router has subscribed. The router starts
// handlers in random order, so the test has several rounds.
func TestABurstHandlesCommitsFromBeforeASubscription(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 1)
		j := open(t, client)
		for round := range 8 {
			router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
			require.NoError(t, err)
			handled := 0
			one, err := subscriber.NewSubscriber(quick(j), nil)
			require.NoError(t, err)
			two, err := subscriber.NewSubscriber(quick(j), nil)
			require.NoError(t, err)
			value := fmt.Sprint(round)
			event := func(of string) storage.Commit {
				return storage.Commit{Aggregate: aggregate.ID{Type: of, Value: value}, Events: []storage.Event{{Type: "e", Payload: []byte("x")}}}
			}
			router.AddConsumerHandler("one", "one", one, func(m *message.Message) error {
				_, err := j.Internal().Append(m.Context(), event("two"))
				return err
			})
			router.AddConsumerHandler("two", "two", slowly{two}, func(*message.Message) error { handled++; return nil })
			_, err = j.Internal().Append(t.Context(), event("one"))
			require.NoError(t, err)
			left, err := subscriber.Burst{Hints: []subscriber.Hint{{Aggregate: aggregate.ID{Type: "one", Value: value}, Version: 1}}}.Run(t.Context(), router)
			require.NoError(t, err)
			assert.Zero(t, left)
			assert.Equal(t, 1, handled, "round %d", round)
		}
	})
}

// The context ends after the burst has read that there is no group.
func TestABurstOfANewGroupThatHasNoTimeToJoin(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		proxy := dynamotest.NewProxy(t, createIn(t, journal.Packed, 1))
		j := open(t, proxy.Client())
		b := &bursts{t: t, config: quick(j)}
		write(t, j, "x", 0, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		proxy.Inject(dynamotest.PauseReply(func(context.Context) { cancel() }), dynamotest.On("GetItem"), dynamotest.Table("checkpoint"), dynamotest.After(1), dynamotest.Times(1))
		left := b.run(ctx)
		assert.Equal(t, 1, left.Aggregates)
		assert.True(t, left.Late)
		assert.Zero(t, b.run(t.Context()))
		assert.Equal(t, expect("x", 1, 1), b.take())
	})
}

// A burst that cannot begin until its deadline says why, and drops no hint.
func TestABurstReportsWhatIsRefusedUntilItsDeadline(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"UpdateItem", "Query"} {
		for name, burst := range map[string]subscriber.Burst{"sweep": {}, "hint": {Hints: []subscriber.Hint{hint("x", 2)}}} {
			t.Run(operation+"/"+name, func(t *testing.T) {
				testdb.WithFakeTime(t, func(t *testing.T) {
					client := createIn(t, journal.Packed, 1)
					proxy := dynamotest.NewProxy(t, client)
					j := open(t, proxy.Client(testdb.Once))
					b := &bursts{t: t, config: quick(j)}
					write(t, j, "x", 0, 1)
					b.run(t.Context())
					write(t, j, "x", 1, 1)
					proxy.Inject(dynamotest.Throttle(), dynamotest.On(operation), dynamotest.Table("checkpoint"))
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					left, err := b.try(ctx, burst)
					require.ErrorIs(t, err, journal.ErrThrottled)
					assert.Equal(t, 1, left.Aggregates)
				})
			})
		}
	}
}

// The value of an id may be any text, also one that stands for the sweep of a shard.
func TestAHintThatLooksLikeASweepIsNotHandedOver(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 2)
		j, other := open(t, client), &bursts{t: t, config: quick(open(t, client))}
		b := &bursts{t: t, config: quick(j)}
		odd := "\x00sweep/0"
		if j.Internal().Shard(account(odd)) == 0 {
			odd = "\x00sweep/1"
		}
		b.run(t.Context()) // makes the group
		var hints []subscriber.Hint
		for i := range 10 { // in both shards
			id := fmt.Sprintf("a%d", i)
			write(t, j, id, 0, 1)
			hints = append(hints, hint(id, 1))
		}
		write(t, j, odd, 0, 1)
		b.handle = func(*message.Message) error { time.Sleep(2 * time.Second); return nil }
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			b.run(t.Context(), hints...)
		}()
		time.Sleep(time.Second)
		assert.Equal(t, 1, other.run(t.Context(), hint(odd, 1)).Aggregates)
		<-ended
		assert.Empty(t, b.run(t.Context()))
		assert.Contains(t, b.take(), odd+"/1")
	})
}

// A burst again and again would not help, so this is no lack of time.
func TestAHintOfACorruptAggregateIsNotLate(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Classic, 1)
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		b.run(t.Context())
		write(t, j, "x", 0, 1)
		corrupt(t, client, "account-x-1")
		left := b.run(t.Context(), hint("x", 1))
		assert.Equal(t, 1, left.Aggregates)
		assert.False(t, left.Late)
	})
}
