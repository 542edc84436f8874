package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
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

// A park may arrive late, after another burst has handled the event. If very many aggregates are
// parked, a sweep verifies only some of them, and one that reconciles all.
func TestALateParkIsVerified(t *testing.T) {
	t.Parallel()
	for others, sweeps := range map[int]int{0: 1, 2000: 60} {
		t.Run(fmt.Sprintf("among %d", others), func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) { lateParkAmong(t, others, sweeps) })
		})
	}
}

func lateParkAmong(t *testing.T, others, sweeps int) {
	client := createIn(t, journal.Packed, 1)
	proxy := dynamotest.NewProxy(t, client)
	a := &bursts{t: t, config: quick(open(t, proxy.Client(testdb.Once)))}
	a.config.Failures = subscriber.Park(1)
	a.config.Timing.ReconcileInterval = time.Hour
	a.handle = func(*message.Message) error { return errors.New("fails") }
	j := open(t, client)
	for n := range others {
		write(t, j, fmt.Sprint("parked-", n), 0, 1)
	}
	if others > 0 {
		a.run(t.Context())
		require.Len(t, a.take(), others)
	}
	write(t, j, "x", 0, 1)
	late := proxy.Inject(dynamotest.Late(), dynamotest.On("UpdateItem"), dynamotest.Matching(func(_ string, in any) bool {
		u, ok := in.(*dynamodb.UpdateItemInput)
		return ok && strings.Contains(*u.UpdateExpression, "#parked = ")
	}), dynamotest.Times(1))
	proxy.Inject(dynamotest.CutConnection(), dynamotest.Matching(func(string, any) bool { return late.Fired() > 0 }))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	_, _ = a.try(ctx, subscriber.Burst{})
	cancel()
	require.Equal(t, 1, late.Fired())
	time.Sleep(time.Minute)
	b := &bursts{t: t, config: quick(j)}
	b.config.Timing.CommitInterval, b.config.Timing.ReconcileInterval = time.Second, time.Hour
	b.run(t.Context())
	require.Equal(t, expect("x", 1, 1), b.take())
	require.Equal(t, 1, late.Arrive())
	write(t, j, "x", 1, 1)
	for range sweeps {
		time.Sleep(time.Minute)
		b.run(t.Context())
	}
	assert.Equal(t, expect("x", 2, 2), b.take())
}

// A hint costs little on a shard with many blocked aggregates, and counts the attempts at a blocked
// one.
func TestAHintReadsOnlySomeOfManyBlockedAggregates(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Packed, Shards: 1}))
		j := open(t, db.Client())
		b := &bursts{t: t, config: quick(j)}
		b.config.Failures = subscriber.Park(3)
		b.config.NackResendSleep, b.config.MaxNackResendSleep = time.Minute, time.Minute
		b.handle = func(*message.Message) error { return errors.New("fails") }
		for n := range 900 {
			write(t, j, fmt.Sprintf("%04d", n), 0, 1)
		}
		b.run(t.Context())
		require.Len(t, b.take(), 900)

		b.handle = func(m *message.Message) error {
			if string(m.Payload) == "good/1" {
				write(t, j, "0005", 1, 1) // its entry was not read
				return nil
			}
			return errors.New("fails")
		}
		write(t, j, "good", 0, 1)
		r := db.Record()
		assert.Equal(t, 1, b.run(t.Context(), hint("good", 1)).Aggregates)
		assert.Equal(t, expect("good", 1, 1), b.take(), "0005 is not due")
		read, _ := r.Units()
		assert.LessOrEqual(t, read, 12.0)

		time.Sleep(time.Hour)
		for range 3 {
			time.Sleep(2 * time.Minute)
			b.run(t.Context(), hint("0005", 2), hint("0899", 1))
		}
		assert.Equal(t, append(expect("0005", 1, 1), "0005/1", "0899/1", "0899/1"), b.take(), "two more attempts at each")
		parked := 0
		for _, err := range groups.Of(j, "group", topic).Parked(t.Context(), aggregate.ID{}) {
			require.NoError(t, err)
			parked++
		}
		assert.Equal(t, 2, parked)
	})
}

// A sweep tries only some of many aggregates that keep failing. The limit is for all shards, and
// each aggregate gets its turn.
func TestSweepsLimitTheAttemptsAtBlockedAggregates(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := createIn(t, journal.Packed, 4)
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		b.config.NackResendSleep, b.config.MaxNackResendSleep = time.Millisecond, 10*time.Second
		b.handle = func(*message.Message) error { return errors.New("fails") }
		const aggregates = 600
		for n := range aggregates {
			write(t, j, fmt.Sprint(n), 0, 1)
		}
		b.run(t.Context())
		for range 3 {
			time.Sleep(time.Minute)
			b.run(t.Context())
		}
		b.take()
		tried := map[string]bool{}
		for range 10 {
			time.Sleep(time.Minute)
			left := b.run(t.Context())
			assert.Equal(t, aggregates, left.Aggregates)
			assert.True(t, left.Due.After(time.Now()), "the next sweep would do nothing more at once")
			got := b.take()
			assert.LessOrEqual(t, len(got), 120)
			assert.GreaterOrEqual(t, len(got), 90)
			for _, event := range got {
				tried[event] = true
			}
		}
		assert.Len(t, tried, aggregates)

		time.Sleep(time.Minute)
		b.handle = nil
		assert.Zero(t, b.run(t.Context()).Aggregates)
		assert.Len(t, b.take(), aggregates, "all continue in one sweep")
	})
}

// Aggregates that are blocked or parked are for sweeps. Otherwise each hint would cost an attempt
// at each of them in an outage.
func TestAHintCausesNoAttemptAtOtherAggregates(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]subscriber.FailurePolicy{"blocked": subscriber.Block(), "parked": subscriber.Park(1)} {
		t.Run(name, func(t *testing.T) {
			testdb.WithFakeTime(t, func(t *testing.T) {
				client := createIn(t, journal.Packed, 1)
				proxy := dynamotest.NewProxy(t, client)
				j := open(t, proxy.Client())
				b := &bursts{t: t, config: quick(j)}
				b.config.NackResendSleep, b.config.MaxNackResendSleep, b.config.Failures = time.Minute, time.Minute, policy
				b.handle = func(*message.Message) error { return errors.New("fails") }
				for i := range 50 {
					write(t, j, fmt.Sprintf("bad%d", i), 0, 1)
				}
				b.run(t.Context())
				b.take()
				time.Sleep(time.Hour)
				b.handle = nil
				write(t, j, "good", 0, 1)
				r := proxy.Record()
				b.run(t.Context(), hint("good", 1))
				assert.Equal(t, expect("good", 1, 1), b.take())
				assert.Len(t, r.Calls(), 9)
				if name == "blocked" {
					b.run(t.Context(), hint("bad7", 1))
					assert.Equal(t, expect("bad7", 1, 1), b.take())
					b.run(t.Context())
					assert.Len(t, b.take(), 49)
				}
			})
		})
	}
}

// A blocked aggregate gets events, and is not due. Otherwise each sweep would read them again.
func TestABlockedAggregateDoesNotHoldBackTheCursorOfSweeps(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		b := &bursts{t: t, config: quick(j)}
		b.config.NackResendSleep, b.config.MaxNackResendSleep = time.Hour, time.Hour
		b.handle = func(*message.Message) error { return errors.New("fails") }
		write(t, j, "x", 0, 1)
		b.run(t.Context())
		time.Sleep(time.Minute)
		b.run(t.Context())
		write(t, j, "x", 1, 1)
		written := time.Now()
		time.Sleep(time.Minute)
		b.run(t.Context())
		assert.Equal(t, expect("x", 1, 1), b.take())
		shard := checkpoint.Shard{Group: checkpoint.Group{Name: b.config.ConsumerGroup}, Topic: topic}
		progress, err := checkpoint.New(j).Progress(t.Context(), shard)
		require.NoError(t, err)
		assert.True(t, progress.Cursor.After(written))

		time.Sleep(time.Hour)
		b.handle = nil
		assert.Zero(t, b.run(t.Context()))
		assert.Equal(t, expect("x", 1, 2), b.take())
	})
}

// A handler that hangs takes the time of a burst, but not of all bursts.
func TestAHandlerThatHangsHasFailed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hints  []subscriber.Hint
		policy subscriber.FailurePolicy
	}{
		"hint":     {[]subscriber.Hint{hint("bad", 1), hint("good", 1)}, subscriber.Park(3)},
		"sweep":    {nil, subscriber.Park(3)},
		"deferred": {nil, subscriber.Defer(subscriber.Backoff{Pause: time.Minute, MaxPause: time.Minute, Attempts: 3})},
	} {
		for _, obeys := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, obeys its context: %t", name, obeys), func(t *testing.T) {
				testdb.WithFakeTime(t, func(t *testing.T) {
					j := open(t, createIn(t, journal.Packed, 1))
					b := &bursts{t: t, config: quick(j)}
					b.config.Failures = c.policy
					release := make(chan struct{})
					defer close(release)
					b.handle = func(msg *message.Message) error {
						if string(msg.Payload) == "good/1" {
							return nil
						}
						done := msg.Context().Done()
						if !obeys {
							done = nil
						}
						select {
						case <-done:
						case <-release:
						}
						return nil
					}
					write(t, j, "bad", 0, 1)
					write(t, j, "good", 0, 1)
					deliveries := 0
					for range 6 {
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
						_, err := b.try(ctx, subscriber.Burst{Hints: c.hints})
						cancel()
						received := b.take()
						if obeys || len(received) == 0 {
							require.NoError(t, err)
						} else {
							require.ErrorContains(t, err, "still runs at the deadline")
						}
						deliveries += len(received)
						time.Sleep(2 * time.Minute)
					}
					assert.LessOrEqual(t, deliveries, 5)
					assert.GreaterOrEqual(t, deliveries, 4, "three attempts, and the good one")
				})
			})
		}
	}
}

// Hints let blocked aggregates continue, and leave their entries on the behind list to sweeps.
// These entries delay no aggregate that is still blocked.
func TestSweepsAreNotHeldUpByEntriesOfAggregatesThatContinue(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := open(t, createIn(t, journal.Packed, 1))
		b := &bursts{t: t, config: quick(j)}
		b.config.NackResendSleep, b.config.MaxNackResendSleep = time.Millisecond, time.Second
		b.handle = func(*message.Message) error { return errors.New("fails") }
		const aggregates = 600
		var hints []subscriber.Hint
		for n := range aggregates {
			write(t, j, fmt.Sprint(n), 0, 1)
			hints = append(hints, hint(fmt.Sprint(n), 1))
		}
		for range 2 {
			b.run(t.Context())
			time.Sleep(time.Minute)
		}
		b.take()
		b.handle = nil
		assert.Zero(t, b.run(t.Context(), hints[10:]...).Aggregates)
		assert.Len(t, b.take(), aggregates-10)
		time.Sleep(time.Minute)
		assert.Zero(t, b.run(t.Context()))
		assert.Len(t, b.take(), 10)
	})
}

// A policy is deployed together with a correction of the handler.
func TestAPolicyGivesUpNoEventThatWouldSucceedNow(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]subscriber.FailurePolicy{
		"park": subscriber.Park(3), "skip": subscriber.Skip(3), "stop": subscriber.Stop(3),
		"defer": subscriber.Defer(subscriber.Backoff{Pause: time.Minute, MaxPause: time.Minute, Attempts: 3}),
	} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after a killed process: %t", name, killed), func(t *testing.T) {
				t.Parallel()
				testdb.WithFakeTime(t, func(t *testing.T) {
					client := createIn(t, journal.Packed, 1)
					j := open(t, client)
					b := &bursts{t: t, config: quick(j)}
					b.handle = func(*message.Message) error { return errors.New("fails") }
					write(t, j, "x", 0, 1)
					for range 5 {
						b.run(t.Context())
						time.Sleep(time.Minute)
					}
					for blocked, err := range groups.Of(j, "group", topic).Behind(t.Context(), aggregate.ID{}) {
						require.NoError(t, err)
						assert.Contains(t, blocked.Failure.Reason, "without a reason")
					}
					if killed {
						killBurst(t, client, b.config)
					}
					b.take()
					b.config.Failures, b.handle = policy, nil
					assert.Zero(t, b.run(t.Context()))
					assert.Equal(t, expect("x", 1, 1), b.take())
				})
			})
		}
	}
}

// killBurst runs a burst whose process ends while it handles an event.
func killBurst(t *testing.T, client *dynamodb.Client, config subscriber.Config) {
	t.Helper()
	proxy := dynamotest.NewProxy(t, client)
	config.Journal = open(t, proxy.Client())
	b := &bursts{t: t, config: config}
	b.handle = func(*message.Message) error {
		proxy.Inject(dynamotest.CutConnection())
		time.Sleep(time.Minute)
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := b.try(ctx, subscriber.Burst{})
	require.Error(t, err)
	assert.Len(t, b.take(), 1)
	time.Sleep(time.Minute)
}

// A reconciliation has no room while very many aggregates are blocked. A sweep does not wait for
// that, because hints about the shard would wait for the sweep.
func TestASweepDoesNotWaitForRoom(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := open(t, createIn(t, journal.Packed, 1))
		b := &bursts{t: t, config: quick(j)}
		b.config.MaxNackResendSleep, b.config.Timing.ReconcileInterval, b.config.StateBytes = time.Minute, time.Hour, 1<<20
		b.handle = func(*message.Message) error { return errors.New("fails") }
		for n := range 600 {
			write(t, j, fmt.Sprint(n), 0, 1)
			if n%100 == 99 {
				b.run(t.Context())
			}
		}
		for range 10 {
			time.Sleep(time.Minute)
			b.run(t.Context())
		}
		time.Sleep(time.Hour)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		b.run(ctx)
		assert.Less(t, time.Since(began), 10*time.Second)
	})
}

// Very many new aggregates fail, so a shard stops reading. A sweep ends then, and later ones go on.
func TestASweepDoesNotWaitForHealth(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := open(t, createIn(t, journal.Packed, 1))
		b := &bursts{t: t, config: quick(j)}
		b.config.NackResendSleep, b.config.MaxNackResendSleep, b.config.StateBytes = time.Hour, time.Hour, 1<<20
		b.handle = func(*message.Message) error { return errors.New("fails") }
		const aggregates = 1000
		for n := range aggregates {
			write(t, j, fmt.Sprint(n), 0, 1)
		}
		tried := map[string]bool{}
		for range 20 {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			b.run(ctx)
			cancel()
			assert.Less(t, time.Since(began), 20*time.Second)
			for _, event := range b.take() {
				tried[event] = true
			}
			time.Sleep(time.Minute)
		}
		assert.Len(t, tried, aggregates)
	})
}
