package publisher_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

func under(ctx context.Context, msgs ...*message.Message) []*message.Message {
	for _, msg := range msgs {
		msg.SetContext(ctx)
	}
	return msgs
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func TestAContextThatHasEndedLetsNothingOfThePublishBeWritten(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	msgs := []*message.Message{messageTo(aggregate.ID{Value: "a"}, "x"), messageTo(aggregate.ID{Value: "b"}, "x")}
	under(ended(), msgs[1])

	err := p.Publish("order", msgs...)

	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, journal.ErrOutcomeUnknown)
	var failed *publisher.PublishError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, []int{0, 1}, failed.NotWritten())
	assert.Zero(t, s.eventCount())
}

func TestAMessageThatWaitsIsTakenOutWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	arrived, release := s.wire.hold()
	ctx, cancel := context.WithCancel(context.Background())

	first := async(p, "order", messageTo(order1, "first"))
	receive(t, arrived, "the first commit")
	waiting := async(p, "order", under(ctx, messageTo(order1, "waiting"))...)
	eventually(t, func() bool { return p.Waiting(order1) == 1 }, "the second waits")
	other := async(p, "order", messageTo(order1, "other"))
	eventually(t, func() bool { return p.Waiting(order1) == 2 }, "the third waits")
	cancel()

	err := receive(t, waiting, "Publish whose context has ended")
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, journal.ErrOutcomeUnknown, "it is certain that nothing was written")
	assert.Equal(t, []int{0}, failureOf(t, err, order1).NotWritten)
	release()
	release()
	require.NoError(t, receive(t, first, "Publish"))
	require.NoError(t, receive(t, other, "Publish"))
	assert.Equal(t, []string{"first", "other"}, s.payloads(order1))
}

func TestAMessageInFlightMayBeWrittenAfterItsContextEndedAndTakesNobodyDown(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	arrived, release := s.wire.hold()
	ctx, cancel := context.WithCancel(context.Background())

	first := async(p, "order", messageTo(order1, "first"))
	receive(t, arrived, "the first commit")
	msg := messageTo(order1, "abandoned")
	abandoned := async(p, "order", under(ctx, msg)...)
	eventually(t, func() bool { return p.Waiting(order1) == 1 }, "the second waits")
	other := async(p, "order", messageTo(order1, "other"))
	eventually(t, func() bool { return p.Waiting(order1) == 2 }, "the third waits")
	release()
	receive(t, arrived, "the commit of the second and the third")
	cancel()

	err := receive(t, abandoned, "Publish whose context has ended")
	require.ErrorIs(t, err, journal.ErrOutcomeUnknown)
	require.ErrorIs(t, err, context.Canceled)
	var known *publisher.AbandonedError
	require.ErrorAs(t, err, &known)
	assert.Equal(t, []int{0}, failureOf(t, err, order1).Unknown)
	copy(msg.Payload, "zzzzzzzzz") // the caller has its bytes back
	release()
	require.NoError(t, receive(t, first, "Publish"))
	require.NoError(t, receive(t, other, "Publish"), "the messages of others must not suffer")
	assert.Equal(t, []string{"first", "abandoned", "other"}, s.payloads(order1))
}

func TestTheFateOfAnAbandonedMessageIsLogged(t *testing.T) {
	t.Parallel()
	for _, fails := range []bool{false, true} {
		s := newStore(t, journal.Config{})
		logger := watermill.NewCaptureLogger()
		p, err := publisher.NewPublisher(publisher.Config{Journal: s.Journal}, logger)
		require.NoError(t, err)
		arrived, release := s.wire.hold()
		ctx, cancel := context.WithCancel(context.Background())

		abandoned := async(p, "order", under(ctx, messageTo(order1, "x"))...)
		receive(t, arrived, "the commit")
		cancel()
		require.Error(t, receive(t, abandoned, "Publish whose context has ended"))
		if fails {
			table := "journal"
			_, err := s.client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table})
			require.NoError(t, err)
		}
		release()
		require.NoError(t, p.Close())

		assert.Len(t, logger.Captured()[watermill.ErrorLogLevel], map[bool]int{false: 0, true: 1}[fails])
		assert.Len(t, logger.Captured()[watermill.InfoLogLevel], map[bool]int{false: 1, true: 0}[fails])
	}
}

func TestTheRestOfAnAbandonedPublishIsNotWritten(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	arrived, release := s.wire.hold()
	ctx, cancel := context.WithCancel(context.Background())

	abandoned := async(p, "order", under(ctx, messagesTo(order1, "m", 250)...)...)
	receive(t, arrived, "the first commit")
	release()
	receive(t, arrived, "the second commit")
	cancel()

	failed := failureOf(t, receive(t, abandoned, "Publish whose context has ended"), order1)
	assert.Equal(t, indexes(0, 99), failed.Written)
	assert.Equal(t, indexes(99, 198), failed.Unknown)
	assert.Equal(t, indexes(198, 250), failed.NotWritten)
	release()
	require.NoError(t, p.Close())
	assert.EqualValues(t, 198, s.version(order1))
}

func TestAnAbandonedMessageIsNotTakenAlongWhenACommitIsRepeated(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	require.NoError(t, p.Publish("order", messageTo(order1, "first")))
	arrived, release := s.wire.hold()
	ctx, cancel := context.WithCancel(context.Background())

	abandoned := async(p, "order", under(ctx, messageTo(order1, "abandoned"))...)
	receive(t, arrived, "the commit")
	_, err := eventlog.Of(s.another()).Append(context.Background(), eventlog.Commit{
		Aggregate: order1, Expected: 1, Events: []eventlog.Event{{Payload: []byte("rival")}},
	})
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, receive(t, abandoned, "Publish whose context has ended"), journal.ErrOutcomeUnknown)
	release()
	other := async(p, "order", messageTo(order1, "other"))
	release()

	require.NoError(t, receive(t, other, "Publish"))
	assert.Equal(t, []string{"first", "rival", "other"}, s.payloads(order1))
}

func TestAnyOfSeveralContextsEndsThePublishOfItsAggregate(t *testing.T) {
	t.Parallel()
	s := newStore(t, journal.Config{})
	p := s.publisher(publisher.Config{})
	arrived, release := s.wire.hold()
	msgs := append(messagesTo(order1, "m", 3), messageTo(aggregate.ID{Value: "2"}, "x"))
	var cancels []context.CancelFunc
	for _, msg := range msgs {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		cancels = append(cancels, cancel)
		msg.SetContext(ctx)
	}

	result := async(p, "order", msgs...)
	receive(t, arrived, "one commit")
	receive(t, arrived, "the other")
	cancels[1]()
	eventually(t, func() bool { return p.Abandoned(order1) }, "nobody waits for the first")
	release()
	release()

	err := receive(t, result, "Publish")
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, []int{0, 1, 2}, failureOf(t, err, order1).Unknown)
	assert.EqualValues(t, 1, s.version(aggregate.ID{Type: "order", Value: "2"}))
}
