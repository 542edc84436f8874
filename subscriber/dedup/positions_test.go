package dedup_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

// handled records the messages of a handler, and returns the errors that a test has set.
type handled struct {
	mu       sync.Mutex
	payloads []string
	err      error
}

func (h *handled) handle(msg *message.Message) ([]*message.Message, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.payloads = append(h.payloads, string(msg.Payload))
	return nil, h.err
}

// deliver passes the message of an event to a handler under the middleware.
func deliver(t *testing.T, p *dedup.Positions, h message.HandlerFunc, id aggregate.ID, number uint64) error {
	t.Helper()
	_, err := p.Middleware(h)(forwarded(t, id, number))
	return err
}

func last(t *testing.T, p *dedup.Positions, id aggregate.ID) uint64 {
	t.Helper()
	number, err := p.Last(t.Context(), id)
	require.NoError(t, err)
	return number
}

func TestAnEventThatComesAgainIsNotHandledAgain(t *testing.T) {
	t.Parallel()
	client := database(t)
	here, there := newPositions(t, client, dedup.PositionsConfig{}), newPositions(t, client, dedup.PositionsConfig{})
	var got handled
	require.NoError(t, deliver(t, here, got.handle, order("1"), 1))
	require.NoError(t, deliver(t, there, got.handle, order("1"), 2))
	require.NoError(t, deliver(t, here, got.handle, order("2"), 1))
	for _, p := range []*dedup.Positions{here, there} {
		require.NoError(t, deliver(t, p, got.handle, order("1"), 1))
		require.NoError(t, deliver(t, p, got.handle, order("1"), 2))
	}
	assert.Equal(t, []string{"1#1", "1#2", "2#1"}, got.payloads)
	assert.EqualValues(t, 2, last(t, here, order("1")))
}

func TestAnEventWhoseHandlerFailedIsHandledWhenItComesAgain(t *testing.T) {
	t.Parallel()
	p := newPositions(t, database(t), dedup.PositionsConfig{})
	noMail := errors.New("no mail today")
	got := handled{err: noMail}
	require.ErrorIs(t, deliver(t, p, got.handle, order("1"), 1), noMail)
	require.Panics(t, func() {
		_ = deliver(t, p, func(*message.Message) ([]*message.Message, error) { panic("no mail ever") }, order("1"), 1)
	})
	assert.Zero(t, last(t, p, order("1")))

	got.err = nil
	require.NoError(t, deliver(t, p, got.handle, order("1"), 1))
	assert.Equal(t, []string{"1#1", "1#1"}, got.payloads)
	assert.EqualValues(t, 1, last(t, p, order("1")))
}

func TestAnEventAfterAGapComesAgainUntilTheGapIsFilled(t *testing.T) {
	t.Parallel()
	p := newPositions(t, database(t), dedup.PositionsConfig{})
	var got handled
	err := deliver(t, p, got.handle, order("1"), 3)
	var gap *dedup.GapError
	require.ErrorAs(t, err, &gap)
	assert.Equal(t, dedup.GapError{Aggregate: order("1"), Number: 3, Expected: 1}, *gap)
	assert.Empty(t, got.payloads)

	for n := range uint64(3) {
		require.NoError(t, deliver(t, p, got.handle, order("1"), n+1))
	}
	assert.Equal(t, []string{"1#1", "1#2", "1#3"}, got.payloads)
}

func TestWhereGapsArePassedAnEventIsHandledAndWhatCameBeforeItIsNot(t *testing.T) {
	t.Parallel()
	p := newPositions(t, database(t), dedup.PositionsConfig{Gaps: dedup.PassGaps})
	var got handled
	for _, n := range []uint64{3, 7, 3, 5, 7, 8} {
		require.NoError(t, deliver(t, p, got.handle, order("1"), n))
	}
	assert.Equal(t, []string{"1#3", "1#7", "1#8"}, got.payloads)
}

func TestAPositionThatIsSetGoesOnBehindIt(t *testing.T) {
	t.Parallel()
	p := newPositions(t, database(t), dedup.PositionsConfig{})
	var got handled
	require.NoError(t, p.Set(t.Context(), order("1"), 41))
	require.NoError(t, deliver(t, p, got.handle, order("1"), 41))
	require.NoError(t, deliver(t, p, got.handle, order("1"), 42))
	require.NoError(t, p.Set(t.Context(), order("1"), 40))
	require.NoError(t, deliver(t, p, got.handle, order("1"), 41))
	assert.Equal(t, []string{"1#42", "1#41"}, got.payloads)

	var invalid *aggregate.InvalidIDError
	require.ErrorAs(t, p.Set(t.Context(), aggregate.ID{}, 1), &invalid)
}

func TestGroupsAndIDsThatReadTheSameHavePositionsOfTheirOwn(t *testing.T) {
	t.Parallel()
	client := database(t)
	one, other := aggregate.ID{Type: "user", Value: "account-7"}, aggregate.ID{Type: "user-account", Value: "7"}
	long := order(strings.Repeat("x", aggregate.MaxIDBytes-len("order-")))
	for _, group := range []string{"mails", strings.Repeat("g", 255)} {
		p := newPositions(t, client, dedup.PositionsConfig{Group: group})
		var got handled
		for _, id := range []aggregate.ID{one, other, long} {
			require.NoError(t, deliver(t, p, got.handle, id, 1))
		}
		assert.Len(t, got.payloads, 3)
	}
}

func TestAMessageThatIsNoEventIsRefused(t *testing.T) {
	t.Parallel()
	p := newPositions(t, database(t), dedup.PositionsConfig{})
	for key, value := range map[string]string{
		"aggregate_type": "", "aggregate_id": "", "sequence_number": "", // absent
		"sequence_number ": "0", "sequence_number  ": "-1", "aggregate_type ": "\x00",
	} {
		var got handled
		msg := forwarded(t, order("1"), 1)
		msg.Metadata.Set(strings.TrimSpace(key), value)
		_, err := p.Middleware(got.handle)(msg)
		require.ErrorIs(t, err, dedup.ErrNoEvent, key)
		assert.ErrorContains(t, err, msg.UUID)
		assert.Empty(t, got.payloads)
		_, err = dedup.Event(msg)
		require.ErrorIs(t, err, dedup.ErrNoEvent, key)
	}
}

// The Router publishes returned messages after the middlewares. If the position had moved before, a
// failure to publish would lose them.
func TestAHandlerThatReturnsMessagesIsRefusedAndThePositionStays(t *testing.T) {
	t.Parallel()
	p := newPositions(t, database(t), dedup.PositionsConfig{})
	produced, err := p.Middleware(func(msg *message.Message) ([]*message.Message, error) {
		return message.Messages{msg.Copy()}, nil
	})(forwarded(t, order("1"), 1))
	require.ErrorIs(t, err, dedup.ErrProduced)
	assert.Empty(t, produced)
	assert.Zero(t, last(t, p, order("1")))
}

func TestAMoveWhoseReplyIsLostIsStillAMove(t *testing.T) {
	t.Parallel()
	db := faulty(t)
	p := newPositions(t, db.Client(), dedup.PositionsConfig{})
	lost := db.Inject(dynamotest.LoseReply(), dynamotest.On("UpdateItem"), dynamotest.Times(1))
	var got handled
	require.NoError(t, deliver(t, p, got.handle, order("1"), 1))
	assert.Equal(t, 1, lost.Fired())
	assert.EqualValues(t, 1, last(t, p, order("1")))
}

func TestAPositionThatCannotBeMovedLetsTheEventComeAgain(t *testing.T) {
	t.Parallel()
	db := faulty(t)
	p := newPositions(t, db.Client(), dedup.PositionsConfig{})
	// The SDK makes three attempts.
	db.Inject(dynamotest.Throttle(), dynamotest.On("UpdateItem"), dynamotest.Times(3))
	var got handled
	require.ErrorIs(t, deliver(t, p, got.handle, order("1"), 1), journal.ErrThrottled)
	require.NoError(t, deliver(t, p, got.handle, order("1"), 1))
	require.NoError(t, deliver(t, p, got.handle, order("1"), 1))
	assert.Equal(t, []string{"1#1", "1#1"}, got.payloads, "at least once: the position has not moved, so the event is handled again")
}

// A transport delivers the message of a slow consumer to another consumer.
func TestAPositionIsNeverMovedBack(t *testing.T) {
	t.Parallel()
	client := database(t)
	slow, fast := newPositions(t, client, dedup.PositionsConfig{}), newPositions(t, client, dedup.PositionsConfig{})
	var got handled
	require.NoError(t, deliver(t, slow, func(msg *message.Message) ([]*message.Message, error) {
		for n := range uint64(3) {
			require.NoError(t, deliver(t, fast, got.handle, order("1"), n+1))
		}
		return got.handle(msg)
	}, order("1"), 1))
	assert.EqualValues(t, 3, last(t, slow, order("1")))
}

func TestMessagesOfOneAggregateWaitForEachOther(t *testing.T) {
	t.Parallel()
	p := newPositions(t, database(t), dedup.PositionsConfig{})
	begun, release := make(chan struct{}), make(chan struct{})
	var got handled
	slow := func(msg *message.Message) ([]*message.Message, error) {
		close(begun) // a second time panics
		<-release
		return got.handle(msg)
	}
	results := make(chan error, 3)
	go func() { results <- deliver(t, p, slow, order("1"), 1) }()
	<-begun
	require.NoError(t, deliver(t, p, got.handle, order("2"), 1), "another aggregate does not wait")
	go func() { results <- deliver(t, p, slow, order("1"), 1) }() // a duplicate
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	impatient := forwarded(t, order("1"), 1)
	impatient.SetContext(ctx)
	_, err := p.Middleware(slow)(impatient)
	require.ErrorIs(t, err, context.Canceled)
	close(release)

	require.NoError(t, <-results)
	require.NoError(t, <-results)
	assert.Equal(t, []string{"2#1", "1#1"}, got.payloads)
}

func TestAnEventCostsOneReadAndOneWriteUnitAndADuplicateOneRead(t *testing.T) {
	t.Parallel()
	db := faulty(t)
	p := newPositions(t, db.Client(), dedup.PositionsConfig{})
	var got handled
	for _, want := range []float64{1, 0} {
		record := db.Record()
		require.NoError(t, deliver(t, p, got.handle, order("1"), 1))
		read, write := record.Units()
		record.Stop()
		assert.InDelta(t, 1, read, 0)
		assert.InDelta(t, want, write, 0)
	}
}

// hanging is a client that does not answer its first read and its first update.
type hanging struct {
	dedup.Client
	reads, moves sync.Once
}

func (h *hanging) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	h.reads.Do(func() { <-ctx.Done() })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return h.Client.GetItem(ctx, in, o...)
}

func (h *hanging) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	h.moves.Do(func() { <-ctx.Done() })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return h.Client.UpdateItem(ctx, in, o...)
}

func TestARequestThatIsNotAnsweredLetsTheEventComeAgain(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		p := newPositions(t, &hanging{Client: database(t)}, dedup.PositionsConfig{RequestTimeout: 500 * time.Millisecond})
		var got handled
		require.ErrorIs(t, deliver(t, p, got.handle, order("1"), 1), context.DeadlineExceeded)
		assert.Empty(t, got.payloads, "the position could not be read")
		require.ErrorIs(t, deliver(t, p, got.handle, order("1"), 1), context.DeadlineExceeded)
		assert.Equal(t, []string{"1#1"}, got.payloads, "the position could not be moved")
		require.NoError(t, deliver(t, p, got.handle, order("1"), 1))
		assert.EqualValues(t, 1, last(t, p, order("1")))

		_, err := dedup.NewPositions(database(t), dedup.PositionsConfig{Group: "mails", RequestTimeout: -1})
		require.ErrorAs(t, err, new(*dedup.ConfigError))
	})
}
