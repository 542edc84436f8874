package subscriber_test

import (
	"context"
	"errors"
	"strings"
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
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/dedup"
)

type basket struct{}

type itemAdded struct{ Item string }

func (itemAdded) EventType() string { return "basket.item_added.v2" }
func (itemAdded) Apply(*basket)     {}

type itemsAdded struct{ Items []string } // as an old program has written them

type itemWeighed struct{}

func (itemWeighed) EventType() string { return "basket.weighed.v1" }
func (itemWeighed) Apply(*basket)     {}

var baskets = aggregate.Define[basket]("basket", itemAdded{}).WithUpcasters(
	aggregate.Split("basket.items_added.v1", func(old itemsAdded) (events []itemAdded, err error) {
		for _, item := range old.Items {
			events = append(events, itemAdded{item})
		}
		return events, nil
	}),
)

// oldBasket creates a journal with a current event, one that becomes three, one that becomes none,
// one of another type, and a current one.
func oldBasket(t *testing.T) *journal.Journal {
	t.Helper()
	j := testjournal.New(t, dynamotest.New(t).Client(), journal.Config{Layout: journal.Classic, Shards: 1})
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

func TestHandlersReceiveCurrentEvents(t *testing.T) {
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
		parts <- cqrs.OriginalMessageFromCtx(ctx).Metadata.Get(subscriber.PartKey)
		return nil
	})))
	go func() { _ = router.Run(context.WithoutCancel(t.Context())) }()
	for i, want := range []string{"a", "b", "c", "d", "e"} { // only c is delivered again
		assert.Equal(t, want, <-items)
		assert.Equal(t, []string{"", "1/3", "2/3", "3/3", ""}[i], <-parts)
	}
	require.NoError(t, router.Close())
}

func TestMessagesOfOneEventAreDistinguishable(t *testing.T) {
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

func TestPositionsOfDedupRefuseOneOfSeveralMessages(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	require.NoError(t, dedup.CreateTable(t.Context(), client, dedup.TableConfig{}))
	positions, err := dedup.NewPositions(client, dedup.PositionsConfig{Group: "g"})
	require.NoError(t, err)
	handle := positions.Middleware(func(*message.Message) ([]*message.Message, error) { return nil, nil })
	messages, stop := subscribeTo(t, ofToday(oldBasket(t)))
	defer stop()
	for i := range 2 {
		msg := <-messages
		_, err := handle(msg)
		if i == 0 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, dedup.ErrSplit)
		}
		msg.Ack()
	}
}

func TestAPartOfAnUnrequestedTypeIsNotCounted(t *testing.T) {
	t.Parallel()
	split := aggregate.Define[basket]("basket", itemAdded{}).WithUpcasters(
		aggregate.Split("basket.items_added.v1", func(itemsAdded) ([]aggregate.Event[basket], error) {
			return []aggregate.Event[basket]{itemWeighed{}, itemAdded{"x"}}, nil
		}),
	)
	config := ofToday(oldBasket(t))
	config.Definitions = []aggregate.AnyDefinition{split}
	messages, stop := subscribeTo(t, config)
	defer stop()
	for i := range 4 {
		msg := <-messages
		assert.Empty(t, msg.Metadata.Get(subscriber.PartKey))
		_, ok := subscriber.PositionFromContext(msg.Context())
		assert.True(t, ok)
		if i == 1 || i == 2 {
			assert.JSONEq(t, `{"Item":"x"}`, string(msg.Payload))
			assert.True(t, strings.HasSuffix(msg.UUID, "/2"), "as a process manager names it")
		}
		msg.Ack()
	}
}

func TestAnUpcasterThatPanicsIsAFailureOfItsEvent(t *testing.T) {
	t.Parallel()
	config := ofToday(oldBasket(t))
	config.Definitions = []aggregate.AnyDefinition{aggregate.Define[basket]("basket", itemAdded{}).WithUpcasters(
		aggregate.Split("basket.items_added.v1", func(itemsAdded) ([]itemAdded, error) { panic("a bug") }),
	)}
	config.Failures = subscriber.Skip(1)
	messages, stop := subscribeTo(t, config)
	defer stop()
	for _, want := range []string{"a", "e"} {
		msg := <-messages
		assert.JSONEq(t, `{"Item":"`+want+`"}`, string(msg.Payload))
		msg.Ack()
	}
}

func TestPoisonedPartsThatCannotBeMessagesAreDistinguishable(t *testing.T) {
	t.Parallel()
	poison := gochannel.NewGoChannel(gochannel.Config{OutputChannelBuffer: 10}, nil)
	poisoned, err := poison.Subscribe(t.Context(), "poison")
	require.NoError(t, err)
	config := ofToday(oldBasket(t))
	config.Failures = subscriber.PoisonQueue(1, poison, "poison")
	config.Unmarshaler = refusing{}
	_, stop := subscribeTo(t, config)
	defer stop()
	ids, parts := map[string]bool{}, []string{}
	for range 5 {
		msg := <-poisoned
		ids[msg.UUID], parts = true, append(parts, msg.Metadata.Get(subscriber.PartKey))
		msg.Ack()
	}
	assert.Len(t, ids, 5)
	// The queue does not keep the order.
	assert.ElementsMatch(t, []string{"", "1/3", "2/3", "3/3", ""}, parts)
}

type refusing struct{}

func (refusing) Unmarshal(*journal.Record) (*message.Message, error) {
	return nil, errors.New("no message")
}

// The same holds if the journal has stored events without their types, as programs of the
// event-store-adapter family do.
func TestEventsThatAreHandledTogetherAreCurrentOnes(t *testing.T) {
	t.Parallel()
	for name, types := range map[string][2]string{
		"with types":    {"basket.item_added.v2", "basket.items_added.v1"},
		"without types": {},
	} {
		client := dynamotest.New(t).Client()
		require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Classic, Shards: 1}))
		j := testjournal.Open(t, client, journal.Config{EventType: func(r *journal.Record) (string, error) {
			if strings.Contains(string(r.Payload), "Items") {
				return "basket.items_added.v1", nil
			}
			return "basket.item_added.v2", nil
		}})
		testjournal.Append(t, j, storage.Commit{Aggregate: aggregate.ID{Type: "basket", Value: "1"}, Events: []storage.Event{
			{ID: "1", Type: types[0], Payload: []byte(`{"Item":"a"}`)}, {ID: "2", Type: types[1], Payload: []byte(`{"Items":["b"]}`)},
		}})
		messages, stop := subscribeTo(t, ofToday(j))
		msg := <-messages
		position, ok := subscriber.PositionFromContext(msg.Context())
		require.True(t, ok)
		err := position.CommitAhead(msg.Context(), 10, func(_ context.Context, _ subscriber.Advance, records []*journal.Record) error {
			assert.Len(t, records, 1, name)
			return errors.New("not now")
		})
		require.Error(t, err)
		msg.Nack()
		for _, want := range []string{`{"Item":"a"}`, `{"Item":"b"}`} {
			msg = <-messages
			assert.JSONEq(t, want, string(msg.Payload), name)
			msg.Ack()
		}
		stop()
	}
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
