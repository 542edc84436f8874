package suite_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/protobuf"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// received holds the messages of handlers, in their order.
type received struct {
	mu sync.Mutex
	by map[string][]string
}

func (r *received) add(handler string, v any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string][]string{}
	}
	r.by[handler] = append(r.by[handler], fmt.Sprint(v))
}

func (r *received) equals(handler string, want ...string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Equal(r.by[handler], want)
}

type noted struct{ Text string }

type counted struct{ N int }

// processors runs, on one topic, an EventProcessor with a handler for each of two types and an
// EventGroupProcessor with both in one group.
func processors[A, B any](t *testing.T, s store, topic string, marshaler cqrs.CommandEventMarshaler, showA func(*A) string, showB func(*B) string) *received {
	t.Helper()
	got := &received{}
	handlers := func(prefix string) (cqrs.EventHandler, cqrs.EventHandler) {
		return cqrs.NewEventHandler(prefix+"a", func(_ context.Context, a *A) error {
				got.add(prefix+"a", showA(a))
				return nil
			}), cqrs.NewEventHandler(prefix+"b", func(_ context.Context, b *B) error {
				got.add(prefix+"b", showB(b))
				return nil
			})
	}
	startRouter(t, func(router *message.Router) {
		single, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{
			GenerateSubscribeTopic: func(cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) { return topic, nil },
			SubscriberConstructor: func(p cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
				_, sub := s.pubSub(t, publisher.Config{}, subscriber.Config{
					ConsumerGroup: p.HandlerName,
					EventTypes:    []string{p.EventName}, // so that no type is unknown
				})
				return sub, nil
			},
			Marshaler: marshaler,
		})
		require.NoError(t, err)
		a, b := handlers("single-")
		require.NoError(t, single.AddHandlers(a, b))

		group, err := cqrs.NewEventGroupProcessorWithConfig(router, cqrs.EventGroupProcessorConfig{
			GenerateSubscribeTopic: func(cqrs.EventGroupProcessorGenerateSubscribeTopicParams) (string, error) { return topic, nil },
			SubscriberConstructor: func(p cqrs.EventGroupProcessorSubscriberConstructorParams) (message.Subscriber, error) {
				_, sub := s.ordered(t, p.EventGroupName)
				return sub, nil
			},
			// Every type has a handler, so none is unknown.
			Marshaler: marshaler,
		})
		require.NoError(t, err)
		a, b = handlers("group-")
		require.NoError(t, group.AddHandlersGroup("both", a, b))
	})
	return got
}

func handledByBoth(t *testing.T, got *received, a, b []string) {
	t.Helper()
	eventually(t, "the handlers of both processors have all of theirs", func() bool {
		return got.equals("single-a", a...) && got.equals("single-b", b...) && got.equals("group-a", a...) && got.equals("group-b", b...)
	})
}

func showInt(v *wrapperspb.Int64Value) string   { return fmt.Sprint(v.GetValue()) }
func showText(v *wrapperspb.StringValue) string { return v.GetValue() }

func TestWhatAnEventBusPublishesIsHandledWithEachMarshaler(t *testing.T) {
	t.Parallel()
	publish := func(t *testing.T, s store, marshaler cqrs.CommandEventMarshaler, events ...any) {
		pub, _ := s.ordered(t, "bus")
		bus, err := cqrs.NewEventBusWithConfig(pub, cqrs.EventBusConfig{
			GeneratePublishTopic: func(cqrs.GenerateEventPublishTopicParams) (string, error) { return "notes", nil },
			Marshaler:            marshaler,
		})
		require.NoError(t, err)
		for _, event := range events {
			require.NoError(t, bus.Publish(t.Context(), event))
		}
	}
	for name, marshaler := range map[string]cqrs.CommandEventMarshaler{
		"JSON":                        cqrs.JSONMarshaler{},
		"JSON named as the journal":   cqrs.JSONMarshaler{GenerateName: publisher.EventName},
		"JSON named by the component": cqrs.JSONMarshaler{GenerateName: cqrs.StructName},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			got := processors(t, s, "notes", marshaler,
				func(n *noted) string { return n.Text }, func(c *counted) string { return fmt.Sprint(c.N) })
			publish(t, s, marshaler, noted{"first"}, &noted{"second"}, counted{3})
			handledByBoth(t, got, []string{"first", "second"}, []string{"3"})
		})
	}
	for name, marshaler := range map[string]cqrs.CommandEventMarshaler{
		"Proto":    cqrs.ProtoMarshaler{},
		"Protobuf": cqrs.ProtobufMarshaler{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			got := processors(t, s, "notes", marshaler, showText, showInt)
			publish(t, s, marshaler, wrapperspb.String("first"), wrapperspb.Int64(7), wrapperspb.String(""))
			handledByBoth(t, got, []string{"first", ""}, []string{"7"})
		})
	}
}

// The events of a purse are messages of another package, in wrappers.
type purse struct{ Coins int64 }

type coined struct{ *wrapperspb.Int64Value }

type labelled struct{ *wrapperspb.StringValue }

func (coined) EventType() string    { return "purse.coined.v1" }
func (*labelled) EventType() string { return "purse.labelled.v1" }
func (e coined) Apply(p *purse)     { p.Coins += e.GetValue() }
func (*labelled) Apply(*purse)      {}

var purses = aggregate.Define[purse]("purse", coined{}, &labelled{}).WithCodec(protobuf.Codec{})

func TestProtocolBuffersOfARepositoryAreHandledWithEachMarshaler(t *testing.T) {
	t.Parallel()
	names := publisher.EventNames(coined{}, &labelled{})
	for name, marshaler := range map[string]cqrs.CommandEventMarshaler{
		"Proto":    cqrs.ProtoMarshaler{GenerateName: names},
		"Protobuf": cqrs.ProtobufMarshaler{GenerateName: names},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			j, err := journal.Open(t.Context(), s.client, journal.Config{})
			require.NoError(t, err)
			repo, err := repository.New(j, purses, repository.Config{})
			require.NoError(t, err)
			_, err = repo.Execute(t.Context(), "1", func(purse) (aggregate.Events[purse], error) {
				return aggregate.Events[purse]{coined{wrapperspb.Int64(5)}, &labelled{wrapperspb.String("mine")}, coined{wrapperspb.Int64(0)}}, nil
			})
			require.NoError(t, err)

			got := processors(t, s, "purse", marshaler, showInt, showText)
			handledByBoth(t, got, []string{"5", "0"}, []string{"mine"})
		})
	}
}
