package command_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// patience limits the time that a test waits before it fails.
const patience = 2 * time.Minute

type account struct{ Balance int }

type deposited struct{ Amount int }

func (deposited) EventType() string  { return "account.deposited.v1" }
func (e deposited) Apply(a *account) { a.Balance += e.Amount }

var accounts = aggregate.Define[account]("account", deposited{})

var errTooMuch = errors.New("too much")

type deposit struct {
	Account string
	Amount  int
}

func (d *deposit) decide(account) (aggregate.Events[account], error) {
	if d.Amount > 100 {
		return nil, errTooMuch
	}
	return aggregate.Events[account]{deposited{d.Amount}}, nil
}

func route(d *deposit) (string, aggregate.Decision[account]) { return d.Account, d.decide }

type world struct {
	db       *dynamotest.DB
	journal  *journal.Journal
	accounts *repository.Repository[account]
}

func setup(t *testing.T) world {
	t.Helper()
	db := dynamotest.New(t)
	j := testjournal.New(t, db.Client(), journal.Config{Shards: 1, Layout: journal.Packed})
	r := testjournal.Repository(t, j, accounts, repository.Config{})
	return world{db, j, r}
}

func (w world) stored(t *testing.T, id string) (records []*journal.Record) {
	t.Helper()
	for r, err := range w.journal.AllEvents(t.Context(), aggregate.ID{Type: "account", Value: id}) {
		if errors.Is(err, journal.ErrNotFound) {
			return nil
		}
		require.NoError(t, err)
		records = append(records, r)
	}
	return records
}

// handle passes a message to a handler, like a processor.
func handle(h cqrs.CommandHandler, msg *message.Message, d *deposit) error {
	return h.Handle(cqrs.CtxWithOriginalMessage(msg.Context(), msg), d)
}

func TestACommandTakesEffectOnceAndItsEventsSayWhatTheyFollowFrom(t *testing.T) {
	t.Parallel()
	w := setup(t)
	h := command.Handler("deposit", w.accounts, route)
	msg := message.NewMessage("m1", nil)
	msg.Metadata.Set(aggregate.CorrelationIDKey, "c")
	msg.Metadata.Set("traceparent", "t")
	msg.Metadata.Set("other", "o")
	for range 2 {
		require.NoError(t, handle(h, msg, &deposit{"a", 10}))
	}
	require.NoError(t, handle(h, message.NewMessage("m2", nil), &deposit{"a", 10}))

	records := w.stored(t, "a")
	require.Len(t, records, 2)
	assert.Equal(t, aggregate.Metadata{aggregate.CorrelationIDKey: "c", aggregate.CausationIDKey: "m1", "traceparent": "t"}, records[0].Metadata)
	assert.Equal(t, aggregate.Metadata{aggregate.CorrelationIDKey: "m2", aggregate.CausationIDKey: "m2"}, records[1].Metadata)

	msg = message.NewMessage("m3", nil) // it has the context of an event, whose handler has sent it
	msg.SetContext(aggregate.ContextWithMetadata(t.Context(), aggregate.Metadata{aggregate.CorrelationIDKey: "c", aggregate.CausationIDKey: "event"}))
	require.NoError(t, handle(h, msg, &deposit{"b", 10}))
	assert.Equal(t, aggregate.Metadata{aggregate.CorrelationIDKey: "c", aggregate.CausationIDKey: "m3"}, w.stored(t, "b")[0].Metadata)
}

func TestACommandThatIsRefusedIsAcked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	msg := message.NewMessage("m", nil)
	require.NoError(t, handle(command.Handler("deposit", w.accounts, route), msg, &deposit{"a", 101}))

	errAnswer := errors.New("no answer possible")
	var refused []error
	h := command.Handler("deposit", w.accounts, route, command.OnRefused(
		func(_ context.Context, d *deposit, r *repository.RefusedError) error {
			assert.Equal(t, 101, d.Amount)
			if refused = append(refused, r); len(refused) == 1 {
				return errAnswer
			}
			return nil
		}))
	require.ErrorIs(t, handle(h, msg, &deposit{"a", 101}), errAnswer)
	require.NoError(t, handle(h, msg, &deposit{"a", 101}))
	require.Len(t, refused, 2)
	assert.ErrorIs(t, refused[1], errTooMuch)
	assert.Empty(t, w.stored(t, "a"))
}

func TestARefusalThatNobodyAnswersIsLogged(t *testing.T) {
	t.Parallel()
	w := setup(t)
	log := watermill.NewCaptureLogger()
	answered := command.OnRefused(func(context.Context, *deposit, *repository.RefusedError) error { return nil })
	msg := message.NewMessage("m", nil)
	require.NoError(t, handle(command.Handler("deposit", w.accounts, route, command.WithLogger[deposit](log), answered), msg, &deposit{"a", 101}))
	assert.Empty(t, log.Captured())

	require.NoError(t, handle(command.Handler("deposit", w.accounts, route, command.WithLogger[deposit](log)), msg, &deposit{"a", 101}))

	assert.True(t, log.Has(watermill.CapturedMessage{
		Level: watermill.InfoLogLevel, Msg: "Command is refused, and is not delivered again",
		Fields: watermill.LogFields{
			"aggregate_type": "account", "aggregate_id": "a", "command": "command_test.deposit", "handler_name": "deposit",
			"message_uuid": "m", "reason": "too much",
		},
	}), log.Captured())
}

func TestAnyOtherErrorIsReturned(t *testing.T) {
	t.Parallel()
	w := setup(t)
	h := command.Handler("deposit", w.accounts, route)
	assert.ErrorIs(t, handle(h, message.NewMessage("", nil), &deposit{"a", 1}), command.ErrNoID)
	assert.ErrorAs(t, handle(h, message.NewMessage("m", nil), &deposit{"", 1}), new(*aggregate.InvalidIDError))
	assert.ErrorIs(t, h.Handle(t.Context(), &deposit{"a", 1}), command.ErrNoID, "there is no message")
	nested := command.Handler("deposit", w.accounts, route, command.WithRepositoryOptions(func(*deposit) []repository.Option {
		return []repository.Option{repository.WithWrites(func(repository.Commit) ([]types.TransactWriteItem, error) {
			return nil, &repository.RefusedError{Err: errTooMuch} // the error of another call
		})}
	}))
	assert.ErrorIs(t, handle(nested, message.NewMessage("m", nil), &deposit{"a", 1}), errTooMuch)
	assert.Empty(t, w.stored(t, "a"))
}

// One bus uses the journal, and the other uses another Pub/Sub.
func TestCommandsComeByAnyPubSub(t *testing.T) {
	t.Parallel()
	w := setup(t)
	own, err := publisher.NewPublisher(publisher.Config{Journal: w.journal}, nil)
	require.NoError(t, err)
	other := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	for name, pubSub := range map[string]struct {
		publisher  message.Publisher
		subscriber func(group string) (message.Subscriber, error)
	}{
		"own": {own, func(group string) (message.Subscriber, error) {
			return subscriber.NewSubscriber(subscriber.Config{Journal: w.journal, ConsumerGroup: group}, nil)
		}},
		"other": {other, func(string) (message.Subscriber, error) { return other, nil }},
	} {
		router, err := message.NewRouter(message.RouterConfig{}, nil)
		require.NoError(t, err)
		processor, err := cqrs.NewCommandProcessorWithConfig(router, cqrs.CommandProcessorConfig{
			Marshaler:              cqrs.JSONMarshaler{},
			GenerateSubscribeTopic: func(cqrs.CommandProcessorGenerateSubscribeTopicParams) (string, error) { return "commands", nil },
			SubscriberConstructor: func(p cqrs.CommandProcessorSubscriberConstructorParams) (message.Subscriber, error) {
				return pubSub.subscriber(p.HandlerName)
			},
		})
		require.NoError(t, err)
		require.NoError(t, processor.AddHandlers(command.Handler("deposit", w.accounts, route)))
		bus, err := cqrs.NewCommandBusWithConfig(pubSub.publisher, cqrs.CommandBusConfig{
			Marshaler:            cqrs.JSONMarshaler{},
			GeneratePublishTopic: func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return "commands", nil },
			OnSend: func(p cqrs.CommandBusOnSendParams) error {
				p.Message.Metadata.Set(aggregate.CorrelationIDKey, "c")
				return nil
			},
		})
		require.NoError(t, err)
		go func() { _ = router.Run(context.WithoutCancel(t.Context())) }()
		require.NoError(t, bus.Send(t.Context(), &deposit{name, 1}))
		require.Eventually(t, func() bool { return len(w.stored(t, name)) == 1 }, patience, time.Millisecond)
		metadata := w.stored(t, name)[0].Metadata
		assert.Equal(t, "c", metadata.CorrelationID(), name)
		_, err = uuidOf(metadata.CausationID())
		require.NoError(t, err, name)
		require.NoError(t, router.Close())
	}
	require.NoError(t, own.Close())
}

func TestMessagesWithoutASubscriberAreDispatched(t *testing.T) {
	t.Parallel()
	w := setup(t)
	handler := command.Handler("deposit", w.accounts, route)
	_, err := command.Dispatch(cqrs.JSONMarshaler{}, handler, command.Handler("again", w.accounts, route))
	require.ErrorAs(t, err, new(cqrs.DuplicateCommandHandlerError))
	dispatch, err := command.Dispatch(cqrs.JSONMarshaler{}, handler)
	require.NoError(t, err)
	msg, err := cqrs.JSONMarshaler{}.Marshal(&deposit{"a", 1})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, dispatch(msg))
	}
	assert.Len(t, w.stored(t, "a"), 1, "the second delivery has no effect")
	assert.Equal(t, msg.UUID, w.stored(t, "a")[0].Metadata.CausationID())
	require.ErrorIs(t, dispatch(message.NewMessage("m", []byte("{}"))), command.ErrUnknown)
	msg.Payload = []byte("no JSON")
	require.Error(t, dispatch(msg))
}

func uuidOf(s string) (string, error) {
	if len(s) != len(watermill.NewUUID()) {
		return "", errors.New("not a UUID: " + s)
	}
	return s, nil
}
