package subscriber_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// broadcast returns a config whose intervals suit tests.
func broadcast(j *journal.Journal) subscriber.BroadcastConfig { return broadcastOf(quick(j)) }

// broadcastOf returns a config with the fields that a broadcast has too.
func broadcastOf(c subscriber.Config) subscriber.BroadcastConfig {
	return subscriber.BroadcastConfig{
		Journal: c.Journal, Start: c.Start, CloseTimeout: c.CloseTimeout,
		NackResendSleep: c.NackResendSleep, MaxNackResendSleep: c.MaxNackResendSleep,
		PollInterval: c.Timing.PollInterval, MaxPollInterval: c.Timing.MaxPollInterval, TrailingDelay: c.Timing.TrailingDelay,
	}
}

// kinds contains the kinds of subscriptions for tests of both.
var kinds = map[string]func(*testing.T, subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message){
	"group": func(t *testing.T, c subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message) {
		t.Helper()
		return subscribe(t, c)
	},
	"broadcast": func(t *testing.T, c subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message) {
		t.Helper()
		return subscribe(t, broadcastOf(c))
	},
}

func TestABroadcastReachesEachSubscriptionAndWritesNothing(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Classic, Shards: 4})
	write(t, earlier(t, db.Client()), "x", 0, 3)
	recording := db.Record()
	defer recording.Stop()
	config := broadcast(j)
	_, all := subscribe(t, config)
	config.Start = subscriber.Now()
	now, changed := subscribe(t, config)
	eventually(t, "it has the shards", func() bool { return len(now.Shards()) == 4 })
	assert.Equal(t, expect("x", 1, 3), receiveAll(t, all, 3))

	write(t, open(t, db.Client()), "x", 3, 1) // by another process
	receive(t, changed).Nack()
	assert.Equal(t, expect("x", 4, 4), receiveAll(t, changed, 1))
	assert.Equal(t, expect("x", 4, 4), receiveAll(t, all, 1))
	require.NoError(t, now.Close())
	assert.Empty(t, recording.Calls("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"))
	assert.Len(t, recording.Calls("TransactWriteItems"), 1, "the commit")
}

func TestABroadcastDoesNotRepeatWhatItHasForgotten(t *testing.T) {
	t.Parallel()
	const aggregates = 300
	j := setup(t, 1)
	config := broadcast(j)
	config.TrailingDelay = 20 * time.Millisecond
	// Few may be unstored, so the subscription can forget the others soon.
	_, messages := subscribe(t, config, subscriber.IdleStreams(10), subscriber.MaxUnstored(20))
	for round := range 3 {
		for n := range aggregates {
			write(t, j, fmt.Sprint("a", n), round, 1)
		}
		want := make([]string, aggregates)
		for n := range want {
			want[n] = fmt.Sprintf("a%d/%d", n, round+1)
		}
		assert.ElementsMatch(t, want, receiveAll(t, messages, aggregates))
	}
	write(t, j, "last", 0, 1)
	assert.Equal(t, expect("last", 1, 1), receiveAll(t, messages, 1), "nothing comes twice")
}

func TestABroadcastHasNoPositionToCommit(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 1)
	_, messages := subscribe(t, broadcastOf(unanswered(quick(j))))
	position, ok := subscriber.PositionFromContext(receive(t, messages).Context())
	require.True(t, ok)
	err := position.Commit(t.Context(), nil)
	require.ErrorIs(t, err, subscriber.ErrNoPosition)
	require.ErrorContains(t, err, "use NewSubscriber, with a consumer group")
	require.ErrorIs(t, position.CommitAhead(t.Context(), 10, nil), subscriber.ErrNoPosition)
}

func TestABroadcastThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	for field, change := range map[string]func(*subscriber.BroadcastConfig){
		"Journal":         func(c *subscriber.BroadcastConfig) { c.Journal = nil },
		"MaxInFlight":     func(c *subscriber.BroadcastConfig) { c.MaxInFlight = -1 },
		"MaxPollInterval": func(c *subscriber.BroadcastConfig) { c.MaxPollInterval = time.Millisecond },
		"TrailingDelay":   func(c *subscriber.BroadcastConfig) { c.TrailingDelay = -1 },
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			config := broadcast(j)
			change(&config)
			_, err := subscriber.NewBroadcast(config, nil)
			var wrong *subscriber.ConfigError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, field, wrong.Field)
		})
	}
}

func TestABroadcastRefusesPoliciesThatRecordEvents(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	for _, policy := range []subscriber.FailurePolicy{
		subscriber.Park(1), subscriber.Skip(1), subscriber.Stop(1), subscriber.Defer(subscriber.Backoff{}),
	} {
		config := broadcast(j)
		config.Failures = policy
		_, err := subscriber.NewBroadcast(config, nil)
		var wrong *subscriber.ConfigError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, "Failures", wrong.Field)
	}
}

func TestABroadcastClosesInTime(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := testjournal.New(t, dynamotest.New(t).Client(), journal.Config{Layout: journal.Classic, Shards: 1})
		write(t, j, "x", 0, 1)
		config := broadcast(j)
		sub, messages := subscribe(t, config)
		receive(t, messages) // never answered
		began := time.Now()
		require.NoError(t, sub.Close())
		assert.LessOrEqual(t, time.Since(began), config.CloseTimeout+time.Second)
	})
}
