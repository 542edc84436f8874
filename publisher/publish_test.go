package publisher_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

func TestAMessageIsStoredAsItIs(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	msg := message.NewMessage("uuid-1", []byte{0, 255, 'x'})
	msg.Metadata = message.Metadata{
		"aggregate_id": "1", "name": "order.placed.v1", "tenant": "a", "correlation_id": "c", "causation_id": "m", "binary": "\xff", "": "empty key",
		"sequence_number": "99", "delivery_attempt": "7", "occurred_at": "yesterday", "aggregate_type": "other",
	}
	before := msg.Copy()

	require.NoError(t, p.Publish("order", msg))

	r := s.records(order1)[0]
	assert.Equal(t, "uuid-1", r.EventID)
	assert.Equal(t, "order.placed.v1", r.EventType)
	assert.Equal(t, []byte{0, 255, 'x'}, r.Payload)
	assert.Equal(t, aggregate.Metadata{"tenant": "a", "correlation_id": "c", "causation_id": "m", "binary": "\xff", "": "empty key"}, r.Metadata)
	assert.True(t, before.Equals(msg), "the caller's message must stay as it was")
}

func TestAMessageMayBeEmpty(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{StreamID: "mine"})

	require.NoError(t, p.Publish("order", message.NewMessage("", nil), &message.Message{}))

	records := s.records(aggregate.ID{Type: "order", Value: "mine"})
	require.Len(t, records, 2)
	assert.Empty(t, records[0].Payload)
	assert.NotEmpty(t, records[0].EventID, "an id is derived where none was given")
	assert.NotEqual(t, records[0].EventID, records[1].EventID)
}

func TestAThousandMessagesKeepTheirOrderInElevenTransactions(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})

	require.NoError(t, p.Publish("order", messagesTo(order1, "m", 1_000)...))

	assert.Equal(t, numbered("m", 1_000), s.payloads(order1))
	assert.Len(t, s.wire.sent(), 11, "a transaction takes 99 events")
}

func TestTransactionsAreFilledByTheirSizeToo(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	msgs := messagesTo(order1, "m", 14)
	for _, msg := range msgs {
		// 10 messages have 4 MB less 6 KB.
		msg.Payload = append(msg.Payload, make([]byte, 400<<10-600)...)
	}

	require.NoError(t, p.Publish("order", msgs...))

	assert.Equal(t, []int{10, 4}, s.wire.sent())
	assert.EqualValues(t, 14, s.version(order1))
}

func TestMessagesWithoutAnIDGoToThePublishersStream(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p, q := s.publisher(publisher.Config{}), s.publisher(publisher.Config{})
	keyless := func(payload string) *message.Message { return message.NewMessage("1", []byte(payload)) }

	require.NoError(t, p.Publish("order", keyless("a"), keyless("b")))
	require.NoError(t, p.Publish("payment", keyless("c")))
	require.NoError(t, q.Publish("order", keyless("d")))

	assert.True(t, strings.HasPrefix(p.StreamID(), "publisher-"), p.StreamID())
	assert.Equal(t, []string{"a", "b"}, s.payloads(aggregate.ID{Type: "order", Value: p.StreamID()}))
	assert.Equal(t, []string{"c"}, s.payloads(aggregate.ID{Type: "payment", Value: p.StreamID()}))
	assert.Equal(t, []string{"d"}, s.payloads(aggregate.ID{Type: "order", Value: q.StreamID()}))
}

func TestTheAggregateIDAndThePayloadCanBeMadeByFunctions(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{
		AggregateID: func(topic string, msg *message.Message) (string, error) {
			return topic + "/" + string(msg.Payload), nil
		},
		Marshaler: shouting{},
	})

	require.NoError(t, p.Publish("order", message.NewMessage("1", []byte("x"))))

	assert.Equal(t, []string{"X"}, s.payloads(aggregate.ID{Type: "order", Value: "order/x"}))
}

type shouting struct{}

func (shouting) Marshal(_ string, msg *message.Message) (publisher.Event, error) {
	return publisher.Event{ID: msg.UUID, Payload: []byte(strings.ToUpper(string(msg.Payload)))}, nil
}

func TestTheMessagesOfOnePublishAreGroupedByAggregate(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	var msgs []*message.Message
	for i := range 300 { // interleaved
		msgs = append(msgs, messageTo(aggregate.ID{Value: fmt.Sprint(i % 30)}, fmt.Sprint(i/30)))
	}

	require.NoError(t, p.Publish("order", msgs...))

	for a := range 30 {
		assert.Equal(t, numbered("", 10), s.payloads(aggregate.ID{Type: "order", Value: fmt.Sprint(a)}))
	}
	assert.Len(t, s.wire.sent(), 30, "one transaction for each aggregate")
}

func TestAggregatesAreAppendedSideBySideUpToALimit(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{Concurrency: 3})
	arrived, release := s.wire.hold()
	var msgs []*message.Message
	for i := range 9 {
		msgs = append(msgs, messageTo(aggregate.ID{Value: fmt.Sprint(i)}, "x"))
	}

	result := async(p, "order", msgs...)
	for range 3 {
		await.End(t, arrived, "three transactions at once")
	}
	for range 9 {
		release()
	}

	require.NoError(t, await.Receive(t, result, "Publish"))
	assert.Equal(t, 3, s.wire.peak)
	assert.Equal(t, 9, s.eventCount())
}

func TestSteadyPublishingCostsOneRoundTripACommit(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})

	for range 20 {
		require.NoError(t, p.Publish("order", messageTo(order1, "x")))
	}

	assert.Len(t, s.wire.sent(), 20)
	assert.Equal(t, 1, s.wire.readCount(), "the head is read once and then remembered")
}

func TestOnlySomeIdleAggregatesAreRemembered(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{CachedStreams: 2})
	// At the end b and c are cached, and a is forgotten.
	ids := []string{"a", "b", "c", "a", "b", "b", "c"}

	for _, id := range ids {
		require.NoError(t, p.Publish("order", messageTo(aggregate.ID{Value: id}, "x")))
		// The stream becomes idle a moment after its Publish has returned.
		eventually(t, func() bool { return p.Remembered() <= 2 }, "two idle streams at most, and none in use")
	}

	for id, n := range map[string]uint64{"a": 2, "b": 3, "c": 2} {
		assert.Equal(t, n, s.version(aggregate.ID{Type: "order", Value: id}), id)
	}
}

func TestWhoeverComesDuringACommitSharesTheNext(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	arrived, release := s.wire.hold()

	results := []<-chan error{async(p, "order", messageTo(order1, "first"))}
	await.End(t, arrived, "the first commit")
	for i := range 150 {
		results = append(results, async(p, "order", messageTo(order1, fmt.Sprint(i))))
	}
	eventually(t, func() bool { return p.Queued(order1) == 151 }, "150 messages wait")
	for range 3 {
		release()
	}

	for _, result := range results {
		require.NoError(t, await.Receive(t, result, "Publish"))
	}
	assert.Equal(t, []int{1, 99, 51}, s.wire.sent())
	assert.EqualValues(t, 151, s.version(order1))
}

func TestMessagesThatFitIntoOneTransactionAreNotTornApart(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	arrived, release := s.wire.hold()

	results := []<-chan error{async(p, "order", messageTo(order1, "first"))}
	await.End(t, arrived, "the first commit")
	for i, n := range []int{60, 60, 39, 120, 10} {
		results = append(results, async(p, "order", messagesTo(order1, "m", n)...))
		eventually(t, func() bool { return p.Queued(order1) == i+2 }, "%d batches wait", i+1)
	}
	for range 5 {
		release()
	}

	for _, result := range results {
		require.NoError(t, await.Receive(t, result, "Publish"))
	}
	assert.Equal(t, []int{1, 60, 60 + 39, 99, 21 + 10}, s.wire.sent())
}

func TestManyGoroutinesOnOneStreamLeaveEachMessageOnceAndInTheirOrder(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{StreamID: "mine"})
	mine := aggregate.ID{Type: "order", Value: "mine"}
	var ended atomic.Int64
	s.wire.set(func(w *wire) {
		// Each commit waits until all other goroutines wait for the next.
		w.onWrite = func(ctx context.Context, _ int) error {
			for p.Queued(mine)+int(ended.Load()) < 50 {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Millisecond):
				}
			}
			return nil
		}
	})

	var all sync.WaitGroup
	for g := range 50 {
		all.Add(1)
		go func() {
			defer all.Done()
			defer ended.Add(1)
			for i := range 20 {
				assert.NoError(t, p.Publish("order", message.NewMessage("1", fmt.Appendf(nil, "%d/%d", g, i))))
			}
		}()
	}
	all.Wait()

	assertEachOnceInOrder(t, s.payloads(mine), 50, 20)
	assert.LessOrEqual(t, len(s.wire.sent()), 2*20, "two commits have a message of each goroutine")
}

// assertEachOnceInOrder expects payloads "g/i": goroutine g published i from 0.
func assertEachOnceInOrder(t *testing.T, payloads []string, goroutines, each int) {
	t.Helper()
	assert.Len(t, payloads, goroutines*each)
	next := map[int]int{}
	for _, payload := range payloads {
		var g, i int
		_, err := fmt.Sscanf(payload, "%d/%d", &g, &i)
		require.NoError(t, err, payload)
		require.Equal(t, next[g], i, "the messages of goroutine %d must stand in order, each once", g)
		next[g]++
	}
}

func TestTwoPublishersOnOneAggregateBothGetThrough(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	publishers := []*publisher.Publisher{
		s.publisher(publisher.Config{}),
		s.publisher(publisher.Config{Journal: s.another()}),
	}

	var all sync.WaitGroup
	for g := range 6 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 30 {
				assert.NoError(t, publishers[g%2].Publish("order", messageTo(order1, fmt.Sprintf("%d/%d", g, i))))
			}
		}()
	}
	all.Wait()

	assertEachOnceInOrder(t, s.payloads(order1), 6, 30)
}

func TestNothingIsLostOrDoubledWhateverTheWireDoes(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(3, 4))
	chance := func(percent int) bool {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(100) < percent
	}
	s.wire.set(func(w *wire) {
		w.onReply = func(int) error {
			if chance(30) {
				return errLostReply
			}
			return nil
		}
	})
	// Others write to the same aggregates.
	publishers := []*publisher.Publisher{
		s.publisher(publisher.Config{CachedStreams: 1}),
		s.publisher(publisher.Config{Journal: s.another()}),
	}

	var all sync.WaitGroup
	for g := range 10 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 10 {
				var msgs []*message.Message
				for a := range 3 {
					msgs = append(msgs, messageTo(aggregate.ID{Value: fmt.Sprint(a)}, fmt.Sprintf("%d/%d", g, 2*i)),
						messageTo(aggregate.ID{Value: fmt.Sprint(a)}, fmt.Sprintf("%d/%d", g, 2*i+1)))
				}
				assert.NoError(t, publishers[g%2].Publish("order", msgs...))
			}
		}()
	}
	all.Wait()

	for a := range 3 {
		assertEachOnceInOrder(t, s.payloads(aggregate.ID{Type: "order", Value: fmt.Sprint(a)}), 10, 20)
	}
}

func TestNoMessagesAreNoWork(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})

	require.NoError(t, s.publisher(publisher.Config{}).Publish("order"))

	assert.Zero(t, s.wire.readCount())
	assert.Empty(t, s.wire.sent())
}

func TestLocalSubscribersAreWokenByEachCommit(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	var versions []uint64
	defer s.Journal.Internal().Watch("order", func(_ aggregate.ID, version uint64) { versions = append(versions, version) })()

	require.NoError(t, p.Publish("order", messagesTo(order1, "m", 100)...))

	assert.Equal(t, []uint64{99, 100}, versions)
}

func TestEventsAreDatedByTheJournalsClock(t *testing.T) {
	t.Parallel()
	noon := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	s := newStore(t, journal.Config{Now: func() time.Time { return noon }})

	require.NoError(t, s.publisher(publisher.Config{}).Publish("order", messagesTo(order1, "m", 3)...))

	assert.False(t, slices.ContainsFunc(s.records(order1), func(r *journal.Record) bool { return !r.OccurredAt.Equal(noon) }))
}

func TestOnlyMessagesWithoutAnIDAreMarkedAsThoseOfTheStream(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{StreamID: "mine"})
	mine, named, forged := message.NewMessage("", nil), message.NewMessage("", nil), message.NewMessage("", nil)
	mine.Metadata = message.Metadata{"own_stream": "other", "tenant": "a"}
	named.Metadata = message.Metadata{"aggregate_id": "mine"}
	forged.Metadata = message.Metadata{"aggregate_id": "1", "own_stream": metadata.StreamMark(order1)}

	require.NoError(t, p.Publish("order", mine))
	require.NoError(t, p.Publish("order", named, forged))

	records := s.records(aggregate.ID{Type: "order", Value: "mine"})
	assert.Equal(t, aggregate.Metadata{"own_stream": metadata.StreamMark(records[0].Aggregate), "tenant": "a"}, records[0].Metadata)
	assert.Empty(t, records[1].Metadata)
	assert.Empty(t, s.records(order1)[0].Metadata)
	assert.Equal(t, message.Metadata{"own_stream": "other", "tenant": "a"}, mine.Metadata, "the caller's message stays as it was")
}
