package subscriber_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// hinted returns a config whose polls come too late for a test in simulated time.
func hinted(j *journal.Journal) subscriber.Config {
	config := quick(j)
	config.Timing.PollInterval, config.Timing.MaxPollInterval = time.Hour, time.Hour
	return config
}

// onHints runs a test for each layout and kind of subscription, in simulated time.
func onHints(t *testing.T, test func(t *testing.T, db *dynamotest.DB, j *journal.Journal, subscribe func(*testing.T, subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message))) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		for name, subscribe := range kinds {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				testdb.WithFakeTime(t, func(t *testing.T) {
					db := dynamotest.New(t)
					test(t, db, testjournal.New(t, db.Client(), journal.Config{Shards: 2, Layout: layout}), subscribe)
				})
			})
		}
	})
}

// caughtUp waits until a subscriber has read all shards.
func caughtUp(t *testing.T, sub *subscriber.Subscriber) {
	t.Helper()
	eventually(t, "it has caught up", func() bool {
		shards := sub.Shards()
		for _, sh := range shards {
			if !sh.CaughtUp {
				return false
			}
		}
		return len(shards) == 2
	})
}

func TestAHintDeliversTheEventsOfAnotherProcessAtOnce(t *testing.T) {
	t.Parallel()
	onHints(t, func(t *testing.T, db *dynamotest.DB, j *journal.Journal, subscribe func(*testing.T, subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message)) {
		sub, messages := subscribe(t, hinted(j))
		caughtUp(t, sub)
		other := open(t, db.Client())
		begun := time.Now()
		for _, each := range []struct{ after, n int }{{0, 1}, {1, 3}, {4, 2}, {6, 40}} {
			write(t, other, "x", each.after, each.n)
			j.Internal().Hint(account("x"), uint64(each.after+each.n))
			assert.Equal(t, expect("x", each.after+1, each.after+each.n), receiveAll(t, messages, each.n))
		}
		write(t, other, "y", 0, 2)
		j.Internal().Hint(account("y"), 0) // it claims no version
		assert.Equal(t, expect("y", 1, 1), receiveAll(t, messages, 1))
		j.Internal().Hint(account("y"), 2)
		assert.Equal(t, expect("y", 2, 2), receiveAll(t, messages, 1))
		assert.Less(t, time.Since(begun), time.Minute, "no poll was necessary")
	})
}

func TestAHintOfMoreThanOneReadDeliversAll(t *testing.T) {
	t.Parallel()
	for name, each := range map[string]struct{ commits, events, bytes int }{
		"large events": {1, 5, 200 << 10}, "a large commit": {1, 90, 8 << 10}, "many commits": {8, 50, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onHints(t, func(t *testing.T, db *dynamotest.DB, j *journal.Journal, subscribe func(*testing.T, subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message)) {
				sub, messages := subscribe(t, hinted(j))
				caughtUp(t, sub)
				other := open(t, db.Client())
				for n := range each.commits {
					commit := storage.Commit{Aggregate: account("x"), Expected: uint64(n * each.events)}
					for range each.events {
						commit.Events = append(commit.Events, storage.Event{Type: "deposited", Payload: make([]byte, each.bytes)})
					}
					testjournal.Append(t, other, commit)
				}
				j.Internal().Hint(account("x"), uint64(each.commits*each.events))
				begun := time.Now()
				for n := range each.commits * each.events {
					msg := receive(t, messages)
					_, number, _ := subscriber.AggregateFromContext(msg.Context())
					assert.EqualValues(t, n+1, number)
					msg.Ack()
				}
				assert.Less(t, time.Since(begun), time.Minute, "no poll was necessary")
			})
		})
	}
}

func TestAHintDuringAReadOfTheTailIsNotLost(t *testing.T) {
	t.Parallel()
	onHints(t, func(t *testing.T, db *dynamotest.DB, j *journal.Journal, subscribe func(*testing.T, subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message)) {
		other := open(t, db.Client())
		read, committed := make(chan struct{}, 2), make(chan struct{})
		db.Inject(dynamotest.PauseReply(func(context.Context) {
			read <- struct{}{}
			<-committed
		}), dynamotest.On("Query"), dynamotest.Index("journal-tail-index"), dynamotest.Times(2))
		_, messages := subscribe(t, hinted(j))
		<-read
		<-read // both replies are without the event
		write(t, other, "x", 0, 1)
		j.Internal().Hint(account("x"), 1)
		begun := time.Now()
		close(committed)
		assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
		assert.Less(t, time.Since(begun), time.Minute, "no poll was necessary")
	})
}

func TestAHintIsNotBelieved(t *testing.T) {
	t.Parallel()
	onHints(t, func(t *testing.T, db *dynamotest.DB, j *journal.Journal, subscribe func(*testing.T, subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message)) {
		notBelieved(t, db, subscribe, hinted(j))
	})
}

// With this policy a claim of a position writes its row.
func TestAHintWritesNoRows(t *testing.T) {
	t.Parallel()
	onHints(t, func(t *testing.T, db *dynamotest.DB, j *journal.Journal, _ func(*testing.T, subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message)) {
		config := hinted(j)
		config.Failures = subscriber.Skip(1)
		notBelieved(t, db, kinds["group"], config)
	})
}

func notBelieved(
	t *testing.T, db *dynamotest.DB, subscribe func(*testing.T, subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message), config subscriber.Config,
) {
	t.Helper()
	other := open(t, db.Client())
	write(t, other, "x", 0, 2)
	write(t, other, "gone", 0, 2)
	require.NoError(t, other.Delete(t.Context(), account("gone"), 2, journal.RemoveOptions{}))
	sub, messages := subscribe(t, config)
	assert.Equal(t, expect("x", 1, 2), receiveAll(t, messages, 2))
	caughtUp(t, sub)
	time.Sleep(time.Minute) // positions are stored
	before := checkpoints(t, db.Client())
	random := rand.New(rand.NewPCG(1, 2))
	for range 600 {
		id := account([]string{"x", "gone", "never", fmt.Sprint(random.IntN(1000))}[random.IntN(4)])
		config.Journal.Internal().Hint(id, []uint64{0, 1, 2, 3, 7, math.MaxUint64}[random.IntN(6)])
		if random.IntN(10) == 0 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	time.Sleep(time.Minute)
	select {
	case msg := <-messages:
		t.Errorf("received %s", msg.Payload)
	default:
	}
	assert.Equal(t, before, checkpoints(t, db.Client()), "no row was written")
	stats := sub.Stats()
	assert.Zero(t, stats.Parked+stats.Skipped+stats.Failures+stats.Nacked)
	assert.NotZero(t, stats.HintReads)
	write(t, other, "x", 2, 2)
	config.Journal.Internal().Hint(account("x"), 4)
	assert.Equal(t, expect("x", 3, 4), receiveAll(t, messages, 2))
}

// The aggregates have events, which are not for a group that begins later.
func TestAForgedHintOfAnAggregateWithEventsWritesNoRow(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		for n := range 20 {
			write(t, j, fmt.Sprint(n), 0, 3)
		}
		time.Sleep(time.Minute)
		config := hinted(j)
		config.Failures, config.Start = subscriber.Skip(1), subscriber.Now()
		sub, messages := subscribe(t, config)
		caughtUp(t, sub)
		time.Sleep(time.Minute) // the cursors are stored
		before := checkpoints(t, client)
		for n := range 20 {
			j.Internal().Hint(account(fmt.Sprint(n)), 7)
		}
		time.Sleep(time.Minute)
		assert.Equal(t, before, checkpoints(t, client))
		write(t, open(t, client), "3", 3, 1)
		j.Internal().Hint(account("3"), 4)
		assert.Equal(t, expect("3", 4, 4), receiveAll(t, messages, 1))
	})
}

// checkpoints returns the number of rows of the checkpoint table.
func checkpoints(t *testing.T, client *dynamodb.Client) int {
	t.Helper()
	table := "checkpoint"
	found, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	require.NoError(t, err)
	return len(found.Items)
}

func TestAFloodOfForgedHintsCausesFewReads(t *testing.T) {
	t.Parallel()
	onHints(t, func(t *testing.T, db *dynamotest.DB, j *journal.Journal, subscribe func(*testing.T, subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message)) {
		config := hinted(j)
		config.Timing.PollInterval, config.Timing.MaxPollInterval = 200*time.Millisecond, time.Hour
		sub, messages := subscribe(t, config)
		caughtUp(t, sub)
		recording := db.Record()
		defer recording.Stop()
		const seconds = 3
		for second := range seconds {
			for n := range 10_000 {
				j.Internal().Hint(account(fmt.Sprint("forged-", second, "-", n)), uint64(n))
			}
			time.Sleep(time.Second)
		}
		// A hint costs two reads at most, and a poll has two or three.
		reads := len(recording.Calls("Query", "GetItem", "BatchGetItem"))
		assert.Less(t, reads, seconds*(2*100+2*3*6)+300)
		write(t, open(t, db.Client()), "x", 0, 1)
		j.Internal().Hint(account("x"), 1)
		assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
	})
}

// rarely opens a journal whose readers poll rarely.
func rarely(t *testing.T, client journal.Client) *journal.Journal {
	t.Helper()
	j := open(t, client)
	j.Internal().PollRarely(10 * time.Second)
	return j
}

func TestAnIdleShardThatPollsRarelyReadsLittle(t *testing.T) {
	t.Parallel()
	const shards = 4
	eachLayoutInFakeTime(t, shards, func(t *testing.T, client *dynamodb.Client) {
		j := rarely(t, client)
		ctx, units := journal.CountUnits(t.Context())
		sub := newSubscriber(t, subscriber.Config{Journal: j, ConsumerGroup: "group"})
		_, err := sub.Subscribe(ctx, topic)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		before := units.Read()
		time.Sleep(20 * time.Minute)
		each := 3 * (units.Read() - before) / shards
		assert.LessOrEqual(t, each, 200.0, "read units for each shard and hour")
		assert.Greater(t, each, 150.0)
	})
}

func TestAnUnannouncedEventRestoresNormalPolling(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
		j, other := rarely(t, client), open(t, client)
		sub, messages := subscribe(t, subscriber.Config{Journal: j, ConsumerGroup: "group"})
		caughtUp(t, sub)
		time.Sleep(30 * time.Minute) // a reconciliation comes after an hour
		write(t, other, "announced", 0, 1)
		j.Internal().Hint(account("announced"), 1)
		receive(t, messages).Ack()
		write(t, j, "own", 0, 1)
		receive(t, messages).Ack()
		time.Sleep(time.Minute)
		write(t, other, "late", 0, 1)
		receive(t, messages).Ack() // by a poll
		j.Internal().Hint(account("late"), 1)
		time.Sleep(time.Minute)
		assert.Zero(t, sub.Stats().Unannounced)
		assert.Equal(t, 10*time.Second, j.Internal().RarePoll())

		write(t, other, "lost", 0, 1)
		begun := time.Now()
		receive(t, messages).Ack()
		assert.Less(t, time.Since(begun), 11*time.Second)
		eventually(t, "polling is normal", func() bool { return j.Internal().RarePoll() == 0 })
		assert.EqualValues(t, 1, sub.Stats().Unannounced)
		time.Sleep(time.Minute)
		write(t, other, "lost", 1, 1)
		begun = time.Now()
		receive(t, messages).Ack()
		assert.Less(t, time.Since(begun), 1200*time.Millisecond)
		time.Sleep(10 * time.Minute)
		assert.Equal(t, 10*time.Second, j.Internal().RarePoll())
	})
}

func TestWhatWasAnnouncedLongAgoDoesNotHideALossOfHints(t *testing.T) {
	t.Parallel()
	for name, announce := range map[string]func(j *journal.Journal){
		"of many": func(j *journal.Journal) {
			for n := range 10_000 {
				j.Internal().Hint(account(fmt.Sprint("busy-", n)), 1)
			}
		},
		"of a version that does not exist": func(j *journal.Journal) { j.Internal().Hint(account("lost"), math.MaxUint64) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
				j, other := rarely(t, client), open(t, client)
				sub, messages := subscribe(t, subscriber.Config{Journal: j, ConsumerGroup: "group"})
				caughtUp(t, sub)
				announce(j)
				// All senders have gone. A reconciliation comes after an hour.
				time.Sleep(30 * time.Minute)
				write(t, other, "lost", 0, 1)
				receive(t, messages).Ack()
				time.Sleep(time.Minute)
				assert.EqualValues(t, 1, sub.Stats().Unannounced)
				assert.Zero(t, j.Internal().RarePoll())
			})
		})
	}
}

func TestALossOfAllHintsOfABusyAggregateIsNoticed(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
		j, other := rarely(t, client), open(t, client)
		sub, messages := subscribe(t, subscriber.Config{Journal: j, ConsumerGroup: "group"})
		caughtUp(t, sub)
		for n := range 10 {
			write(t, other, "lost", n, 1)
			receive(t, messages).Ack()
			time.Sleep(time.Second)
		}
		assert.NotZero(t, sub.Stats().Unannounced)
	})
}

func TestAnOutageIsNoLossOfHints(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		testdb.WithFakeTime(t, func(t *testing.T) {
			db := dynamotest.New(t)
			other := testjournal.New(t, db.Client(), journal.Config{Shards: 2, Layout: layout})
			j := rarely(t, db.Client())
			sub, messages := subscribe(t, subscriber.Config{Journal: j, ConsumerGroup: "group"})
			caughtUp(t, sub)
			throttled := db.Inject(dynamotest.Throttle(), dynamotest.On("Query", "GetItem", "BatchGetItem"))
			for n := range 60 {
				write(t, other, fmt.Sprint(n), 0, 1)
				j.Internal().Hint(account(fmt.Sprint(n)), 1)
				time.Sleep(3 * time.Second)
			}
			throttled.Remove()
			for range 60 {
				receive(t, messages).Ack()
			}
			time.Sleep(time.Minute)
			assert.Zero(t, sub.Stats().Unannounced)
		})
	})
}

// The race detector sees whether workers read what the tail changes.
func TestAggregatesAreServedWhileOthersCommit(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		_, messages := subscribe(t, quick(j))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range 300 {
				(<-messages).Ack()
			}
		}()
		for n := range 300 {
			write(t, j, fmt.Sprint(n), 0, 1)
		}
		await.End(t, ended, "all are delivered")
	})
}
