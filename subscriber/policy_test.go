package subscriber_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestTheMessageShowsHowOftenItWasDelivered(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 2)
	_, messages := subscribe(t, unanswered(quick(j)))
	for attempt := 1; attempt <= 3; attempt++ {
		msg := receive(t, messages)
		require.Equal(t, "x/1", string(msg.Payload))
		got, ok := subscriber.AttemptFromContext(msg.Context())
		require.True(t, ok)
		assert.Equal(t, attempt, got)
		assert.Equal(t, map[int]string{2: "2", 3: "3"}[attempt], msg.Metadata.Get(subscriber.DeliveryAttemptKey))
		if attempt < 3 {
			msg.Nack()
		} else {
			msg.Ack()
		}
	}
	msg := receive(t, messages)
	got, _ := subscriber.AttemptFromContext(msg.Context())
	assert.Equal(t, 1, got, "the next event begins anew")
}

func TestAMessageThatIsNotAckedInTimeComesAgain(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		j := setup(t, 1)
		write(t, j, "x", 0, 1)
		config := quick(j)
		config.AckDeadline = 50 * time.Millisecond
		sub, messages := subscribe(t, config)
		slow := receive(t, messages)
		ended(t, slow)
		again := receive(t, messages)
		assert.Equal(t, "x/1", string(again.Payload))
		slow.Ack() // the answer no longer counts
		again.Nack()
		msg := receive(t, messages)
		assert.Equal(t, "x/1", string(msg.Payload))
		msg.Ack()
		assert.EqualValues(t, 1, sub.Stats().Expired)
	})
}

func TestOnlyRequestedTypesAreDeliveredAndTheOthersCountAsHandled(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	types := []string{"opened", "noise", "noise", "closed", "noise"}
	commit := storage.Commit{Aggregate: account("x")}
	for _, eventType := range types {
		commit.Events = append(commit.Events, storage.Event{Type: eventType, Payload: []byte(eventType)})
	}
	testjournal.Append(t, j, commit)

	config := quick(j)
	config.EventTypes = []string{"closed", "opened"}
	sub, messages := subscribe(t, config)
	assert.Equal(t, []string{"opened", "closed"}, receiveAll(t, messages, 2))
	eventually(t, "the rest is passed over", func() bool { return sub.Stats().Filtered == 3 })
	require.NoError(t, sub.Close())

	_, messages = subscribe(t, quick(j)) // the same group, now for all types
	write(t, j, "x", len(types), 1)
	assert.Equal(t, expect("x", 6, 6), receiveAll(t, messages, 1), "what was passed over does not come again")
}

func TestAPoisonQueueCannotBeTheTopicOfItsMessages(t *testing.T) {
	t.Parallel()
	config := quick(setup(t, 1))
	config.Failures = subscriber.PoisonQueue(3, gochannel.NewGoChannel(gochannel.Config{}, nil), topic)
	sub := newSubscriber(t, config)
	_, err := sub.Subscribe(t.Context(), topic)
	require.ErrorAs(t, err, new(*subscriber.ConfigError))
	_, err = sub.Subscribe(t.Context(), "other")
	require.NoError(t, err)
}

func TestAnEventThatKeepsFailingGoesToThePoisonQueue(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "bad", 0, 3)
	write(t, j, "good", 0, 3)
	queue := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	config := quick(j)
	config.Failures = subscriber.PoisonQueue(3, queue, "poison")
	undecodable := errors.New("cannot read this")
	config.Unmarshaler = unmarshaler(func(r *journal.Record) (*message.Message, error) {
		if string(r.Payload) == "bad/3" {
			return nil, undecodable
		}
		return message.NewMessage(r.EventID, r.Payload), nil
	})
	sub, messages := subscribe(t, config)
	var acked []string
	nacks := 0
	for len(acked) < 4 || nacks < 3 {
		msg := receive(t, messages)
		if string(msg.Payload) == "bad/2" {
			nacks++
			msg.Nack()
			continue
		}
		acked = append(acked, string(msg.Payload))
		msg.Ack()
	}
	assert.ElementsMatch(t, append(expect("good", 1, 3), "bad/1"), acked)

	poisoned, err := queue.Subscribe(t.Context(), "poison")
	require.NoError(t, err)
	for i, want := range []struct{ payload, reason string }{{"bad/2", "nacked"}, {"bad/3", undecodable.Error()}} {
		msg := receive(t, poisoned)
		msg.Ack()
		assert.Equal(t, want.payload, string(msg.Payload), i)
		assert.Contains(t, msg.Metadata.Get("reason_poisoned"), want.reason)
		assert.Equal(t, topic, msg.Metadata.Get("topic_poisoned"))
		assert.NotEmpty(t, msg.Metadata.Get("subscriber_poisoned"))
		assert.Equal(t, "bad", msg.Metadata.Get("aggregate_id_poisoned"))
		assert.Equal(t, strconv.Itoa(i+2), msg.Metadata.Get("sequence_number_poisoned"))
	}
	assert.Equal(t, 3, nacks)
	eventually(t, "both are counted", func() bool { return sub.Stats().Poisoned == 2 })
	write(t, j, "bad", 3, 1)
	assert.Equal(t, expect("bad", 4, 4), receiveAll(t, messages, 1), "the aggregate goes on")
}

// The reason, or the metadata that is added to the event, must not prevent the publication.
func TestAnyEventCanGoToAPoisonQueueInAJournal(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	for id, size := range map[string]int{"small": 10, "large": 400<<10 - 200} {
		testjournal.Append(t, j, storage.Commit{
			Aggregate: account(id), Events: []storage.Event{{ID: id, Type: "noted", Payload: bytes.Repeat([]byte("x"), size)}},
		})
	}
	pub, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, pub.Close()) })
	config := quick(j)
	config.Failures = subscriber.PoisonQueue(1, pub, "poison")
	sub, messages := subscribe(t, config)
	for range 2 {
		msg := receive(t, messages)
		subscriber.SetNackReason(msg.Context(), errors.New("bad \xff byte"+strings.Repeat("y", 500<<10)))
		msg.Nack()
	}
	eventually(t, "both are poisoned", func() bool { return sub.Stats().Poisoned == 2 })

	config.ConsumerGroup, config.Failures = "operators", subscriber.Block()
	operators, err := subscriber.NewSubscriber(config, nil)
	require.NoError(t, err)
	poisoned, err := operators.Subscribe(t.Context(), "poison")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, operators.Close()) })
	for range 2 {
		msg := receive(t, poisoned)
		msg.Ack()
		id := msg.Metadata.Get("aggregate_id_poisoned")
		assert.Equal(t, id, msg.UUID)
		assert.Equal(t, "1", msg.Metadata.Get("sequence_number_poisoned"))
		reason := msg.Metadata.Get("reason_poisoned")
		assert.True(t, strings.HasPrefix(reason, "bad ") && utf8.ValidString(reason), reason)
		assert.True(t, strings.HasSuffix(reason, "yyy, once"), reason)
		assert.Less(t, len(reason), 1100)
		assert.Equal(t, id == "large", msg.Metadata.Get("payload_poisoned") != "")
		assert.Equal(t, id == "large", len(msg.Payload) == 0)
	}
}

// Until the position is stored, the event is published again after a crash.
func TestThePositionIsStoredAsSoonAsAnEventIsInThePoisonQueue(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "x", 0, 3)
	config := quick(j)
	config.Timing.CommitInterval = time.Hour
	config.Failures = subscriber.PoisonQueue(1, gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil), "poison")
	_, messages := subscribe(t, config)
	receiveAll(t, messages, 1)
	nack(t, messages, "x/2", 1)
	last := receive(t, messages)
	require.Equal(t, "x/3", string(last.Payload))
	assert.EqualValues(t, 2, stored(t, j))
	last.Ack()
}

func TestAParkedAggregateWaitsAlsoAfterARestartAndOthersFlow(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	write(t, j, "bad", 0, 2)
	config := quick(j)
	config.Failures = subscriber.Park(2)
	sub, messages := subscribe(t, config)
	for range 2 {
		receive(t, messages).Nack()
	}
	eventually(t, "it is parked", func() bool {
		shards := sub.Shards()
		return len(shards) == 1 && shards[0].Parked == 1
	})
	for round := range 2 {
		write(t, j, "bad", 2+round, 1)
		write(t, j, "good", 3*round, 3)
		assert.Equal(t, expect("good", 3*round+1, 3*round+3), receiveAll(t, messages, 3), "nothing of the parked aggregate")
		require.NoError(t, sub.Close())
		sub, messages = subscribe(t, config)
	}
	assert.EqualValues(t, 0, sub.Stats().Parked, "it is parked once")
}

func TestAnEventIsNotTriedAgainBecauseTheOneBeforeItIsBeingStored(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	faulty, j := dynamotest.NewProxy(t, client), open(t, client)
	write(t, j, "x", 0, 2)
	storing, stored := make(chan struct{}), make(chan struct{})
	faulty.Inject(dynamotest.Pause(func(context.Context) {
		close(storing)
		<-stored
	}), dynamotest.On("UpdateItem"), onRow("position/x-0", ""), dynamotest.Times(1))
	config := quick(open(t, faulty.Client(testdb.Once)))
	config.Failures = subscriber.Park(2)
	_, messages := subscribe(t, config)
	receiveAll(t, messages, 1)
	<-storing
	nack(t, messages, "x/2", 2)

	comesAgain := func() bool {
		select {
		case <-messages:
			return true
		default:
			return false
		}
	}
	require.Never(t, comesAgain, 300*time.Millisecond, 10*time.Millisecond, "it had its attempts")
	close(stored)

	list := func() (parked []groups.BehindAggregate) {
		for b, err := range groups.Of(j, "group", topic).Parked(t.Context(), aggregate.ID{}) {
			require.NoError(t, err)
			parked = append(parked, b)
		}
		return parked
	}
	eventually(t, "it is parked", func() bool { return len(list()) == 1 })
	assert.Equal(t, "the message was nacked without a reason (see subscriber.NackReason), 2 times", list()[0].Parked.Reason)
}

func TestAGroupCanBeginNowOrAtATime(t *testing.T) {
	t.Parallel()
	client := create(t, 2)
	var clock time.Time
	j := testjournal.Open(t, client, journal.Config{Now: func() time.Time { return clock }})
	begin := time.Now().Add(-time.Hour)
	for hour := range 6 { // one event each ten minutes, and an aggregate that is done
		clock = begin.Add(time.Duration(hour) * 10 * time.Minute)
		write(t, j, "x", hour, 1)
		if hour < 2 {
			write(t, j, "done", hour, 1)
		}
	}
	clock = time.Now()

	_, fromThen := subscribe(t, with(quick(open(t, client)), "then", subscriber.At(begin.Add(40*time.Minute))))
	assert.Equal(t, expect("x", 5, 6), receiveAll(t, fromThen, 2))

	nowJournal := open(t, client)
	now, fromNow := subscribe(t, with(quick(nowJournal), "now", subscriber.Now()))
	write(t, nowJournal, "x", 6, 1)
	write(t, nowJournal, "new", 0, 1)
	write(t, nowJournal, "done", 2, 1)
	want := append(expect("x", 7, 7), append(expect("new", 1, 1), expect("done", 3, 3)...)...)
	assert.ElementsMatch(t, want, receiveAll(t, fromNow, 3))
	assert.ElementsMatch(t, want, receiveAll(t, fromThen, 3))
	require.NoError(t, now.Close())

	// The start of a group is fixed when the group is created.
	write(t, nowJournal, "done", 3, 1)
	_, fromNow = subscribe(t, with(quick(open(t, client)), "now", subscriber.Beginning()))
	assert.Equal(t, expect("done", 4, 4), receiveAll(t, fromNow, 1))
}

func TestAGroupThatBeginsNowMissesNothingOnceSubscribeHasReturned(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	begin := time.Now().Add(-time.Minute)
	var clock atomic.Int64
	clock.Store(begin.UnixMilli())
	faulty := dynamotest.NewProxy(t, client)
	j := at(t, faulty.Client(testdb.Once), func() time.Time { return time.UnixMilli(clock.Load()) })
	// The join takes a minute.
	faulty.Inject(dynamotest.Pause(func(context.Context) { clock.Store(time.Now().UnixMilli()) }), dynamotest.On("GetItem"))

	_, messages := subscribe(t, with(quick(j), "now", subscriber.Now()))
	write(t, at(t, client, func() time.Time { return begin.Add(time.Second) }), "x", 0, 1)

	assert.Equal(t, expect("x", 1, 1), receiveAll(t, messages, 1))
}

func with(config subscriber.Config, group string, start subscriber.Start) subscriber.Config {
	config.ConsumerGroup, config.Start = group, start
	return config
}

// Imported events have old times, at which the tail is no longer read.
func TestTheReconciliationFindsWhatTheTailShowsAtTheWrongPlace(t *testing.T) {
	t.Parallel()
	client := create(t, 2)
	config := quick(open(t, client))
	config.Timing.TrailingDelay, config.Timing.ReconcileInterval = 10*time.Millisecond, 100*time.Millisecond
	sub, messages := subscribe(t, config, subscriber.CursorInterval(10*time.Millisecond))
	writer := open(t, client)
	for i := range 2 {
		for _, id := range []string{"x", "y", "z"} {
			write(t, writer, id, i, 1)
		}
		receiveAll(t, messages, 3)
	}
	old := testjournal.Open(t, client, journal.Config{Now: func() time.Time { return time.UnixMilli(1) }})
	write(t, old, "import", 0, 3)
	write(t, old, "y", 2, 1)
	got := receiveAll(t, messages, 4)
	assert.ElementsMatch(t, append(expect("import", 1, 3), "y/3"), got)
	assert.Equal(t, expect("import", 1, 3), only("import", got), "in order")
	eventually(t, "they are counted", func() bool { return sub.Stats().Reconciled >= 4 })
}

func only(id string, payloads []string) (some []string) {
	for _, payload := range payloads {
		if strings.HasPrefix(payload, id+"/") {
			some = append(some, payload)
		}
	}
	return some
}

// The test sets all times, with seconds between them, so a slow machine changes nothing.
func TestClocksThatAreWrongAreMeasured(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		client := create(t, 1)
		config := quick(open(t, client))
		config.Timing.TrailingDelay = 6 * time.Second
		sub, messages := subscribe(t, config)
		begin := time.Now()
		at := func(occurred time.Time, id string) {
			j := testjournal.Open(t, client, journal.Config{Now: func() time.Time { return occurred }})
			write(t, j, id, 0, 1)
			receiveAll(t, messages, 1)
		}
		at(begin, "a")
		at(time.Now().Add(4*time.Second), "ahead")
		eventually(t, "the clock that is ahead shows", func() bool { return sub.Stats().Ahead > 50*time.Millisecond })
		// before the place of the live read, so a trailing read finds it
		at(begin.Add(-time.Second), "behind")
		eventually(t, "so does the one that is behind", func() bool { return sub.Stats().Late == 1 && sub.Stats().Lateness > 500*time.Millisecond })
	})
}
