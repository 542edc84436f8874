package subscriber_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// counted creates a journal with one shard and some aggregates of one event each.
func counted(t *testing.T, aggregates int) (*dynamotest.DB, *journal.Journal) {
	t.Helper()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
	j, before := open(t, db.Client()), earlier(t, db.Client())
	for n := range aggregates {
		write(t, before, fmt.Sprint("old", n), 0, 1)
	}
	return db, j
}

// thrifty returns a config that, with seldom, writes nothing by itself while a test counts.
func thrifty(j *journal.Journal) subscriber.Config {
	config := quick(j)
	config.Timing.LeaseDuration, config.Timing.ReconcileInterval = time.Hour, -1
	return config
}

// seldom lets a subscriber write no cursors.
var seldom = subscriber.CursorInterval(time.Hour)

// writes returns the number of writes to rows of a kind.
func writes(db *dynamotest.DB, prefix string) *dynamotest.Injection {
	return db.Inject(dynamotest.Pause(func(context.Context) {}), dynamotest.On("UpdateItem"), onRow(prefix, ""))
}

func TestInALaterTermAnEventOfEachAggregateCostsOneWrite(t *testing.T) {
	t.Parallel()
	const aggregates = 200
	db, j := counted(t, aggregates)
	first, messages := subscribe(t, quick(j))
	receiveAll(t, messages, aggregates)
	require.NoError(t, first.Close())

	for n := range aggregates {
		write(t, j, fmt.Sprint("old", n), 1, 1)
	}
	sub, messages := subscribe(t, thrifty(j), seldom)
	eventually(t, "it has the shard", func() bool { return len(sub.Shards()) == 1 })
	recording := db.Record()
	defer recording.Stop()
	receiveAll(t, messages, aggregates)
	eventually(t, "all positions are stored", func() bool { return sub.Stats().Positions == aggregates })
	_, units := recording.Units()
	assert.LessOrEqual(t, units, aggregates*1.05)
	assert.EqualValues(t, aggregates, sub.Stats().Claims)
}

func TestAGroupThatStartsNowWritesNothingForAggregatesWithoutNewEvents(t *testing.T) {
	t.Parallel()
	const aggregates = 500
	db, j := counted(t, aggregates)
	config := thrifty(j)
	config.Start, config.Timing.ReconcileInterval = subscriber.Now(), 20*time.Millisecond
	sub, messages := subscribe(t, config, subscriber.CursorInterval(20*time.Millisecond))
	eventually(t, "it has the shard", func() bool { return len(sub.Shards()) == 1 })
	positions, listed := writes(db, "position/"), writes(db, "behind/")
	eventually(t, "a reconciliation has found all of them", func() bool { return sub.Stats().Claims >= aggregates })
	write(t, j, "old7", 1, 1)
	assert.Equal(t, expect("old7", 2, 2), receiveAll(t, messages, 1))
	eventually(t, "its position is stored", func() bool { return sub.Stats().Positions == 2 })

	assert.Equal(t, 2, positions.Fired(), "where it begins with the one, and where it is then")
	assert.Zero(t, listed.Fired())
}

func TestANewGroupHardlyClaimsWhatItHasNotForgotten(t *testing.T) {
	t.Parallel()
	const aggregates = 2_000
	_, j := counted(t, aggregates)
	sub, messages := subscribe(t, thrifty(j), seldom, subscriber.IdleStreams(50))
	receiveAll(t, messages, aggregates)
	assert.Less(t, sub.Stats().Claims, uint64(aggregates/50))
}

func TestAggregatesThatWaitForAWorkerAreNotListed(t *testing.T) {
	t.Parallel()
	const aggregates = 300
	db, j := counted(t, aggregates)
	config := eager(j)
	config.MaxInFlight, config.Timing.BehindAfter = 2, 300*time.Millisecond
	listed := writes(db, "behind/")
	sub, messages := subscribe(t, config, often)
	first, second := receive(t, messages), receive(t, messages)
	eventually(t, "both are listed, as their handlers take long", func() bool { return listed.Fired() >= 2 })
	first.Ack()
	second.Ack()
	receiveAll(t, messages, aggregates-2)
	eventually(t, "all positions are stored", func() bool { return sub.Stats().Positions == aggregates })
	assert.Less(t, listed.Fired(), aggregates/4, "the others have waited as long")
}

func TestAnOutageOfTheHandlerReadsLittleOfTheHistory(t *testing.T) {
	t.Parallel()
	const aggregates, most = 2_000, 256
	db, j := counted(t, aggregates)
	config := thrifty(j)
	config.StateBytes = most * 8 << 10 // an eighth is for those that fail
	config.BufferBytes, config.MaxInFlight = 20_000, 8
	config.NackResendSleep, config.MaxNackResendSleep = 5*time.Millisecond, 20*time.Millisecond
	db.Inject(dynamotest.SmallPages(10), dynamotest.Index("journal-tail-index"))
	sub, messages := subscribe(t, config, seldom)
	var healthy atomic.Bool
	handled := make(chan struct{}, aggregates)
	go func() {
		for msg := range messages {
			if healthy.Load() {
				msg.Ack()
				handled <- struct{}{}
			} else {
				msg.Nack()
			}
		}
	}()
	eventually(t, "many attempts have failed", func() bool { return sub.Stats().Nacked > 2*most })
	status := sub.Shards()[0]
	assert.Less(t, status.Behind, uint64(aggregates/4), "the rest waits in the journal")

	healthy.Store(true)
	for range aggregates {
		await.End(t, handled, "it must go on")
	}
}

func TestCloseDoesNotWaitForADatabaseThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Classic, Shards: 4})
		for n := range 100 {
			write(t, j, fmt.Sprint(n), 0, 1)
		}
		config := quick(j)
		config.Timing.CommitInterval = time.Hour
		sub, messages := subscribe(t, config)
		receiveAll(t, messages, 99)
		receive(t, messages) // never answered
		db.Inject(dynamotest.Pause(func(ctx context.Context) { <-ctx.Done() }))
		began := time.Now()
		require.NoError(t, sub.Close())
		assert.LessOrEqual(t, time.Since(began), config.CloseTimeout+time.Second)
	})
}
