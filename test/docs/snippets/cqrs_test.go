package snippets

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/protobuf"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

func TestASubscriberUpcastsEvents(t *testing.T) {
	t.Parallel()
	b := open(t)
	storeOld(t, b.j)
	sub := upcastingSubscriber(b.j)
	messages, err := sub.Subscribe(t.Context(), "account")
	require.NoError(t, err)
	msg := <-messages
	assert.JSONEq(t, `{"Amount":5}`, string(msg.Payload))
	assert.Equal(t, "account.deposited.v1", msg.Metadata.Get(publisher.NameKey))
	msg.Ack()
	require.NoError(t, sub.Close())
}

func upcastingSubscriber(j *journal.Journal) *subscriber.Subscriber {
	type depositedInCents struct{ Cents int }
	accounts := definition.WithUpcasters(aggregate.Upcast("account.deposited.v0", func(old depositedInCents) Deposited {
		return Deposited{Amount: old.Cents / 100}
	}))
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: j, ConsumerGroup: "invoicing",
		Definitions: []aggregate.AnyDefinition{accounts},
	}, nil)
	check(err)
	return sub
}

// Purse is an aggregate whose events are Protocol Buffers messages.
type Purse struct{ Coins int64 }

// Coined wraps a message of another package.
type Coined struct{ *wrapperspb.Int64Value }

func (Coined) EventType() string { return "purse.coined.v1" }
func (e Coined) Apply(p *Purse)  { p.Coins += e.GetValue() }

var Purses = aggregate.Define[Purse]("purse", Coined{}).WithCodec(protobuf.Codec{})

func TestAHandlerTakesAProtocolBuffersMessage(t *testing.T) {
	t.Parallel()
	b := open(t)
	purses, err := repository.New(b.j, Purses, repository.Config{})
	require.NoError(t, err)
	_, err = purses.Execute(t.Context(), "1", func(Purse) (aggregate.Events[Purse], error) {
		return aggregate.Events[Purse]{Coined{wrapperspb.Int64(7)}}, nil
	})
	require.NoError(t, err)
	coins := make(chan int64, 1)
	countCoins(b.j, b.router, coins)
	b.run(t)
	assert.EqualValues(t, 7, <-coins)
}

func countCoins(j *journal.Journal, router *message.Router, coins chan<- int64) {
	events, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{
		// All events of the aggregate.
		Marshaler:              cqrs.ProtoMarshaler{GenerateName: publisher.EventNames(Coined{})},
		GenerateSubscribeTopic: func(cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) { return "purse", nil },
		SubscriberConstructor: func(params cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: params.HandlerName}, nil)
		},
		AckOnUnknownEvent: true,
	})
	check(err)
	check(events.AddHandlers(cqrs.NewEventHandler("coins", func(_ context.Context, e *wrapperspb.Int64Value) error {
		coins <- e.GetValue()
		return nil
	})))
}

// Note is an event that belongs to no aggregate.
type Note struct{ Customer, Text string }

func TestAnEventBusKeepsTheNotesOfACustomerInOrder(t *testing.T) {
	t.Parallel()
	b := open(t)
	bus := notes(b.publisher, cqrs.JSONMarshaler{})
	require.NoError(t, bus.Publish(t.Context(), Note{"anna", "first"}))
	require.NoError(t, bus.Publish(t.Context(), Note{"anna", "second"}))
	var stored []string
	for r, err := range b.j.AllEvents(t.Context(), aggregate.ID{Type: "notes", Value: "anna"}) {
		require.NoError(t, err)
		stored = append(stored, string(r.Payload))
	}
	assert.Equal(t, []string{`{"Customer":"anna","Text":"first"}`, `{"Customer":"anna","Text":"second"}`}, stored)
}

func notes(p *publisher.Publisher, marshaler cqrs.CommandEventMarshaler) *cqrs.EventBus {
	bus, err := cqrs.NewEventBusWithConfig(p, cqrs.EventBusConfig{
		Marshaler:            marshaler,
		GeneratePublishTopic: func(cqrs.GenerateEventPublishTopicParams) (string, error) { return "notes", nil },
		OnPublish: func(params cqrs.OnEventSendParams) error {
			// Optional.
			params.Message.Metadata.Set(publisher.AggregateIDKey, params.Event.(Note).Customer)
			return nil
		},
	})
	check(err)
	return bus
}

func TestAMailIsSentOnceThoughItsMessageComesTwice(t *testing.T) {
	t.Parallel()
	for name, add := range map[string]func(context.Context, *dynamodb.Client, *message.Handler, message.HandlerMiddleware){
		"positions": byPosition, "keys": byKey,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			check(dedup.CreateTable(t.Context(), b.client, dedup.TableConfig{}))
			twice := &repeating{}
			var mu sync.Mutex
			var mails []string
			all := make(chan struct{})
			handler := b.router.AddConsumerHandler("mails", "account", twice, func(msg *message.Message) error {
				mu.Lock()
				defer mu.Unlock()
				if mails = append(mails, msg.UUID); len(mails) == 4 {
					close(all)
				}
				return nil
			})
			poison, err := middleware.PoisonQueue(b.publisher, "poison")
			check(err)
			sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: "mails"}, nil)
			check(err)
			twice.Subscriber = sub
			add(t.Context(), b.client, handler, poison)
			b.run(t)
			b.write(t.Context(), "42")
			b.write(t.Context(), "43")
			<-all
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(mails)
			assert.Len(t, slices.Compact(mails), len(mails))
		})
	}
}

// repeating delivers each message twice, as another transport may.
type repeating struct{ message.Subscriber }

func (r *repeating) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	in, err := r.Subscriber.Subscribe(ctx, topic)
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		for msg := range in {
			first := msg.Copy()
			first.SetContext(msg.Context())
			out <- first
			<-first.Acked()
			out <- msg
		}
	}()
	return out, err
}

func byPosition(_ context.Context, client *dynamodb.Client, handler *message.Handler, poison message.HandlerMiddleware) {
	retry := middleware.Retry{MaxRetries: 3, InitialInterval: 100 * time.Millisecond, Logger: watermill.NopLogger{}}
	positions, err := dedup.NewPositions(client, dedup.PositionsConfig{Group: "mails"})
	check(err)
	handler.AddMiddleware(positions.Middleware, poison, retry.Middleware)
}

func byKey(_ context.Context, client *dynamodb.Client, handler *message.Handler, poison message.HandlerMiddleware) {
	retry := middleware.Retry{MaxRetries: 3, InitialInterval: 100 * time.Millisecond, Logger: watermill.NopLogger{}}
	keys, err := dedup.NewKeys(client, dedup.KeysConfig{Group: "mails", Window: 24 * time.Hour})
	check(err)
	deduplicator := &middleware.Deduplicator{Repository: keys, KeyFactory: dedup.UUID, Timeout: 10 * time.Second}
	handler.AddMiddleware(deduplicator.Middleware, poison, retry.Middleware)
}
