package publisher_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

func expecting(msgs []*message.Message, version uint64) []*message.Message {
	publisher.SetExpectedVersion(msgs[0], version)
	return msgs
}

func TestAMessageThatExpectsAVersionIsAppendedToThatVersionOnly(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})

	require.NoError(t, p.Publish("order", expecting(messagesTo(order1, "a", 2), 0)...), "0 means that it does not exist")
	for _, wrong := range []uint64{0, 1, 3} {
		err := p.Publish("order", expecting(messagesTo(order1, "b", 2), wrong)...)

		var conflict *journal.ConflictError
		require.ErrorAs(t, err, &conflict)
		assert.Equal(t, journal.ConflictError{ID: order1, Expected: wrong, Actual: 2}, *conflict)
		assert.Equal(t, []int{0, 1}, failureOf(t, err, order1).NotWritten)
	}
	assert.Len(t, s.wire.sent(), 4, "a conflict with an expected version is not tried again")
	require.NoError(t, p.Publish("order", expecting(messagesTo(order1, "c", 2), 2)...))

	assert.Equal(t, []string{"a0", "a1", "c0", "c1"}, s.payloads(order1))
	assert.Zero(t, s.wire.readCount(), "the expectation is the version: nothing has to be read")
}

// A delayed request is written if the aggregate has then reached the version that it expects.
func TestAnOutcomeIsUnknownWhereTheExpectedVersionIsYetToCome(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	proxy := dynamotest.NewProxy(t, s.client)
	j := testjournal.Open(t, proxy.Client(), journal.Config{})
	p := s.publisher(publisher.Config{Journal: j})
	p.ResolveFor(50 * time.Millisecond)
	require.NoError(t, p.Publish("order", messageTo(order1, "first")))
	late := proxy.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))

	err := p.Publish("order", expecting(messagesTo(order1, "ahead", 1), 2)...)

	require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
	require.NotErrorIs(t, err, journal.ErrConflict, "it would say that nothing was written")
	assert.Equal(t, []int{0}, failureOf(t, err, order1).Unknown)
	require.NoError(t, p.Publish("order", messageTo(order1, "second")))
	assert.Equal(t, 1, late.Arrive())
	assert.Equal(t, []string{"first", "second", "ahead0"}, s.payloads(order1))
}

func TestAnExpectationIsNotStored(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	msg := &message.Message{Metadata: message.Metadata{"tenant": "a", "aggregate_id": "1"}}
	publisher.SetExpectedVersion(msg, 0)

	require.NoError(t, s.publisher(publisher.Config{}).Publish("order", msg))

	assert.Equal(t, aggregate.Metadata{"tenant": "a"}, s.records(order1)[0].Metadata)
}

func TestLaterMessagesMayExpectWhatTheEarlierLeadTo(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	msgs := messagesTo(order1, "m", 3)
	publisher.SetExpectedVersion(msgs[0], 0)
	publisher.SetExpectedVersion(msgs[2], 2)
	require.NoError(t, p.Publish("order", msgs...))

	publisher.SetExpectedVersion(msgs[0], 3)
	publisher.SetExpectedVersion(msgs[2], 4)
	err := p.Publish("order", msgs...)

	var refused *publisher.MessageError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, 2, refused.Index)
	assert.ErrorContains(t, err, "which has version 5 after the messages before it")
	assert.EqualValues(t, 3, s.version(order1))
}

func TestMessagesThatExpectAVersionMustFitIntoOneTransaction(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	require.NoError(t, p.Publish("order", expecting(messagesTo(order1, "m", 99), 0)...))

	err := p.Publish("order", expecting(messagesTo(order1, "m", 100), 99)...)
	require.ErrorAs(t, err, new(*journal.TooLargeError))
	require.ErrorAs(t, err, new(*publisher.MessageError))

	large := messagesTo(order1, strings.Repeat("x", 300<<10), 14)
	require.ErrorAs(t, p.Publish("order", expecting(large, 99)...), new(*journal.TooLargeError))

	assert.EqualValues(t, 99, s.version(order1))
}

func TestAnExpectationHasACommitOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	arrived, release := s.wire.hold()

	first := async(p, "order", messageTo(order1, "first"))
	await.End(t, arrived, "the first commit")
	var results []<-chan error
	for i, msgs := range [][]*message.Message{
		messagesTo(order1, "a", 2), expecting(messagesTo(order1, "b", 2), 3),
		expecting(messagesTo(order1, "late", 2), 3), messagesTo(order1, "c", 2),
	} {
		results = append(results, async(p, "order", msgs...))
		eventually(t, func() bool { return p.Queued(order1) == i+2 }, "%d batches wait", i+1)
	}
	for range 5 {
		release()
	}

	require.NoError(t, await.Receive(t, first, "Publish"))
	for i, result := range results {
		err := await.Receive(t, result, "Publish")
		if i == 2 {
			require.ErrorIs(t, err, journal.ErrConflict)
			continue
		}
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"first", "a0", "a1", "b0", "b1", "c0", "c1"}, s.payloads(order1))
}

func TestExpectVersionTakesAnyMessage(t *testing.T) {
	t.Parallel()
	bare := &message.Message{}

	publisher.SetExpectedVersion(nil, 1)
	publisher.SetExpectedVersion(bare, 1)

	assert.Equal(t, "1", bare.Metadata.Get("expected_version"))
}
