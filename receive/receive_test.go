package receive_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/receive"
)

// world is a receiver, and what it has stored.
type world struct {
	*receive.Receiver
	db      *dynamotest.DB
	journal *journal.Journal
	logs    *watermill.CaptureLoggerAdapter
}

func receiver(t *testing.T, config receive.Config) world {
	t.Helper()
	w := world{db: dynamotest.New(t), logs: watermill.NewCaptureLogger()}
	w.journal = testjournal.New(t, w.db.Client(), journal.Config{Layout: journal.Packed, Shards: 4})
	p, err := publisher.NewPublisher(publisher.Config{Journal: w.journal}, nil)
	require.NoError(t, err)
	config.Publisher, config.Topic = p, "inbox"
	w.Receiver, err = receive.New(config, w.logs)
	require.NoError(t, err)
	return w
}

// stored returns the messages that are stored under a key, with their metadata.
func (w world) stored(t *testing.T) (all []*journal.Record) {
	t.Helper()
	for r, err := range w.journal.Tail(t.Context(), "inbox", time.Time{}) {
		require.NoError(t, err)
		all = append(all, r)
	}
	return all
}

func named(id, name string) *message.Message {
	msg := message.NewMessage(id, []byte("{}"))
	msg.Metadata.Set("name", name)
	return msg
}

func TestMessagesOfUnknownNamesAreReportedOnce(t *testing.T) {
	t.Parallel()
	w := receiver(t, receive.Config{IgnoreUnknown: true, Names: []string{"Paid"}})
	for range 3 {
		require.NoError(t, w.Handle(named("1", "Refunded")))
	}
	require.NoError(t, w.Handle(named("2", "Paid")))
	for i := range 1000 {
		require.NoError(t, w.Handle(named("3", fmt.Sprint("other", i))))
	}
	assert.Equal(t, receive.Stats{Stored: 1, Ignored: 1003}, w.Stats())
	assert.Len(t, w.stored(t), 1)
	reported := w.logs.Captured()[watermill.InfoLogLevel]
	require.Len(t, reported, 100, "the memory for names is bounded")
	assert.Equal(t, "Refunded", reported[0].Fields["name"])
}

func TestAMessageIsStoredWithWhatItCarries(t *testing.T) {
	t.Parallel()
	w := receiver(t, receive.Config{Key: func(msg *message.Message) string { return msg.Metadata.Get("order") }})
	msg := named("m-1", "Paid")
	msg.Metadata.Set("order", "7")
	msg.Metadata.Set("sequence_number", "12") // a key that the journal uses itself
	msg.Metadata.Set("source_name", "bank")
	msg.Metadata.Set("aggregate_type", "3")
	msg.Metadata.Set("source_aggregate_type", "4")
	require.NoError(t, w.Handle(msg))

	stored := w.stored(t)
	require.Len(t, stored, 1)
	assert.Equal(t, "7", stored[0].Aggregate.Value)
	assert.Equal(t, "m-1", stored[0].EventID)
	assert.Equal(t, "Paid", stored[0].EventType)
	assert.Equal(t, "12", stored[0].Metadata[receive.SourcePrefix+"sequence_number"])
	assert.Equal(t, "bank", stored[0].Metadata["source_name"])
	assert.Equal(t, "4", stored[0].Metadata["source_aggregate_type"])
	assert.Equal(t, "3", stored[0].Metadata["source_source_aggregate_type"])
	assert.Equal(t, "12", msg.Metadata.Get("sequence_number"), "the message of the other Pub/Sub is not changed")
}

func TestKeysThatAreNoIDsAreReplaced(t *testing.T) {
	t.Parallel()
	long := string(make([]byte, 4000))
	w := receiver(t, receive.Config{Key: func(*message.Message) string { return long }})
	require.NoError(t, w.Handle(named("1", "Paid")))
	require.NoError(t, w.Handle(named("2", "Paid")))
	stored := w.stored(t)
	require.Len(t, stored, 2)
	assert.Len(t, stored[0].Aggregate.Value, 64)
	assert.Equal(t, stored[0].Aggregate, stored[1].Aggregate, "they keep their order")
}

// Package command executes a message with its UUID as the command id, which has 512 bytes at most.
func TestIDsThatAreNoCommandIDsAreReplaced(t *testing.T) {
	t.Parallel()
	w := receiver(t, receive.Config{})
	ids := []string{strings.Repeat("u", 513), strings.Repeat("u", 514), "\xff", strings.Repeat("u", 512)}
	for _, id := range ids {
		require.NoError(t, w.Handle(named(id, "Paid")))
		require.NoError(t, w.Handle(named(id, "Paid")), "again")
	}
	stored := map[string]int{}
	for _, r := range w.stored(t) {
		stored[r.EventID]++
		assert.LessOrEqual(t, len(r.EventID), 512)
	}
	require.Len(t, stored, len(ids))
	for id, n := range stored {
		assert.Equal(t, 2, n, "each delivery of %q", id)
	}
}

func TestAMessageWithoutAnIDIsRefused(t *testing.T) {
	t.Parallel()
	w := receiver(t, receive.Config{Pause: time.Millisecond})
	require.ErrorIs(t, w.Handle(named("", "Paid")), receive.ErrNoID)
	assert.Empty(t, w.stored(t))
	assert.Equal(t, receive.Stats{Failed: 1}, w.Stats())
}

func TestWhatCanNeverBeStoredGoesToTheDeadLetters(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		var buried []string
		down := true
		w := receiver(t, receive.Config{Pause: time.Millisecond, DeadLetter: func(msg *message.Message, reason error) error {
			if down {
				return errors.New("no connection")
			}
			buried = append(buried, msg.UUID+": "+reason.Error())
			return nil
		}})
		large := named("large", "Paid")
		large.Payload = make([]byte, 500_000)
		require.ErrorContains(t, w.Handle(large), "dead letter: no connection")
		require.ErrorAs(t, w.Handle(large), new(*publisher.MessageError))
		down = false
		require.NoError(t, w.Handle(large))
		require.NoError(t, w.Handle(named("", "Paid")))
		require.Len(t, buried, 2)
		assert.Contains(t, buried[0], "large: publish to \"inbox\", nothing written")
		assert.Contains(t, buried[1], receive.ErrNoID.Error())

		w.db.Inject(dynamotest.InternalError(), dynamotest.On("TransactWriteItems", "PutItem", "UpdateItem"))
		outage, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		msg := named("1", "Paid")
		msg.SetContext(outage)
		require.Error(t, w.Handle(msg), "an outage is no reason")
		assert.Len(t, buried, 2)
		assert.Equal(t, receive.Stats{Failed: 5}, w.Stats())
	})
}

// Watermill's Recoverer nacks a message whose handler panics, and the other Pub/Sub delivers it
// again at once.
func TestAMessageWithWhichAFunctionPanicsIsNotDeliveredAgainAtFullSpeed(t *testing.T) {
	t.Parallel()
	malformed := func(msg *message.Message) string { return string(msg.Payload[5:]) }
	for name, config := range map[string]receive.Config{
		"ID": {ID: malformed}, "Key": {Key: malformed}, "Name": {Name: malformed},
		"Check": {Check: func(msg *message.Message) error { return errors.New(malformed(msg)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				var reasons []error
				config.DeadLetter = func(_ *message.Message, reason error) error {
					if reasons = append(reasons, reason); len(reasons) == 1 {
						panic("no connection")
					}
					return nil
				}
				w, begin := receiver(t, config), time.Now()
				require.ErrorContains(t, w.Handle(named("1", "Paid")), "dead letter: it panics: no connection")
				assert.Positive(t, time.Since(begin), "it waits")
				require.NoError(t, w.Handle(named("1", "Paid")))
				require.Len(t, reasons, 2)
				require.ErrorIs(t, reasons[1], receive.ErrUndecodable)
				require.ErrorContains(t, reasons[1], "receive_test.go", "it says where")
				assert.Equal(t, receive.Stats{Failed: 2}, w.Stats())
			})
		})
	}
}

// A message of a person that was forgotten can never be stored, and must not hold up others.
func TestAMessageWhoseKeyIsDestroyedGoesToTheDeadLetters(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	wrapper, err := encrypt.LocalWrapper(make([]byte, encrypt.KeyBytes))
	require.NoError(t, err)
	table := encrypt.KeysConfig{Table: "keys"}
	require.NoError(t, encrypt.CreateTable(t.Context(), client, table))
	keys, err := encrypt.NewKeys(client, wrapper, table)
	require.NoError(t, err)
	secret, err := encrypt.AESGCM(encrypt.Config{Keys: keys})
	require.NoError(t, err)
	j := testjournal.New(t, client, journal.Config{Layout: journal.Packed, Shards: 1, Encodings: []journal.Encoding{journal.ForTypes(secret, "inbox")}})
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	require.NoError(t, err)
	var reasons []error
	r, err := receive.New(receive.Config{
		Publisher: p, Topic: "inbox", Pause: time.Millisecond, Key: func(*message.Message) string { return "ada" },
		DeadLetter: func(_ *message.Message, reason error) error { reasons = append(reasons, reason); return nil },
	}, nil)
	require.NoError(t, err)
	require.NoError(t, r.Handle(named("1", "Paid")))
	require.NoError(t, secret.Destroy(t.Context(), aggregate.ID{Type: "inbox", Value: "ada"}))
	require.NoError(t, r.Handle(named("2", "Paid")))
	require.Len(t, reasons, 1)
	require.ErrorIs(t, reasons[0], journal.ErrKeyDestroyed)
}

// The other Pub/Sub delivers a nacked message at once, so the pauses are ours.
func TestPausesAfterFailuresGrowAndEnd(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := receiver(t, receive.Config{})
		fail := func(ctx context.Context) time.Duration {
			begin, msg := time.Now(), named("", "Paid")
			msg.SetContext(ctx)
			require.Error(t, w.Handle(msg))
			return time.Since(begin)
		}
		first := fail(t.Context())
		assert.InDelta(t, 1, first.Seconds(), 0.5)
		var last time.Duration
		for range 20 {
			last = fail(t.Context())
		}
		assert.InDelta(t, 60, last.Seconds(), 30)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer stop()
		assert.Less(t, fail(ctx), time.Second, "a pause ends with the context of the message")
		require.NoError(t, w.Handle(named("1", "Paid")))
		assert.InDelta(t, 1, fail(t.Context()).Seconds(), 0.5, "a success ends the row")
	})
}

func TestASettingThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	w := receiver(t, receive.Config{})
	p, err := publisher.NewPublisher(publisher.Config{Journal: w.journal}, nil)
	require.NoError(t, err)
	for field, config := range map[string]receive.Config{
		"Publisher": {Topic: "inbox"}, "Topic": {Publisher: p}, "Pause": {Publisher: p, Topic: "inbox", Pause: time.Hour, MaxPause: time.Minute},
	} {
		var invalid *receive.ConfigError
		_, err := receive.New(config, nil)
		require.ErrorAs(t, err, &invalid)
		assert.Equal(t, field, invalid.Field)
	}
}
