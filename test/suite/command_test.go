package suite_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// startCommands uses one topic of the journal for each command. Each handler is a group.
func startCommands(t *testing.T, s store, marshaler cqrs.CommandEventMarshaler, handlers ...cqrs.CommandHandler) *cqrs.CommandBus {
	t.Helper()
	pub, _ := s.ordered(t, "bus")
	bus, err := cqrs.NewCommandBusWithConfig(pub, cqrs.CommandBusConfig{
		GeneratePublishTopic: func(p cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return p.CommandName, nil },
		OnSend: func(p cqrs.CommandBusOnSendParams) error {
			if d, ok := p.Command.(*deposit); ok {
				p.Message.Metadata.Set(publisher.AggregateIDKey, d.Account) // in order per account
			}
			return nil
		},
		Marshaler: marshaler,
	})
	require.NoError(t, err)
	startRouter(t, func(router *message.Router) {
		processor, err := cqrs.NewCommandProcessorWithConfig(router, cqrs.CommandProcessorConfig{
			GenerateSubscribeTopic: func(p cqrs.CommandProcessorGenerateSubscribeTopicParams) (string, error) { return p.CommandName, nil },
			SubscriberConstructor: func(p cqrs.CommandProcessorSubscriberConstructorParams) (message.Subscriber, error) {
				_, sub := s.ordered(t, p.HandlerName)
				return sub, nil
			},
			Marshaler: marshaler,
		})
		require.NoError(t, err)
		require.NoError(t, processor.AddHandlers(handlers...))
	})
	return bus
}

type deposit struct {
	Account string
	Amount  int
}

type closing struct{ Account string }

func TestCommandsAreHandledWithEachMarshaler(t *testing.T) {
	t.Parallel()
	t.Run("JSON", func(t *testing.T) {
		t.Parallel()
		var got received
		bus := startCommands(t, newStore(t), cqrs.JSONMarshaler{},
			cqrs.NewCommandHandler("deposits", func(_ context.Context, c *deposit) error {
				got.add("deposits", *c)
				return nil
			}),
			cqrs.NewCommandHandler("closings", func(_ context.Context, c *closing) error {
				got.add("closings", *c)
				return nil
			}))
		for _, command := range []any{&deposit{"alice", 1}, &closing{"alice"}, &deposit{"alice", 2}} {
			require.NoError(t, bus.Send(t.Context(), command))
		}
		eventually(t, "each handler has its commands, in order", func() bool {
			return got.equals("deposits", "{alice 1}", "{alice 2}") && got.equals("closings", "{alice}")
		})
	})
	for name, marshaler := range map[string]cqrs.CommandEventMarshaler{
		"Proto":    cqrs.ProtoMarshaler{},
		"Protobuf": cqrs.ProtobufMarshaler{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got received
			bus := startCommands(t, newStore(t), marshaler,
				cqrs.NewCommandHandler("texts", func(_ context.Context, c *wrapperspb.StringValue) error {
					got.add("texts", c.GetValue())
					return nil
				}),
				cqrs.NewCommandHandler("numbers", func(_ context.Context, c *wrapperspb.Int64Value) error {
					got.add("numbers", c.GetValue())
					return nil
				}))
			for _, command := range []any{wrapperspb.String("a"), wrapperspb.Int64(1), wrapperspb.String("b")} {
				require.NoError(t, bus.Send(t.Context(), command))
			}
			eventually(t, "each handler has its commands, in order", func() bool {
				return got.equals("texts", "a", "b") && got.equals("numbers", "1")
			})
		})
	}
}

// With the id of the command's message, a redelivery leads to a single commit.
func TestACommandThatIsDeliveredAgainIsExecutedOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	j, err := journal.Open(t.Context(), s.client, journal.Config{})
	require.NoError(t, err)
	repo, err := repository.New(j, accounts, repository.Config{})
	require.NoError(t, err)
	var tried tries
	bus := startCommands(t, s, cqrs.JSONMarshaler{},
		cqrs.NewCommandHandler("deposits", func(ctx context.Context, c *deposit) error {
			msg := cqrs.OriginalMessageFromCtx(ctx)
			_, err := repo.Execute(ctx, c.Account, func(account) (aggregate.Events[account], error) {
				return aggregate.Events[account]{deposited(*c)}, nil
			}, repository.WithCommandID(msg.UUID))
			if err != nil {
				return err
			}
			if attempt := tried.count(msg); attempt < 3 {
				return fmt.Errorf("the ack is lost, attempt %d", attempt)
			}
			got, _ := subscriber.AttemptFromContext(ctx)
			assert.Equal(t, 3, got)
			return nil
		}))
	for n := range 3 {
		require.NoError(t, bus.Send(t.Context(), &deposit{"alice", n + 1}))
	}

	eventually(t, "each was delivered three times", func() bool { return tried.total() == 9 })
	alice, err := repo.Load(t.Context(), "alice")
	require.NoError(t, err)
	assert.Equal(t, 6, alice.State.Balance)
	assert.EqualValues(t, 3, alice.Version)
}

func (c *tries) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, tried := range c.by {
		n += tried
	}
	return n
}

// The handler needs no code for this: all results of one request are found by its id.
func TestWhatAHandlerCommitsAndSendsNamesItsCauseAndItsRequest(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	j, err := journal.Open(t.Context(), s.client, journal.Config{})
	require.NoError(t, err)
	repo, err := repository.New(j, accounts, repository.Config{})
	require.NoError(t, err)
	var notices inbox
	pub, _ := s.ordered(t, "publisher")
	_, noticed := s.ordered(t, "noticed")
	startRouter(t, func(router *message.Router) {
		router.AddConsumerHandler("noticed", "notice", noticed, notices.handle)
	})
	bus, err := cqrs.NewEventBusWithConfig(pub, cqrs.EventBusConfig{
		GeneratePublishTopic: func(cqrs.GenerateEventPublishTopicParams) (string, error) { return "notice", nil },
		Marshaler:            cqrs.JSONMarshaler{},
	})
	require.NoError(t, err)
	commands := startCommands(t, s, cqrs.JSONMarshaler{}, cqrs.NewCommandHandler("deposits", func(ctx context.Context, c *deposit) error {
		_, err := repo.Execute(ctx, c.Account, func(account) (aggregate.Events[account], error) {
			return aggregate.Events[account]{deposited(*c)}, nil
		})
		if err != nil {
			return err
		}
		return bus.Publish(ctx, c)
	}))
	ctx := aggregate.ContextWithMetadata(t.Context(), aggregate.Metadata{
		aggregate.CorrelationIDKey: "request 7", "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tenant": "a",
	})
	require.NoError(t, commands.Send(ctx, &deposit{"alice", 1}))
	eventually(t, "it was noticed", func() bool { return notices.size() == 1 })

	var command *journal.Record
	for r, err := range j.Events(t.Context(), aggregate.ID{Type: "suite_test.deposit", Value: "alice"}, 1, 1) {
		require.NoError(t, err)
		command = r
	}
	assert.Equal(t, "request 7", command.Metadata[aggregate.CorrelationIDKey])
	want := aggregate.Metadata{
		aggregate.CorrelationIDKey: "request 7", aggregate.CausationIDKey: command.EventID,
		"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
	for r, err := range j.Events(t.Context(), aggregate.ID{Type: accounts.Type(), Value: "alice"}, 1, 1) {
		require.NoError(t, err)
		assert.Equal(t, want, r.Metadata)
	}
	notices.mu.Lock()
	defer notices.mu.Unlock()
	for key, value := range want {
		assert.Equal(t, value, notices.messages[0].Metadata.Get(key), key)
	}
}
