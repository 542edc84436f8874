package suite_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
)

type account struct{ Balance int }

type deposited struct {
	Account string
	Amount  int
}

type closed struct{ Account string }

func (deposited) EventType() string  { return "account.deposited.v1" }
func (closed) EventType() string     { return "account.closed.v1" }
func (e deposited) Apply(a *account) { a.Balance += e.Amount }
func (closed) Apply(a *account)      { a.Balance = 0 }

var accounts = aggregate.Define[account]("account", deposited{}, closed{})

// byEventType names events as the journal does.
var byEventType = cqrs.JSONMarshaler{GenerateName: publisher.EventName}

// totals counts the events that the typed handlers have seen.
type totals struct {
	mu      sync.Mutex
	balance map[string]int
	closed  []string
}

func (a *totals) deposited(_ context.Context, e *deposited) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.balance[e.Account] += e.Amount
	return nil
}

func (a *totals) close(_ context.Context, e *closed) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = append(a.closed, e.Account)
	return nil
}

func (a *totals) have(balance map[string]int, closed ...string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return assert.ObjectsAreEqual(balance, a.balance) && assert.ObjectsAreEqual(closed, a.closed)
}

// startProcessor runs a handler for each type, each in its own group. A topic has the events of all
// types of its aggregates, so a handler acks those of other types.
func startProcessor(t *testing.T, s store) *totals {
	t.Helper()
	seen := &totals{balance: map[string]int{}}
	startRouter(t, func(router *message.Router) {
		processor, err := cqrs.NewEventProcessorWithConfig(router, cqrs.EventProcessorConfig{
			GenerateSubscribeTopic: func(p cqrs.EventProcessorGenerateSubscribeTopicParams) (string, error) {
				topic, _, _ := strings.Cut(p.EventName, ".")
				return topic, nil
			},
			SubscriberConstructor: func(p cqrs.EventProcessorSubscriberConstructorParams) (message.Subscriber, error) {
				_, sub := s.ordered(t, p.HandlerName)
				return sub, nil
			},
			AckOnUnknownEvent: true,
			Marshaler:         byEventType,
		})
		require.NoError(t, err)
		require.NoError(t, processor.AddHandlers(
			cqrs.NewEventHandler("balances", seen.deposited),
			cqrs.NewEventHandler("closed-accounts", seen.close),
		))
	})
	return seen
}

func TestTypedHandlersOfCQRSTakeTheEventsOfARepository(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	j, err := journal.Open(t.Context(), s.client, journal.Config{})
	require.NoError(t, err)
	repo, err := repository.New(j, accounts, repository.Config{})
	require.NoError(t, err)
	execute := func(id string, events ...aggregate.Event[account]) {
		_, err := repo.Execute(t.Context(), id, func(account) (aggregate.Events[account], error) { return events, nil })
		require.NoError(t, err)
	}

	seen := startProcessor(t, s)
	execute("alice", deposited{"alice", 10}, deposited{"alice", 20})
	execute("bob", deposited{"bob", 5})
	execute("alice", closed{"alice"})

	eventually(t, "both handlers have all of theirs", func() bool {
		return seen.have(map[string]int{"alice": 30, "bob": 5}, "alice")
	})
}

func TestEventsOfAnEventBusAreEventsOfARepository(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	pub, _ := s.ordered(t, "bus")
	bus, err := cqrs.NewEventBusWithConfig(pub, cqrs.EventBusConfig{
		GeneratePublishTopic: func(cqrs.GenerateEventPublishTopicParams) (string, error) { return "account", nil },
		OnPublish: func(p cqrs.OnEventSendParams) error {
			p.Message.Metadata.Set(publisher.AggregateIDKey, "alice")
			return nil
		},
		Marshaler: byEventType,
	})
	require.NoError(t, err)

	seen := startProcessor(t, s)
	require.NoError(t, bus.Publish(t.Context(), deposited{"alice", 10}))
	require.NoError(t, bus.Publish(t.Context(), &deposited{"alice", 1}))

	eventually(t, "the handler has both", func() bool { return seen.have(map[string]int{"alice": 11}) })
	j, err := journal.Open(t.Context(), s.client, journal.Config{})
	require.NoError(t, err)
	repo, err := repository.New(j, accounts, repository.Config{})
	require.NoError(t, err)
	alice, err := repo.Load(t.Context(), "alice")
	require.NoError(t, err)
	assert.Equal(t, 11, alice.State.Balance)
	assert.EqualValues(t, 2, alice.Version)
}
