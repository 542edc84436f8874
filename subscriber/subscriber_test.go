package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/handled"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestANewGroupGetsAllOfHistoryInOrder(t *testing.T) {
	t.Parallel()
	eachLayout(t, 4, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		for i := range 10 {
			write(t, j, fmt.Sprint("a", i), 0, 150) // two transactions, with ties in time
		}
		_, messages := subscribe(t, quick(j))

		d := &deliveries{last: map[string]uint64{}}
		for range 10 * 150 {
			msg := receive(t, messages)
			require.NoError(t, d.note(msg))
			msg.Ack()
		}
		for i := range 10 {
			assert.EqualValues(t, 150, d.has(fmt.Sprint("a", i)))
		}
	})
}

func TestEachGroupGetsEachEvent(t *testing.T) {
	t.Parallel()
	eachLayout(t, 2, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		write(t, j, "x", 0, 5)
		for _, group := range []string{"one", "two"} {
			config := quick(j)
			config.ConsumerGroup = group
			_, messages := subscribe(t, config)
			assert.Equal(t, expect("x", 1, 5), receiveAll(t, messages, 5), "group %s", group)
		}
	})
}

func TestEventsThatAreCommittedWhileItRunsAreDelivered(t *testing.T) {
	t.Parallel()
	eachLayout(t, 2, func(t *testing.T, client *dynamodb.Client) {
		here, there := open(t, client), open(t, client)
		_, messages := subscribe(t, quick(here))

		write(t, here, "x", 0, 2)
		assert.Equal(t, expect("x", 1, 2), receiveAll(t, messages, 2), "a commit of this process")
		write(t, there, "x", 2, 3)
		assert.Equal(t, expect("x", 3, 5), receiveAll(t, messages, 3), "a commit that only the tail shows")
	})
}

func TestACommitWakesTheSubscriberWithoutAPoll(t *testing.T) {
	t.Parallel()
	eachLayout(t, 2, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		config := quick(j)
		config.Timing.PollInterval, config.Timing.MaxPollInterval = time.Hour, time.Hour
		write(t, j, "known", 0, 1)
		_, messages := subscribe(t, config)
		receiveAll(t, messages, 1) // one shard at least has been read

		eventually(t, "the commit of this process wakes the subscriber", func() bool {
			write(t, j, fmt.Sprint("x", rand.Int()), 0, 1)
			select {
			case msg := <-messages:
				return msg.Ack()
			case <-time.After(100 * time.Millisecond):
				return false
			}
		})
	})
}

func TestTheMessageCarriesWhatTheEventHas(t *testing.T) {
	t.Parallel()
	j := setup(t, 2)
	receipt, err := j.Internal().Append(t.Context(), storage.Commit{Aggregate: account("x"), Events: []storage.Event{{
		ID: "event-1", Type: "deposited", Payload: []byte{0xff, 0x00},
		Metadata: aggregate.Metadata{aggregate.CorrelationIDKey: "c1", "own": "value"},
	}}})
	require.NoError(t, err)
	_, messages := subscribe(t, quick(j))

	msg := receive(t, messages)
	defer msg.Ack()
	assert.Equal(t, "event-1", msg.UUID)
	assert.Equal(t, message.Payload{0xff, 0x00}, msg.Payload)
	assert.Equal(t, message.Metadata{
		subscriber.NameKey: "deposited", subscriber.AggregateIDKey: "x", subscriber.AggregateTypeKey: topic,
		subscriber.SequenceNumberKey: "1", subscriber.OccurredAtKey: receipt.OccurredAt.UTC().Format("2006-01-02T15:04:05.000Z07:00"),
		"correlation_id": "c1", "own": "value",
	}, msg.Metadata)

	id, number, ok := subscriber.AggregateFromContext(msg.Context())
	assert.True(t, ok)
	assert.Equal(t, account("x"), id)
	assert.EqualValues(t, 1, number)
	record, ok := subscriber.RecordFromContext(msg.Context())
	assert.True(t, ok)
	assert.Equal(t, receipt.CommitID, record.CommitID)
	_, ok = subscriber.PositionFromContext(msg.Context())
	assert.True(t, ok)
}

func TestAMessageThatDoesNotComeFromASubscriberCarriesNothing(t *testing.T) {
	t.Parallel()
	_, ok := subscriber.RecordFromContext(t.Context())
	assert.False(t, ok)
	_, _, ok = subscriber.AggregateFromContext(t.Context())
	assert.False(t, ok)
	_, ok = subscriber.PositionFromContext(t.Context())
	assert.False(t, ok)
}

func TestTheNextEventOfAnAggregateWaitsForTheAckAndOthersDoNot(t *testing.T) {
	t.Parallel()
	j := setup(t, 2)
	write(t, j, "slow", 0, 2)
	_, messages := subscribe(t, quick(j))
	slow := receive(t, messages)
	require.Equal(t, "slow/1", string(slow.Payload))

	write(t, j, "fast", 0, 100)
	assert.Equal(t, expect("fast", 1, 100), receiveAll(t, messages, 100))
	slow.Ack()
	assert.Equal(t, expect("slow", 2, 2), receiveAll(t, messages, 1))
}

func TestANackBlocksItsOwnAggregateOnlyAndTheMessageComesAgain(t *testing.T) {
	t.Parallel()
	j := setup(t, 2)
	config := quick(j)
	config.NackResendSleep, config.MaxNackResendSleep = 50*time.Millisecond, 50*time.Millisecond
	write(t, j, "poison", 0, 3)
	write(t, j, "fine", 0, 50)
	sub, messages := subscribe(t, config)

	fine, nacks := 0, 0
	for fine < 50 || nacks < 3 {
		msg := receive(t, messages)
		switch {
		case strings.HasPrefix(string(msg.Payload), "fine/"):
			fine++
			msg.Ack()
		default:
			require.Equal(t, "poison/1", string(msg.Payload))
			nacks++
			msg.Nack()
		}
	}
	assert.Equal(t, expect("poison", 1, 3), receiveAll(t, messages, 3), "it heals, and nothing was skipped")
	assert.EqualValues(t, nacks, sub.Stats().Nacked)
}

func TestNoMoreMessagesAreOutThanAllowed(t *testing.T) {
	t.Parallel()
	j := setup(t, 4)
	for i := range 20 {
		write(t, j, fmt.Sprint("a", i), 0, 1)
	}
	config := quick(j)
	config.MaxInFlight = 3
	_, messages := subscribe(t, config)
	var out []*message.Message
	for range 3 {
		out = append(out, receive(t, messages))
	}
	select {
	case msg := <-messages:
		t.Fatalf("a fourth message is out: %s", msg.Payload)
	case <-time.After(200 * time.Millisecond):
	}
	for _, msg := range out {
		msg.Ack()
	}
	receiveAll(t, messages, 17)
}

func TestAnAggregateThatOutgrowsTheBufferIsReadFromTheJournal(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		write(t, j, "big", 0, 1200)
		config := quick(j)
		config.BufferBytes = 64 << 10 // a stream may hold 16 KB: some dozens of the events
		sub, messages := subscribe(t, config)

		assert.True(t, slices.Equal(expect("big", 1, 1200), receiveAll(t, messages, 1200)), "all events in order")
		assert.Positive(t, sub.Stats().Fetched)
	})
}

func TestAHistoryOfLargeAggregatesIsReadOnce(t *testing.T) {
	t.Parallel()
	// In real time, a reader that waits for slow handlers would free a part of the buffer.
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 1)
		const aggregates, each = 10, 120
		for n := 0; n < each; n += 5 {
			for a := range aggregates {
				commit := storage.Commit{Aggregate: account(fmt.Sprint("a", a)), Expected: uint64(n)}
				for range 5 {
					commit.Events = append(commit.Events, storage.Event{Type: "deposited", Payload: make([]byte, 16<<10)})
				}
				testjournal.Append(t, j, commit)
				time.Sleep(time.Millisecond) // the tail has events of one millisecond in any order
			}
		}
		config := quick(j)
		config.BufferBytes, config.MaxInFlight = 8<<20, 8
		sub, messages := subscribe(t, config)
		for range aggregates * each {
			time.Sleep(time.Millisecond) // so the buffer is full most of the time
			receive(t, messages).Ack()
		}
		assert.Less(t, sub.Stats().Fetched, uint64(aggregates*each/20), "those that the tail had shown already")
	})
}

func TestHandlersThatHangLeaveRoomForTheRest(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	for n := 0; n < 60; n += 20 {
		for _, id := range []string{"big", "large"} {
			commit := storage.Commit{Aggregate: account(id), Expected: uint64(n)}
			for range 20 {
				commit.Events = append(commit.Events, storage.Event{Type: "deposited", Payload: make([]byte, 20<<10)})
			}
			testjournal.Append(t, j, commit)
		}
	}
	config := unanswered(quick(j))
	config.BufferBytes, config.MaxInFlight = 512<<10, 3
	_, messages := subscribe(t, config)
	receive(t, messages) // and hangs
	receive(t, messages)
	write(t, open(t, j.Client()), "good", 0, 3)
	assert.Equal(t, expect("good", 1, 3), receiveAll(t, messages, 3))
}

func TestAnAggregateThatWasForgottenGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 1)
		sub, messages := subscribe(t, quick(j), subscriber.IdleStreams(2))
		for round := range 3 {
			for i := range 10 {
				id := fmt.Sprint("a", i)
				write(t, j, id, round, 1)
				assert.Equal(t, expect(id, round+1, round+1), receiveAll(t, messages, 1))
			}
			// This is fake time. Positions are stored, so streams can be forgotten.
			time.Sleep(time.Second)
		}
		assert.Positive(t, sub.Stats().Claims, "some were forgotten")
	})
}

func TestPositionsOutliveASubscriber(t *testing.T) {
	t.Parallel()
	eachLayout(t, 4, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		write(t, j, "x", 0, 10)
		write(t, j, "y", 0, 10)
		first, messages := subscribe(t, quick(j))
		got := map[string]bool{}
		for range 12 {
			msg := receive(t, messages)
			got[string(msg.Payload)] = true
			msg.Ack()
		}
		require.NoError(t, first.Close())

		_, messages = subscribe(t, quick(j))
		for range 8 {
			msg := receive(t, messages)
			assert.False(t, got[string(msg.Payload)], "%s came again after its position was stored", msg.Payload)
			got[string(msg.Payload)] = true
			msg.Ack()
		}
		assert.Len(t, got, 20)
	})
}

func TestARestartDoesNotReadTheTailFromTheBeginning(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		config := quick(j)
		config.Timing.TrailingDelay = time.Millisecond // all of history is final
		write(t, j, "old", 0, 300)
		first, messages := subscribe(t, config)
		receiveAll(t, messages, 300)
		eventually(t, "the last event is older than the horizon", func() bool {
			write(t, j, fmt.Sprint("new", rand.Int()), 0, 1)
			receiveAll(t, messages, 1)
			return true
		})
		require.NoError(t, first.Close())

		counting := &countingClient{Client: client}
		config.Journal = open(t, counting)
		write(t, config.Journal, "later", 0, 1)
		_, messages = subscribe(t, config)
		assert.Equal(t, expect("later", 1, 1), receiveAll(t, messages, 1))
		assert.Less(t, counting.items("journal-tail-index"), 110, "the tail is read from the cursor on")
	})
}

func TestABlockedAggregateIsFoundAgainAfterTheCursorHasPassedIt(t *testing.T) {
	t.Parallel()
	eachLayout(t, 1, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		config := unanswered(quick(j))
		config.Timing.TrailingDelay, config.Timing.BehindAfter = time.Millisecond, time.Millisecond
		write(t, j, "blocked", 0, 2)
		first, messages := subscribe(t, config)
		blocked := receive(t, messages)
		require.Equal(t, "blocked/1", string(blocked.Payload))
		write(t, j, "blocked", 2, 2) // after it was listed or before: the head shows it
		write(t, j, "other", 0, 5)
		receiveAll(t, messages, 5)
		require.NoError(t, first.Close()) // stores a cursor past all events, and the list

		_, messages = subscribe(t, config)
		assert.Equal(t, expect("blocked", 1, 4), receiveAll(t, messages, 4))
	})
}

func TestEventsThatTheIndexShowsLateOrNeverAreNotLost(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		lagging := &laggingClient{Client: client, hide: map[string]bool{}}
		writer, reader := open(t, client), open(t, lagging)
		lagging.set("account-x-2", true) // never in the tail, so there is a gap
		lagging.set("account-late-1", true)
		write(t, writer, "x", 0, 3)
		write(t, writer, "late", 0, 1)
		_, messages := subscribe(t, quick(reader))
		assert.Equal(t, expect("x", 1, 3), receiveAll(t, messages, 3))

		time.Sleep(10 * time.Millisecond)
		write(t, writer, "y", 0, 1)
		receiveAll(t, messages, 1)           // the live read has passed the time of late/1
		lagging.set("account-late-1", false) // and now it appears
		assert.Equal(t, expect("late", 1, 1), receiveAll(t, messages, 1), "a trailing read finds it")
	})
}

func TestAnEventFromTheFarFutureDoesNotHideTheRest(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	future := testjournal.Open(t, client, journal.Config{Now: func() time.Time { return time.Now().Add(24 * time.Hour) }})
	write(t, future, "future", 0, 1)
	j := open(t, client)
	_, messages := subscribe(t, quick(open(t, client)))
	write(t, j, "x", 0, 1)
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
	write(t, j, "x", 1, 1)
	assert.Equal(t, expect("x", 2, 2), receiveAll(t, messages, 1))
}

func TestACorruptItemBlocksItsOwnAggregateOnly(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j := open(t, client)
	write(t, j, "bad", 0, 3)
	corrupt(t, client, "account-bad-2")
	write(t, j, "good", 0, 20)
	sub, messages := subscribe(t, quick(j))

	bad, good := []string{}, []string{}
	for len(bad) < 1 || len(good) < 20 {
		msg := receive(t, messages)
		if strings.HasPrefix(string(msg.Payload), "bad/") {
			bad = append(bad, string(msg.Payload))
		} else {
			good = append(good, string(msg.Payload))
		}
		msg.Ack()
	}
	assert.Equal(t, expect("bad", 1, 1), bad)
	assert.Equal(t, expect("good", 1, 20), good)
	eventually(t, "the aggregate is tried again", func() bool { return sub.Stats().Failures >= 2 })
	select {
	case msg := <-messages:
		t.Fatalf("%s came past the corrupt event", msg.Payload)
	default:
	}
}

func TestACorruptLastEventOfHistoryIsNotPassedOver(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j := open(t, client)
	config := quick(j)
	config.Timing.TrailingDelay = time.Nanosecond // history is read once
	write(t, j, "bad", 0, 1)
	corrupt(t, client, "account-bad-1")
	write(t, j, "good", 0, 1)
	sub, messages := subscribe(t, config)
	assert.Equal(t, expect("good", 1, 1), receiveAll(t, messages, 1))
	eventually(t, "the aggregate is blocked", func() bool { return sub.Stats().Failures > 0 })
	repair(t, client, "account-bad-1", "bad/1")
	assert.Equal(t, expect("bad", 1, 1), receiveAll(t, messages, 1))
}

func TestACorruptEventWithholdsNoneBeforeItAndANackReadsOneEventAgain(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j := open(t, client)
	write(t, j, "x", 0, 30)
	corrupt(t, client, "account-x-30")
	sub, messages := subscribe(t, quick(j))
	for range 10 {
		msg := receive(t, messages)
		require.Equal(t, "x/1", string(msg.Payload))
		msg.Nack()
	}
	assert.LessOrEqual(t, sub.Stats().Fetched, uint64(10))
	assert.True(t, slices.Equal(expect("x", 1, 29), receiveAll(t, messages, 29)))
}

func TestMoreNackedEventsThanTheBufferHoldsLeaveRoomForTheRest(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	for i := range 5 {
		testjournal.Append(t, j, storage.Commit{
			Aggregate: account(fmt.Sprint("poison", i)), Events: []storage.Event{{Type: "large", Payload: make([]byte, 30_000)}},
		})
	}
	config := quick(j)
	config.BufferBytes, config.MaxInFlight = 100_000, 2
	_, messages := subscribe(t, config)
	for nacks := 0; ; nacks++ {
		msg := receive(t, messages)
		if string(msg.Payload) == "good/1" {
			msg.Ack()
			return
		}
		require.Less(t, nacks, 10_000, "the other aggregate never comes")
		msg.Nack()
		if nacks == 20 {
			write(t, j, "good", 0, 1)
		}
	}
}

func TestAnUnmarshalerThatFailsBlocksItsOwnAggregateOnly(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "bad", 0, 1)
	write(t, j, "good", 0, 3)
	var mu sync.Mutex
	broken := true
	config := quick(j)
	config.Unmarshaler = unmarshaler(func(r *journal.Record) (*message.Message, error) {
		mu.Lock()
		defer mu.Unlock()
		if broken && r.Aggregate.Value == "bad" {
			return nil, errors.New("cannot read this")
		}
		return message.NewMessage(r.EventID, r.Payload), nil
	})
	sub, messages := subscribe(t, config)
	assert.Equal(t, expect("good", 1, 3), receiveAll(t, messages, 3))
	eventually(t, "the failure is counted", func() bool { return sub.Stats().Failures > 0 })
	mu.Lock()
	broken = false
	mu.Unlock()
	assert.Equal(t, expect("bad", 1, 1), receiveAll(t, messages, 1))
}

func TestCloseEndsTheChannelAndCountsTheAckThatWasUnderWay(t *testing.T) {
	t.Parallel()
	j := setup(t, 2)
	write(t, j, "x", 0, 2)
	sub, messages := subscribe(t, quick(j))
	msg := receive(t, messages)
	closed := make(chan error)
	go func() { closed <- sub.Close() }()
	eventually(t, "Close has begun", func() bool {
		_, err := sub.Subscribe(t.Context(), "other")
		return errors.Is(err, subscriber.ErrSubscriberClosed)
	})
	msg.Ack()
	require.NoError(t, <-closed)
	_, open := <-messages
	assert.False(t, open, "no further message goes out")
	require.NoError(t, sub.Close(), "again")

	_, messages = subscribe(t, quick(j))
	assert.Equal(t, expect("x", 2, 2), receiveAll(t, messages, 1), "the ack during Close was stored")
}

func TestCloseDoesNotWaitForeverForAHandler(t *testing.T) {
	t.Parallel()
	j := setup(t, 2)
	write(t, j, "x", 0, 1)
	config := quick(j)
	config.CloseTimeout = 50 * time.Millisecond
	sub, messages := subscribe(t, config)
	msg := receive(t, messages)
	require.NoError(t, sub.Close())
	require.Error(t, msg.Context().Err(), "the handler is told")
	msg.Ack() // too late

	_, messages = subscribe(t, quick(j))
	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
}

func TestCloseCutsOffAHandlerThatIsCommittingItsPosition(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	config := quick(open(t, &stubbornClient{Client: client, sortKey: "position/x"}))
	config.CloseTimeout = 50 * time.Millisecond
	write(t, config.Journal, "x", 0, 2)
	sub, messages := subscribe(t, config)
	receiveAll(t, messages, 1) // the flusher keeps trying to store this one
	msg := receive(t, messages)
	position, ok := subscriber.PositionFromContext(msg.Context())
	require.True(t, ok)
	committing, committed := make(chan struct{}), make(chan error)
	go func() {
		committed <- position.Commit(msg.Context(), func(ctx context.Context, _ subscriber.Advance) error {
			close(committing)
			<-ctx.Done() // a connection that hangs
			return ctx.Err()
		})
	}()
	<-committing
	require.NoError(t, sub.Close())
	require.ErrorIs(t, <-committed, context.Canceled)
}

func TestTheContextOfAMessageEndsWithItsAckAndCarriesTheValuesOfSubscribe(t *testing.T) {
	t.Parallel()
	j := setup(t, 2)
	write(t, j, "x", 0, 1)
	type key struct{}
	sub := newSubscriber(t, quick(j))
	messages, err := sub.Subscribe(context.WithValue(t.Context(), key{}, "value"), topic)
	require.NoError(t, err)
	msg := receive(t, messages)
	assert.Equal(t, "value", msg.Context().Value(key{}))
	id := aggregate.ID{Type: topic, Value: "x"}
	assert.EqualValues(t, 1, handled.VersionOf(msg.Context(), j.Config().Tables.Journal, id), "loads include its event")
	assert.Zero(t, handled.VersionOf(msg.Context(), "another", id))
	require.NoError(t, msg.Context().Err())
	msg.Ack()
	await.End(t, msg.Context().Done(), "the context must end with the ack")
}

func TestTheEndOfTheContextLetsHandlersFinish(t *testing.T) {
	t.Parallel()
	j := setup(t, 2)
	write(t, j, "x", 0, 2)
	config := quick(j)
	config.CloseTimeout = patience
	sub := newSubscriber(t, config)
	ctx, cancel := context.WithCancel(t.Context())
	messages, err := sub.Subscribe(ctx, topic)
	require.NoError(t, err)
	msg := receive(t, messages)
	cancel()
	require.NoError(t, msg.Context().Err(), "the handler may go on")
	msg.Ack()
	acked := 1
	for msg := range messages { // one more, if the ack came before the end was noticed
		msg.Ack()
		acked++
	}
	write(t, j, "x", 2, 1)
	_, messages = subscribe(t, quick(j))
	assert.Equal(t, expect("x", acked+1, acked+1), receiveAll(t, messages, 1), "all acks count")
}

func TestTheEndOfTheContextEndsTheSubscriptionAlone(t *testing.T) {
	t.Parallel()
	j := setup(t, 2)
	sub := newSubscriber(t, quick(j))
	ctx, cancel := context.WithCancel(t.Context())
	messages, err := sub.Subscribe(ctx, topic)
	require.NoError(t, err)
	cancel()
	for range messages {
		t.Fatal("a message came")
	}
	messages, err = sub.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	write(t, j, "x", 0, 1)
	receiveAll(t, messages, 1)
}

func TestBadInputIsRefused(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	j := open(t, client)
	for name, change := range map[string]func(*subscriber.Config){
		"no journal":          func(c *subscriber.Config) { c.Journal = nil },
		"no group":            func(c *subscriber.Config) { c.ConsumerGroup = "" },
		"slash in the group":  func(c *subscriber.Config) { c.ConsumerGroup = "a/b" },
		"group of bytes":      func(c *subscriber.Config) { c.ConsumerGroup = "g\xff" },
		"long group":          func(c *subscriber.Config) { c.ConsumerGroup = strings.Repeat("g", 513) },
		"negative in flight":  func(c *subscriber.Config) { c.MaxInFlight = -1 },
		"negative buffer":     func(c *subscriber.Config) { c.BufferBytes = -1 },
		"negative interval":   func(c *subscriber.Config) { c.Timing.BehindAfter = -1 },
		"poll intervals":      func(c *subscriber.Config) { c.Timing.MaxPollInterval = time.Millisecond },
		"short lease":         func(c *subscriber.Config) { c.Timing.LeaseDuration = time.Millisecond },
		"park at once":        func(c *subscriber.Config) { c.Failures = subscriber.Park(0) },
		"skip at once":        func(c *subscriber.Config) { c.Failures = subscriber.Skip(0) },
		"stop before":         func(c *subscriber.Config) { c.Failures = subscriber.Stop(-1) },
		"no poison queue":     func(c *subscriber.Config) { c.Failures = subscriber.PoisonQueue(1, nil, "poison") },
		"32 for 32 MiB":       func(c *subscriber.Config) { c.StateBytes = 32 },
		"negative poll pause": func(c *subscriber.Config) { c.Timing.PollInterval = -1 },
	} {
		config := quick(j)
		change(&config)
		_, err := subscriber.NewSubscriber(config, nil)
		var typed *subscriber.ConfigError
		require.ErrorAs(t, err, &typed, name)
		assert.NotEmpty(t, typed.Reason, name)
	}

	sub := newSubscriber(t, quick(j))
	_, err := sub.Subscribe(t.Context(), "")
	require.ErrorIs(t, err, subscriber.ErrEmptyTopic)
	require.ErrorIs(t, sub.SubscribeInitialize(""), subscriber.ErrEmptyTopic)
	_, err = sub.Subscribe(t.Context(), strings.Repeat("t", 2000))
	require.ErrorAs(t, err, new(*aggregate.InvalidIDError))

	_, err = client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: ptr("checkpoint")})
	require.NoError(t, err)
	_, err = sub.Subscribe(t.Context(), topic)
	require.ErrorIs(t, err, journal.ErrTableMissing)
	require.ErrorIs(t, sub.SubscribeInitialize(topic), journal.ErrTableMissing)
}

func ptr[T any](v T) *T { return &v }
