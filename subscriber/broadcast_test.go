package subscriber_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// broadcast returns a config whose subscriptions receive all events.
func broadcast(j *journal.Journal) subscriber.Config {
	config := quick(j)
	config.ConsumerGroup, config.Broadcast = "", true
	return config
}

func TestABroadcastReachesEachSubscriptionAndWritesNothing(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 4}))
	j := open(t, db.Client())
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
	config.Timing.TrailingDelay = 20 * time.Millisecond
	_, messages := subscribe(t, config, subscriber.IdleStreams(10))
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
	_, messages := subscribe(t, unanswered(broadcast(j)))
	position, ok := subscriber.PositionFromContext(receive(t, messages).Context())
	require.True(t, ok)
	require.ErrorIs(t, position.Commit(t.Context(), nil), subscriber.ErrNoPosition)
	require.ErrorIs(t, position.CommitAhead(t.Context(), 10, nil), subscriber.ErrNoPosition)
}

func TestWhatABroadcastCannotDoIsRefused(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	for field, change := range map[string]func(*subscriber.Config){
		"ConsumerGroup":            func(c *subscriber.Config) { c.ConsumerGroup = "group" },
		"Failures":                 func(c *subscriber.Config) { c.Failures = subscriber.Park(1) },
		"Timing.ReconcileInterval": func(c *subscriber.Config) { c.Timing.ReconcileInterval = time.Hour },
		"MaxInFlight":              func(c *subscriber.Config) { c.MaxInFlight = -1 },
		"Positions":                func(c *subscriber.Config) { c.Positions = struct{ subscriber.PositionStore }{} },
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			config := broadcast(j)
			change(&config)
			_, err := subscriber.NewSubscriber(config, nil)
			var wrong *subscriber.ConfigError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, field, wrong.Field)
		})
	}
}

func TestABroadcastClosesInTime(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
		j := open(t, db.Client())
		write(t, j, "x", 0, 1)
		config := broadcast(j)
		sub, messages := subscribe(t, config)
		receive(t, messages) // never answered
		began := time.Now()
		require.NoError(t, sub.Close())
		assert.LessOrEqual(t, time.Since(began), config.CloseTimeout+time.Second)
	})
}
