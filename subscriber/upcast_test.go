package subscriber_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

type basket struct{}

type itemAdded struct{ Item string }

func (itemAdded) EventType() string { return "basket.item_added.v2" }
func (itemAdded) Apply(*basket)     {}

type itemsAdded struct{ Items []string } // as an old program wrote them

var baskets = aggregate.Define[basket]("basket", itemAdded{}).WithUpcasters(
	aggregate.Split("basket.items_added.v1", func(old itemsAdded) (events []itemAdded, err error) {
		for _, item := range old.Items {
			events = append(events, itemAdded{item})
		}
		return events, nil
	}),
)

// oldBasket has a journal with an event of today, one that has become three, one that has become
// none, one of another type, and one of today.
func oldBasket(t *testing.T) *journal.Journal {
	t.Helper()
	client := dynamotest.New(t).Client()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 1}))
	j, err := journal.Open(t.Context(), client, journal.Config{})
	require.NoError(t, err)
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	require.NoError(t, err)
	for _, event := range [][2]string{
		{"basket.item_added.v2", `{"Item":"a"}`},
		{"basket.items_added.v1", `{"Items":["b","c","d"]}`},
		{"basket.items_added.v1", `{"Items":[]}`},
		{"basket.weighed.v1", `{}`},
		{"basket.item_added.v2", `{"Item":"e"}`},
	} {
		msg := message.NewMessage(watermill.NewUUID(), []byte(event[1]))
		msg.Metadata.Set(publisher.AggregateIDKey, "1")
		msg.Metadata.Set(publisher.NameKey, event[0])
		require.NoError(t, p.Publish("basket", msg))
	}
	require.NoError(t, p.Close())
	return j
}

func ofToday(j *journal.Journal) subscriber.Config {
	return subscriber.Config{
		Journal: j, ConsumerGroup: "g", Definitions: []aggregate.AnyDefinition{baskets},
		EventTypes: []string{itemAdded{}.EventType()}, NackResendSleep: -1,
	}
}

func TestHandlersGetTheEventsOfToday(t *testing.T) {
	t.Parallel()
	j := oldBasket(t)
	router, err := message.NewRouter(message.RouterConfig{}, nil)
	require.NoError(t, err)
	processor, err := cqrs.NewEventGroupProcessorWithConfig(router, cqrs.EventGroupProcessorConfig{
		Marshaler: cqrs.JSONMarshaler{GenerateName: publisher.EventName},
		GenerateSubscribeTopic: func(cqrs.EventGroupProcessorGenerateSubscribeTopicParams) (string, error) {
			return "basket", nil
		},
		SubscriberConstructor: func(cqrs.EventGroupProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return subscriber.NewSubscriber(ofToday(j), nil)
		},
	})
	require.NoError(t, err)
	items, parts := make(chan string, 10), make(chan string, 10)
	var once sync.Once
	require.NoError(t, processor.AddHandlersGroup("items", cqrs.NewGroupEventHandler(func(ctx context.Context, e *itemAdded) (err error) {
		if e.Item == "c" {
			once.Do(func() { err = errors.New("not yet") })
		}
		if err != nil {
			return err
		}
		items <- e.Item
		parts <- cqrs.OriginalMessageFromCtx(ctx).Metadata.Get(subscriber.MetadataPart)
		return nil
	})))
	go func() { _ = router.Run(context.WithoutCancel(t.Context())) }()
	for i, want := range []string{"a", "b", "c", "d", "e"} { // c alone comes again
		assert.Equal(t, want, <-items)
		assert.Equal(t, []string{"", "1/3", "2/3", "3/3", ""}[i], <-parts)
	}
	require.NoError(t, router.Close())
}

func TestMessagesOfOneEventAreToldApart(t *testing.T) {
	t.Parallel()
	j := oldBasket(t)
	messages, stop := subscribeTo(t, ofToday(j))
	defer stop()
	keys, ids := map[string]bool{}, map[string]bool{}
	for i := range 5 {
		msg := <-messages
		key, err := dedup.Event(msg)
		require.NoError(t, err)
		keys[key], ids[msg.UUID] = true, true
		record, ok := subscriber.RecordFromContext(msg.Context())
		require.True(t, ok)
		assert.Equal(t, itemAdded{}.EventType(), record.EventType)
		_, ok = subscriber.PositionFromContext(msg.Context())
		assert.Equal(t, i == 0 || i == 4, ok, "one of several has no position")
		msg.Ack()
	}
	assert.Len(t, keys, 5)
	assert.Len(t, ids, 5)
}

func TestPoisonOfOneOfSeveralMessagesLosesNoOther(t *testing.T) {
	t.Parallel()
	j := oldBasket(t)
	poison := gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: 10}, nil)
	poisoned, err := poison.Subscribe(t.Context(), "poison")
	require.NoError(t, err)
	config := ofToday(j)
	config.Failures = subscriber.PoisonQueue(1, poison, "poison")
	messages, stop := subscribeTo(t, config)
	defer stop()
	var got []string
	for range 5 {
		msg := <-messages
		if got = append(got, string(msg.Payload)); got[len(got)-1] == `{"Item":"c"}` {
			msg.Nack()
		} else {
			msg.Ack()
		}
	}
	assert.Equal(t, []string{`{"Item":"a"}`, `{"Item":"b"}`, `{"Item":"c"}`, `{"Item":"d"}`, `{"Item":"e"}`}, got)
	assert.JSONEq(t, `{"Item":"c"}`, string((<-poisoned).Payload))
	require.NoError(t, poison.Close())
	assert.Empty(t, poisoned)
}

func TestPositionsOfDedupCountTheLastMessageOfAnEvent(t *testing.T) {
	t.Parallel()
	j := oldBasket(t)
	client := dynamotest.New(t).Client()
	require.NoError(t, dedup.CreateTable(t.Context(), client, dedup.TableConfig{}))
	positions, err := dedup.NewPositions(client, dedup.PositionsConfig{Group: "g", Gaps: dedup.PassGaps})
	require.NoError(t, err)
	var handled []string
	handle := positions.Middleware(func(msg *message.Message) ([]*message.Message, error) {
		handled = append(handled, string(msg.Payload))
		return nil, nil
	})
	messages, stop := subscribeTo(t, ofToday(j))
	defer stop()
	for range 5 {
		msg := <-messages
		for range 2 { // the second is a duplicate
			_, err := handle(msg)
			require.NoError(t, err)
		}
		msg.Ack()
	}
	last, err := positions.Last(t.Context(), aggregate.ID{Type: "basket", Value: "1"})
	require.NoError(t, err)
	assert.EqualValues(t, 5, last)
	assert.Equal(t, []string{
		`{"Item":"a"}`, `{"Item":"b"}`, `{"Item":"b"}`, `{"Item":"c"}`, `{"Item":"c"}`, `{"Item":"d"}`, `{"Item":"e"}`,
	}, handled, "those before the last of an event may be handled again")
}

func TestDefinitionsThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	config := ofToday(oldBasket(t))
	config.Definitions = append(config.Definitions, baskets)
	_, err := subscriber.NewSubscriber(config, nil)
	var refused *subscriber.ConfigError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "Definitions", refused.Field)
}

func subscribeTo(t *testing.T, config subscriber.Config) (<-chan *message.Message, func()) {
	t.Helper()
	sub, err := subscriber.NewSubscriber(config, nil)
	require.NoError(t, err)
	messages, err := sub.Subscribe(context.WithoutCancel(t.Context()), "basket")
	require.NoError(t, err)
	return messages, func() { assert.NoError(t, sub.Close()) }
}
