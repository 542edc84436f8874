package suite_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// shape is a way to run the universal suite.
type shape struct {
	features tests.Features
	pubSub   tests.PubSubConstructor
	inGroup  tests.ConsumerGroupPubSubConstructor
}

func (s store) inOrder() shape {
	return shape{
		features: tests.Features{ConsumerGroups: true, GuaranteedOrder: true, Persistent: true},
		pubSub:   func(t *testing.T) (message.Publisher, message.Subscriber) { return s.ordered(t, "suite") },
		inGroup:  s.ordered,
	}
}

func (s store) inAnyOrder() shape {
	return shape{
		features: tests.Features{ConsumerGroups: true, Persistent: true},
		pubSub:   func(t *testing.T) (message.Publisher, message.Subscriber) { return s.unordered(t, "suite") },
		inGroup:  s.unordered,
	}
}

func (s store) inNewGroups() shape {
	return shape{
		features: tests.Features{NewSubscriberReceivesOldMessages: true, GuaranteedOrder: true, Persistent: true},
		pubSub:   s.newGroup,
	}
}

func TestPubSubIsOrderedWithDefaultSettings(t *testing.T) { runShape(t, store.inOrder) }

func TestPubSubWithAnAggregateForEachMessage(t *testing.T) { runShape(t, store.inAnyOrder) }

func TestPubSubGivesOldMessagesToNewGroups(t *testing.T) { runShape(t, store.inNewGroups) }

func runShape(t *testing.T, shapeOf func(store) shape) {
	t.Helper()
	t.Parallel()
	inLayouts(t, func(t *testing.T, layout journal.Layout) {
		s := shapeOf(storeIn(t, testdb.Client(t), layout))
		tests.TestPubSub(t, s.features, s.pubSub, s.inGroup)
	})
}
