package subscriber_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/dedup"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// deferring returns the config quick with a policy that defers with short pauses.
func deferring(j *journal.Journal, attempts int) subscriber.Config {
	config := quick(j)
	config.Failures = subscriber.Defer(subscriber.Backoff{Pause: time.Millisecond, MaxPause: 5 * time.Millisecond, Attempts: attempts})
	return config
}

func TestAnEventThatFailsIsDeferredAndItsAggregateGoesOn(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		t.Helper()
		j := open(t, client)
		write(t, j, "x", 0, 3)
		config := deferring(j, 10)
		config.Failures = subscriber.Defer(subscriber.Backoff{Pause: 2 * time.Second})
		sub, messages := subscribe(t, config)
		failed := receive(t, messages)
		subscriber.SetNackReason(failed.Context(), fmt.Errorf("no mail server"))
		failed.Nack()
		assert.Equal(t, expect("x", 2, 3), receiveAll(t, messages, 2), "the aggregate goes on")
		records := skipped(t, j)
		require.Len(t, records, 1)
		r := records[0]
		assert.Equal(t, "no mail server, once", r.Reason)
		assert.Equal(t, groups.SkippedEvent{
			Aggregate: account("x"), Number: 1, EventType: "deposited", At: r.At, Reason: r.Reason, Due: r.At.Add(2 * time.Second), Attempts: 1,
		}, r)

		again := receive(t, messages)
		assert.Equal(t, "x/1", string(again.Payload))
		assert.Equal(t, failed.UUID, again.UUID)
		assert.Equal(t, "2", again.Metadata.Get(subscriber.DeliveryAttemptKey))
		assert.Equal(t, "true", again.Metadata.Get(subscriber.DeferredKey))
		assert.Empty(t, failed.Metadata.Get(subscriber.DeferredKey))
		_, has := subscriber.PositionFromContext(again.Context())
		assert.False(t, has, "the position is beyond it")
		again.Ack()

		eventually(t, "no record is left", func() bool { return len(skipped(t, j)) == 0 })
		assert.EqualValues(t, 3, stored(t, j))
		stats := sub.Stats()
		assert.EqualValues(t, 1, stats.Deferred)
		assert.EqualValues(t, 1, stats.Retried)
		assert.Zero(t, stats.Skipped)
	})
}

func TestADeferredEventThatKeepsFailingIsGivenUpAndItsRecordStays(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 2)
	sub, messages := subscribe(t, deferring(j, 4))
	for range 5 { // x/1 may be delivered again before x/2
		if msg := receive(t, messages); string(msg.Payload) == "x/1" {
			msg.Nack()
		} else {
			msg.Ack()
		}
	}

	eventually(t, "it is given up", func() bool { return sub.Stats().Skipped == 1 })
	records := skipped(t, j)
	require.Len(t, records, 1)
	assert.True(t, records[0].Due.IsZero())
	assert.Equal(t, 4, records[0].Attempts)
	assert.Contains(t, records[0].Reason, "4 times")
	write(t, j, "x", 2, 1)
	assert.Equal(t, expect("x", 3, 3), receiveAll(t, messages, 1), "nothing of it comes again")

	require.NoError(t, groups.New(j).RetrySkipped(t.Context(), "group", account("x"), 1))
	nack(t, messages, "x/1", 3) // attempts count from the start
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
	eventually(t, "no record is left", func() bool { return len(skipped(t, j)) == 0 })
	require.ErrorIs(t, groups.New(j).RetrySkipped(t.Context(), "group", account("x"), 1), groups.ErrNotSkipped)
}

func TestWhatAFormerOwnerDeferredIsRetried(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 2)
	config := deferring(j, 10)
	config.Failures = subscriber.Defer(subscriber.Backoff{Pause: 2 * time.Second})
	first, messages := subscribe(t, config)
	nack(t, messages, "x/1", 1)
	receiveAll(t, messages, 1)
	require.NoError(t, first.Close())

	config.Failures = subscriber.Block() // another policy keeps the record
	_, messages = subscribe(t, config)
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
	eventually(t, "no record is left", func() bool { return len(skipped(t, j)) == 0 })
}

// A connection may die while the records are read.
func TestAReadOfDeferredEventsThatHangsIsRepeated(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Classic, Shards: 1})
		write(t, j, "x", 0, 2)
		config := deferring(j, 10)
		config.Failures = subscriber.Defer(subscriber.Backoff{Pause: time.Second})
		first, messages := subscribe(t, config)
		nack(t, messages, "x/1", 1)
		receiveAll(t, messages, 1)
		require.NoError(t, first.Close())

		hang := dynamotest.Pause(func(ctx context.Context) { <-ctx.Done() })
		readsRecords := func(operation string, input any) bool {
			q, ok := input.(*dynamodb.QueryInput)
			if !ok {
				return false
			}
			prefix, ok := q.ExpressionAttributeValues[":prefix"].(*types.AttributeValueMemberS)
			return ok && prefix.Value == "event/"
		}
		hung := db.Inject(hang, dynamotest.Matching(readsRecords), dynamotest.Times(2))
		_, messages = subscribe(t, config)
		assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
		assert.Equal(t, 2, hung.Fired())
	})
}

// A former owner may still make its last attempt when the new owner retries the event.
func TestADeferredEventWhoseRecordAFormerOwnerHasChangedIsRetried(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := testjournal.New(t, dynamotest.New(t).Client(), journal.Config{Layout: journal.Classic, Shards: 1})
		write(t, j, "x", 0, 1)
		config := deferring(j, 100)
		config.Timing.MaxPollInterval = time.Second
		config.Failures = subscriber.Defer(subscriber.Backoff{Pause: time.Second, MaxPause: time.Second})
		_, messages := subscribe(t, config)
		nack(t, messages, "x/1", 1)

		store, group := checkpoint.New(j), checkpoint.Group{Name: "group"}
		formerOwner := func() {
			was, found, err := store.ReadSkipped(t.Context(), group, account("x"), 1)
			require.NoError(t, err)
			require.True(t, found)
			now := was
			now.Due = was.Due.Add(time.Second)
			require.NoError(t, store.Reschedule(t.Context(), group, was, now))
		}
		began := time.Now()
		failed := receive(t, messages)
		formerOwner()
		failed.Nack()
		handled := receive(t, messages)
		formerOwner()
		handled.Ack()
		eventually(t, "no record is left", func() bool { return len(skipped(t, j)) == 0 })
		assert.Less(t, time.Since(began), 10*time.Second, "no reading of all records is needed")
		select {
		case msg := <-messages:
			require.Fail(t, "it has been handled", msg.UUID)
		// longer than the 10 minutes between reads of all records
		case <-time.After(11 * time.Minute):
		}
	})
}

// A former owner may write the record after the new owner has read the records.
func TestARecordThatComesLateIsFound(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 1)
	_, messages := subscribe(t, deferring(j, 10), subscriber.Rescan(10*time.Millisecond))
	receiveAll(t, messages, 1)
	group := checkpoint.Group{Name: "group"}

	require.NoError(t, checkpoint.New(j).PutSkipped(t.Context(), group, checkpoint.Skipped{
		Aggregate: account("x"), Number: 1, Due: time.Now(), Attempts: 1,
	}))
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
}

func TestAnEventThatASkippingGroupHasSkippedCanBeRetried(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 2)
	config := quick(j)
	config.Failures = subscriber.Skip(1)
	_, messages := subscribe(t, config)
	nack(t, messages, "x/1", 1)
	receiveAll(t, messages, 1)

	n, err := groups.Of(j, "group", topic).RetryAllSkipped(t.Context(), groups.Selection{EventType: "withdrawn"})
	require.NoError(t, err)
	assert.Zero(t, n)
	n, err = groups.Of(j, "group", topic).RetryAllSkipped(t.Context(), groups.Selection{Reason: "nacked"})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
}

func TestADeferredEventThatIsForgottenDoesNotComeAgain(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 2)
	config := deferring(j, 10)
	config.Failures = subscriber.Defer(subscriber.Backoff{Pause: 2 * time.Second})
	_, messages := subscribe(t, config)
	nack(t, messages, "x/1", 1)
	nack(t, messages, "x/2", 1)
	eventually(t, "both are deferred", func() bool { return len(skipped(t, j)) == 2 })

	require.NoError(t, groups.New(j).ForgetSkipped(t.Context(), "group", account("x"), 1))
	assert.Equal(t, expect("x", 2, 2), receiveAll(t, messages, 1))
	write(t, j, "x", 2, 1)
	assert.Equal(t, expect("x", 3, 3), receiveAll(t, messages, 1))
}

func TestADeferredEventThatWasRemovedIsPassedOver(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 2)
	config := deferring(j, 10)
	config.Failures = subscriber.Defer(subscriber.Backoff{Pause: 2 * time.Second})
	sub, messages := subscribe(t, config)
	nack(t, messages, "x/1", 1)
	receiveAll(t, messages, 1)
	require.NoError(t, j.Delete(t.Context(), account("x"), 2, journal.RemoveOptions{}))

	eventually(t, "no record is left", func() bool { return len(skipped(t, j)) == 0 })
	assert.EqualValues(t, 1, sub.Stats().Truncated)
}

// While a service is down all events fail, and the table must not grow without a limit.
func TestEventsThatFailWaitInTheirPlaceOnceManyAreDeferred(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	for n := range 6 {
		write(t, j, fmt.Sprint(n), 0, 20)
	}
	var mu sync.Mutex
	down, handled := true, map[string]int{}
	sub, messages := subscribe(t, deferring(j, 1_000_000), subscriber.MaxDeferred(2))
	go func() {
		for msg := range messages {
			mu.Lock()
			if down {
				msg.Nack()
			} else {
				handled[string(msg.Payload)]++
				msg.Ack()
			}
			mu.Unlock()
		}
	}()
	eventually(t, "all are tried again and again", func() bool { return sub.Stats().Nacked > 200 })
	// Of six events that are given up at the same moment, all records may be written.
	assert.LessOrEqual(t, sub.Stats().Deferred, uint64(2+6))
	assert.LessOrEqual(t, len(skipped(t, j)), 2+6)
	mu.Lock()
	down = false
	mu.Unlock()
	eventually(t, "all are handled", func() bool { return len(skipped(t, j)) == 0 && sub.Stats().Acked == 120 })
	mu.Lock()
	defer mu.Unlock()
	assert.Len(t, handled, 120)
}

// In a long outage events are given up, and their records stay.
func TestRecordsOfEventsThatAreGivenUpAreBounded(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	const n = 40
	write(t, j, "x", 0, n)
	sub, messages := subscribe(t, deferring(j, 2), subscriber.MaxDeferred(5))
	down := make(chan struct{})
	handled := map[string]bool{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for len(handled) < n-5 {
			msg := <-messages
			select {
			case <-down:
				handled[string(msg.Payload)] = true
				msg.Ack()
			default:
				msg.Nack()
			}
		}
	}()
	eventually(t, "it goes on trying", func() bool { return sub.Stats().Skipped == 5 && sub.Stats().Nacked > 100 })
	assert.Len(t, skipped(t, j), 5)
	close(down)
	await.End(t, done, "the others must be handled")
	assert.Len(t, skipped(t, j), 5)
}

// An operator may make more records due than memory holds.
func TestMoreRecordsThanMemoryHoldsAreRetriedInTurn(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	const n = 40
	write(t, j, "x", 0, n)
	config := deferring(j, 100)
	config.Failures = subscriber.Skip(1)
	first, messages := subscribe(t, config)
	for range n {
		receive(t, messages).Nack()
	}
	eventually(t, "all are skipped", func() bool { return first.Stats().Skipped == n })
	count, err := groups.Of(j, "group", topic).RetryAllSkipped(t.Context(), groups.Selection{})
	require.NoError(t, err)
	require.Equal(t, n, count)
	require.NoError(t, first.Close())

	_, messages = subscribe(t, deferring(j, 1_000_000), subscriber.MaxDeferred(4))
	handled, attempts := map[string]bool{}, map[string]int{}
	for len(handled) < n {
		msg := receive(t, messages)
		if attempts[msg.UUID]++; len(attempts) < n { // nothing succeeds before each event was tried
			msg.Nack()
			continue
		}
		handled[string(msg.Payload)] = true
		msg.Ack()
	}
	eventually(t, "no record is left", func() bool { return len(skipped(t, j)) == 0 })
}

func TestPartsOfADeferredEventThatAreAckedDoNotComeAgain(t *testing.T) {
	t.Parallel()
	j := oldBasket(t)
	config := ofToday(j)
	config.Failures = subscriber.Defer(subscriber.Backoff{Pause: time.Millisecond})
	messages, stop := subscribeTo(t, config)
	defer stop()
	acked, failed := map[string]int{}, false
	for len(acked) < 5 {
		msg := <-messages
		if msg.Metadata.Get(subscriber.PartKey) == "2/3" && !failed {
			failed = true
			msg.Nack()
			continue
		}
		acked[msg.UUID]++
		msg.Ack()
	}
	for id, n := range acked {
		assert.Equal(t, 1, n, id)
	}
	for _, r := range recordsOf(t, j, "g", "basket") {
		assert.Fail(t, "no record may be left", "%v", r)
	}
}

// recordsOf returns the records. If there are some, it waits a moment for their removal.
func recordsOf(t *testing.T, j *journal.Journal, group, topic string) (records []groups.SkippedEvent) {
	t.Helper()
	eventually(t, "no record is left", func() bool {
		records = nil
		for e, err := range groups.Of(j, group, topic).Skipped(t.Context(), aggregate.ID{}, 0) {
			require.NoError(t, err)
			records = append(records, e)
		}
		return len(records) == 0
	})
	return records
}

func TestPositionsRefuseADeferredEvent(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j := open(t, client)
	require.NoError(t, dedup.CreateTable(t.Context(), client, dedup.TableConfig{Name: "dedup"}))
	positions, err := dedup.NewPositions(client, dedup.PositionsConfig{Table: "dedup", Group: "c"})
	require.NoError(t, err)
	write(t, j, "x", 0, 1)
	_, messages := subscribe(t, deferring(j, 10))
	nack(t, messages, "x/1", 1)
	msg := receive(t, messages)
	_, err = positions.Middleware(func(*message.Message) ([]*message.Message, error) { return nil, nil })(msg)
	require.ErrorIs(t, err, dedup.ErrDeferred)
	msg.Ack()
}

func TestDeferRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	for name, change := range map[string]func(*subscriber.Config){
		"a negative pause":    func(c *subscriber.Config) { c.Failures = subscriber.Defer(subscriber.Backoff{Pause: -1}) },
		"a maximum below":     func(c *subscriber.Config) { c.Failures = subscriber.Defer(subscriber.Backoff{Pause: 2, MaxPause: 1}) },
		"negative attempts":   func(c *subscriber.Config) { c.Failures = subscriber.Defer(subscriber.Backoff{Attempts: -1}) },
		"positions elsewhere": func(c *subscriber.Config) { c.Positions = &ledgers{} },
	} {
		config := deferring(j, 1)
		change(&config)
		_, err := subscriber.NewSubscriber(config, nil)
		var refused *subscriber.ConfigError
		require.ErrorAs(t, err, &refused, name)
		assert.Equal(t, "Failures", refused.Field, name)
	}
}

// ledgers is a store of positions that is never called.
type ledgers struct{ subscriber.PositionStore }

// Members join and leave, requests and handlers fail. In the end each event is handled, and no
// record remains.
func TestNothingThatIsDeferredIsLostAmidFaults(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any will do
	t.Logf("seed %d", seed)
	eachLayout(t, 2, func(t *testing.T, client *dynamodb.Client) {
		t.Helper()
		random := rand.New(rand.NewPCG(seed, 1))  //nolint:gosec // a test draws
		rewinds := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // as above
		j, faulty := open(t, client), dynamotest.NewProxy(t, client)
		const aggregates, each = 12, 10
		for n := range aggregates {
			write(t, j, fmt.Sprint(n), 0, each)
		}
		var mu sync.Mutex
		healthy := false
		handled := map[string]bool{}
		handle := func(msg *message.Message) {
			mu.Lock()
			defer mu.Unlock()
			if !healthy && random.IntN(3) == 0 {
				msg.Nack()
				return
			}
			msg.Ack()
			handled[string(msg.Payload)] = true
		}
		rescan := subscriber.Rescan(50 * time.Millisecond)
		config := func() subscriber.Config {
			c := deferring(open(t, faulty.Client(testdb.Once)), 1_000_000)
			c.Timing.LeaseDuration, c.CloseTimeout = time.Second, 100*time.Millisecond
			return c
		}
		throttles := faulty.Inject(dynamotest.Throttle(), dynamotest.Chance(0.1))
		losses := faulty.Inject(dynamotest.LoseReply(), dynamotest.Chance(0.05))
		for range 4 {
			sub, err := subscriber.NewSubscriber(config(), nil)
			require.NoError(t, err)
			sub.Limit(rescan)
			messages := subscribeAmidFaults(t, sub)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for msg := range messages {
					handle(msg)
				}
			}()
			// members join and leave
			time.Sleep(time.Duration(rewinds.IntN(400)) * time.Millisecond)
			require.NoError(t, sub.Close())
			<-ended
		}
		throttles.Remove()
		losses.Remove()
		mu.Lock()
		healthy = true
		mu.Unlock()
		_, messages := subscribe(t, config(), rescan)
		go func() {
			for msg := range messages {
				handle(msg)
			}
		}()
		eventually(t, "everything is handled", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(handled) == aggregates*each
		})
		eventually(t, "no record is left", func() bool { return len(skipped(t, j)) == 0 })
	})
}

// subscribeAmidFaults subscribes, and retries after errors.
func subscribeAmidFaults(t *testing.T, sub *subscriber.Subscriber) (messages <-chan *message.Message) {
	t.Helper()
	eventually(t, "it subscribes", func() (ok bool) {
		var err error
		messages, err = sub.Subscribe(context.WithoutCancel(t.Context()), topic)
		return err == nil
	})
	return messages
}

// After a crash at most the last event of an aggregate is delivered again.
func TestThePositionIsStoredAfterEachAckWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 5)
	config := quick(j)
	config.Timing.CommitInterval = -1
	sub, messages := subscribe(t, config)
	for n := range uint64(5) {
		msg := receive(t, messages)
		assert.Equal(t, n, stored(t, j), "the events before it are stored when an event comes")
		msg.Ack()
	}
	eventually(t, "the last one is stored", func() bool { return stored(t, j) == 5 })
	require.NoError(t, sub.Close())
	assert.EqualValues(t, 5, sub.Stats().Positions)
}

func TestAnEventWaitsUntilThePositionBeforeItIsStored(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j, faulty := open(t, client), dynamotest.NewProxy(t, client)
	write(t, j, "x", 0, 2)
	config := quick(open(t, faulty.Client(testdb.Once)))
	config.Timing.CommitInterval = -1
	sub, messages := subscribe(t, config)
	msg := receive(t, messages)
	fault := faulty.Inject(dynamotest.Throttle(), dynamotest.On("UpdateItem"))
	msg.Ack()
	eventually(t, "it has tried", func() bool { return sub.Stats().Failures > 0 })
	assert.EqualValues(t, 1, sub.Stats().Delivered)
	fault.Remove()
	msg = receive(t, messages)
	assert.Equal(t, "x/2", string(msg.Payload))
	assert.EqualValues(t, 1, stored(t, j))
	msg.Ack()
}
