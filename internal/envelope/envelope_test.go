package envelope_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
)

// record returns the event as the journal returns it.
func record(e storage.Event, id aggregate.ID, number uint64, at time.Time) *journal.Record {
	return &journal.Record{
		Aggregate: id, Number: number, EventID: e.ID, EventType: e.Type, Payload: e.Payload, Metadata: e.Metadata,
		OccurredAt: at, CommitID: "commit",
	}
}

func randomBytes(random *rand.Rand, most int) []byte {
	b := make([]byte, random.IntN(most+1))
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

func randomText(random *rand.Rand) string {
	return fmt.Sprintf("%x", randomBytes(random, 6)) // often empty
}

func TestAMessageComesBackAsItWasWithItsPlaceAdded(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2_000) {
		random := rand.New(rand.NewPCG(seed, 7))
		sent := message.NewMessage(randomText(random), randomBytes(random, 20))
		for range random.IntN(12) {
			sent.Metadata["k"+randomText(random)] = randomText(random)
		}
		if random.IntN(2) == 0 {
			sent.Metadata[envelope.CorrelationIDKey] = randomText(random)
		}
		if random.IntN(2) == 0 {
			sent.Metadata[envelope.NameKey] = "order.placed.v1"
		}
		id := aggregate.ID{Type: "order", Value: "o" + randomText(random)}
		number := 1 + random.Uint64N(math.MaxUint64)

		received := envelope.Message(record(envelope.Event(sent), id, number, time.UnixMilli(1_700_000_000_120)))

		want := maps.Clone(sent.Metadata)
		want["aggregate_id"] = id.Value
		want["aggregate_type"] = "order"
		want["sequence_number"] = fmt.Sprint(number)
		want["occurred_at"] = "2023-11-14T22:13:20.120Z"
		require.Equal(t, sent.UUID, received.UUID, "seed %d", seed)
		require.Equal(t, string(sent.Payload), string(received.Payload), "seed %d", seed)
		require.Equal(t, want, received.Metadata, "seed %d", seed)
	}
}

func TestAPlainMessageIsAsItWasPublished(t *testing.T) {
	t.Parallel()
	sent := message.NewMessage("id", []byte("payload"))
	sent.Metadata = message.Metadata{"key": "value", envelope.NameKey: "order.placed.v1"}
	event := envelope.Event(sent)
	event.Metadata[metadata.OwnStreamKey] = "mark" // as the publisher adds it
	received := envelope.Plain(record(event, aggregate.ID{Type: "order", Value: "1"}, 3, time.Now()))
	assert.True(t, received.Equals(sent), "%v", received.Metadata)
}

func TestTheErrorOfAPoisonedMessageIsCut(t *testing.T) {
	t.Parallel()
	msg := message.NewMessage("id", nil)
	msg.Metadata = message.Metadata{middleware.ReasonForPoisonedKey: strings.Repeat("x", envelope.MaxReason-1) + "ü", "key": strings.Repeat("x", 2000)}
	assert.Equal(t, aggregate.Metadata{
		middleware.ReasonForPoisonedKey: strings.Repeat("x", envelope.MaxReason-1), "key": strings.Repeat("x", 2000),
	}, envelope.Event(msg).Metadata, "no part of a character is left, and other values are whole")
}

func TestAnEventComesBackAsItWas(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2_000) {
		random := rand.New(rand.NewPCG(seed, 8))
		stored := storage.Event{ID: randomText(random), Type: randomText(random), Payload: randomBytes(random, 20)}
		for range random.IntN(12) {
			if stored.Metadata == nil {
				stored.Metadata = aggregate.Metadata{}
			}
			stored.Metadata["k"+randomText(random)] = randomText(random)
		}

		again := envelope.Event(envelope.Message(record(stored, aggregate.ID{Type: "order", Value: "1"}, 3, time.Now())))

		require.Equal(t, stored, again, "seed %d", seed)
	}
}

func TestWhatTheStoreKnowsIsNotStoredInTheMetadata(t *testing.T) {
	t.Parallel()
	msg := message.NewMessage("id", nil)
	for _, key := range []string{"name", "aggregate_id", "aggregate_type", "sequence_number", "occurred_at", "expected_version"} {
		msg.Metadata.Set(key, "x")
	}
	assert.Empty(t, envelope.Event(msg).Metadata)

	msg.Metadata.Set("tenant", "a")
	assert.Equal(t, aggregate.Metadata{"tenant": "a"}, envelope.Event(msg).Metadata)
}

func TestTheStoresPlaceOfAnEventWinsOverStoredMetadata(t *testing.T) {
	t.Parallel()
	r := record(storage.Event{Metadata: aggregate.Metadata{
		"aggregate_id": "other", "sequence_number": "99", "name": "other", "expected_version": "4",
	}}, aggregate.ID{Type: "order", Value: "1"}, 3, time.UnixMilli(0))

	assert.Equal(t, message.Metadata{
		"aggregate_id": "1", "aggregate_type": "order", "sequence_number": "3", "occurred_at": "1970-01-01T00:00:00.000Z",
	}, envelope.Message(r).Metadata)
}

func TestTheTimeIsInUTCWhereverTheProcessRuns(t *testing.T) {
	t.Parallel()
	at := time.Date(2024, 1, 1, 1, 30, 0, 5_000_000, time.FixedZone("", 2*60*60))
	msg := envelope.Message(record(storage.Event{}, aggregate.ID{Type: "order", Value: "1"}, 1, at))

	assert.Equal(t, "2023-12-31T23:30:00.005Z", msg.Metadata.Get(envelope.OccurredAtKey))
}

func TestEventAndMessageShareNoMetadata(t *testing.T) {
	t.Parallel()
	msg := message.NewMessage("id", nil)
	msg.Metadata.Set("tenant", "a")
	event := envelope.Event(msg)
	msg.Metadata.Set("tenant", "changed")
	assert.Equal(t, "a", event.Metadata["tenant"])

	r := record(event, aggregate.ID{Type: "order", Value: "1"}, 1, time.Now())
	first := envelope.Message(r)
	first.Metadata.Set("tenant", "changed")
	assert.Equal(t, "a", envelope.Message(r).Metadata.Get("tenant"), "a redelivery must not show what a handler changed")
}

func TestAMessageWithoutAMetadataMapIsAnEvent(t *testing.T) {
	t.Parallel()
	assert.Equal(t, storage.Event{ID: "id"}, envelope.Event(&message.Message{UUID: "id"}))
}

func BenchmarkMessage(b *testing.B) {
	for _, stored := range []int{0, 2, 10} {
		b.Run(fmt.Sprintf("metadata=%d", stored), func(b *testing.B) {
			r := record(storage.Event{ID: "0b4d5f0e", Type: "order.placed.v1", Payload: []byte("{}")},
				aggregate.ID{Type: "order", Value: "1234"}, 1_234, time.UnixMilli(1_700_000_000_120))
			r.Metadata = aggregate.Metadata{}
			for i := range stored {
				r.Metadata[fmt.Sprintf("key-%d", i)] = "value"
			}
			b.ReportAllocs()
			for b.Loop() {
				envelope.Message(r)
			}
		})
	}
}

func BenchmarkEvent(b *testing.B) {
	msg := message.NewMessage("0b4d5f0e", []byte("{}"))
	msg.Metadata = message.Metadata{"name": "order.placed.v1", "aggregate_id": "1234", "correlation_id": "c", "tenant": "a"}
	b.ReportAllocs()
	for b.Loop() {
		envelope.Event(msg)
	}
}

func TestTheTimeIsRFC3339WithMilliseconds(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		at := time.UnixMilli(random.Int64N(4_000_000_000_000) - 1_000_000_000_000)
		text := envelope.Message(record(storage.Event{}, aggregate.ID{Type: "t", Value: "v"}, 1, at)).Metadata["occurred_at"]
		require.Equal(t, at.UTC().Format("2006-01-02T15:04:05.000Z07:00"), text)
	}
}

func TestThePublicKeysAreThoseOfTheMessages(t *testing.T) {
	t.Parallel()
	for public, own := range map[string]string{
		subscriber.NameKey: envelope.NameKey, subscriber.AggregateIDKey: envelope.AggregateIDKey,
		subscriber.AggregateTypeKey: envelope.AggregateTypeKey, subscriber.OccurredAtKey: envelope.OccurredAtKey,
		subscriber.SequenceNumberKey: envelope.SequenceNumberKey,
	} {
		assert.Equal(t, own, public)
	}
	assert.Equal(t, envelope.NameKey, publisher.NameKey)
	assert.Equal(t, envelope.AggregateIDKey, publisher.AggregateIDKey)
}
