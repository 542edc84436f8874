package process_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestAProcessRemembersAndCommands(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	state, version := w.saga(m, "o1")
	assert.Equal(t, Saga{Total: 5}, state)
	assert.EqualValues(t, 1, version)
	require.Len(t, w.sent, 1)
	assert.Equal(t, "ReserveCredit", w.sent[0].topic)
	assert.JSONEq(t, `{"Order":"o1","Total":5}`, w.sent[0].payload)
	assert.Equal(t, message.Metadata{
		"name": "ReserveCredit", "correlation_id": "request", "causation_id": "e1", "aggregate_id": "o1",
	}, w.sent[0].metadata)

	require.NoError(t, m.Handle(event(t.Context(), "e2", "account-9", CreditReserved{Order: "o1"})))
	state, _ = w.saga(m, "o1")
	assert.Equal(t, Saga{Total: 5, Reserved: true, Outcome: "approved"}, state)
	assert.Equal(t, []string{"ReserveCredit", "ApproveOrder"}, w.topics())

	w.pass(time.Hour)
	assert.Zero(t, w.fire(m), "the timeout was cancelled")
	assert.Equal(t, process.Stats{Steps: 2, Commands: 2, Polls: 1}, m.Stats())
}

func TestItsEventsTellWhatCausedThem(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	events := w.j.Events(t.Context(), aggregate.ID{Type: "saga", Value: "o1"}, 1, 1)
	for r, err := range events {
		require.NoError(t, err)
		assert.Equal(t, aggregate.Metadata{"correlation_id": "request", "causation_id": "e1"}, r.Metadata)
	}
}

func TestWhatComesAgainChangesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for range 3 {
		m := w.manager(w.client, w.config())
		require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
		_, version := w.saga(m, "o1")
		assert.EqualValues(t, 1, version)
	}
	assert.Equal(t, []string{"ReserveCredit"}, w.topics())
}

func TestCommandsThatCouldNotBeSentAreSentWithTheSameIDs(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(w *world, m *process.Manager[Saga]){
		"when the event comes again": func(w *world, m *process.Manager[Saga]) {
			require.NoError(w.t, m.Handle(event(w.t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
		},
		"after a while, though it never comes again": func(w *world, m *process.Manager[Saga]) {
			assert.Zero(w.t, w.fire(m))
			assert.Empty(w.t, w.sent, "not before whoever stored them has had the time")
			w.pass(31 * time.Second)
			assert.Zero(w.t, w.fire(m))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, reference := setup(t), setup(t)
			require.NoError(t, reference.manager(reference.client, reference.config()).Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
			w.setOffline(true)
			require.ErrorIs(t, w.manager(w.client, w.config()).Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})), errOffline)
			w.setOffline(false)
			again(w, w.manager(w.client, w.config()))
			assert.Equal(t, reference.sent, w.sent)
			w.pass(31 * time.Second)
			w.fire(w.manager(w.client, w.config()))
			assert.Len(t, w.sent, 1, "and then they are forgotten")
		})
	}
}

func TestATimeoutFiresOnceWhenItIsDue(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	w.topics()
	w.pass(deadline - time.Millisecond)
	assert.Zero(t, w.fire(m))
	w.pass(time.Millisecond)
	again := w.manager(w.client, w.config()) // after a restart
	assert.Equal(t, 1, w.fire(again))
	assert.Equal(t, []string{"RejectOrder"}, w.topics())
	state, version := w.saga(again, "o1")
	assert.Equal(t, "too late", state.Outcome)
	assert.EqualValues(t, 2, version)
	w.pass(time.Hour)
	assert.Zero(t, w.fire(m))
	assert.Empty(t, w.topics())
}

func TestATimeoutThatIsSetAgainIsMoved(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	w.pass(deadline / 2)
	require.NoError(t, m.Handle(event(t.Context(), "e2", "o1", OrderTouched{})))
	w.pass(deadline / 2)
	assert.Zero(t, w.fire(m))
	w.pass(deadline / 2)
	assert.Equal(t, 1, w.fire(m))
}

func TestATimeoutWhoseCommandsCouldNotBeSentHasThemSentLater(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	w.topics()
	w.pass(deadline)
	w.setOffline(true)
	_, err := m.Fire(t.Context())
	require.ErrorIs(t, err, errOffline)
	w.setOffline(false)
	w.pass(31 * time.Second)
	w.fire(m)
	assert.Equal(t, []string{"RejectOrder"}, w.topics())
	_, version := w.saga(m, "o1")
	assert.EqualValues(t, 2, version)
}

func TestWhatIsNoneOfItsBusinessIsIgnored(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	for name, msg := range map[string]*message.Message{
		"no reaction":               event(t.Context(), "e1", "o1", Begun{}),
		"no key":                    event(t.Context(), "e2", "o1", CreditReserved{}),
		"not begun, and no start":   event(t.Context(), "e3", "o1", CreditReserved{Order: "o1"}),
		"begun, and nothing to do":  event(t.Context(), "e4", "o1", OrderBroken{"nothing"}),
		"a timeout is not an event": event(t.Context(), "e5", "o1", Ended{}),
	} {
		require.NoError(t, m.Handle(msg), name)
	}
	assert.Equal(t, process.Stats{Ignored: 5}, m.Stats())

	require.NoError(t, m.Handle(event(t.Context(), "e6", "o1", OrderPlaced{})))
	require.NoError(t, m.Handle(event(t.Context(), "e7", "c", CreditReserved{Order: "o1"})))
	require.NoError(t, m.Handle(event(t.Context(), "e8", "o1", OrderTouched{})), "it has ended")
	_, version := w.saga(m, "o1")
	assert.EqualValues(t, 3, version)
}

func TestStepsWithFaultsAreRefusedAndStoreNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	for fault, want := range map[string]error{
		"fails": errNotNow, "unrecorded": process.ErrUnrecorded,
		"no duration": process.ErrInvalidStep, "past duration": process.ErrInvalidStep, "no time": process.ErrInvalidStep, "set twice": process.ErrInvalidStep,
		"nil command": process.ErrInvalidStep, "too large": process.ErrInvalidStep,
	} {
		require.ErrorIs(t, m.Handle(event(t.Context(), fault, "o1", OrderBroken{fault})), want, fault)
	}
	unknown := m.Handle(event(t.Context(), "unknown timeout", "o1", OrderBroken{"unknown timeout"}))
	require.ErrorAs(t, unknown, new(*process.UnknownTimeoutError))
	_, err := m.Repository().Load(t.Context(), "o1")
	require.ErrorIs(t, err, journal.ErrNotFound)
	require.ErrorIs(t, m.Handle(message.NewMessage("", nil)), process.ErrNoID)
	require.ErrorIs(t, m.Handle(nil), process.ErrNoID)
	malformed := event(t.Context(), "e", "o1", OrderPlaced{})
	malformed.Payload = []byte("{")
	require.ErrorContains(t, m.Handle(malformed), `decode "order.placed", event 7 of order-o1`)
}

func TestDefinitionsWithFaultsAreRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for want, d := range map[string]process.Definition[Saga]{
		"no reaction starts a process":                  process.Define(sagas),
		"reaction 1 is of no event type and no timeout": process.Define(sagas, process.Reaction[Saga]{}),
		`two reactions to the timeout "credit"`: process.Define(sagas,
			process.OnTimeout("credit", func(Saga, process.Input) (step, error) { return step{}, nil }),
			process.OnTimeout("credit", func(Saga, process.Input) (step, error) { return step{}, nil })),
		"EndsWhen is nil": definition.EndsWhen(nil),
	} {
		_, err := process.New(w.j, w.client, d, process.Config{})
		require.ErrorAs(t, err, new(*process.DefinitionError))
		require.ErrorContains(t, err, want)
	}
	_, err := process.New(w.j, w.client, process.Define(aggregate.Define[Saga]("saga")), process.Config{})
	require.ErrorAs(t, err, new(*aggregate.DefinitionError))
	_, err = process.New(w.j, w.client, definition, process.Config{Publisher: w})
	require.ErrorAs(t, err, new(*process.ConfigError))
	_, err = process.New(w.j, nil, definition, process.Config{})
	require.ErrorAs(t, err, new(*process.ConfigError))
}

// Whatever fails, each process ends in the state that its inputs lead to, and each of its commands
// is sent under a single id.
func TestNothingIsLostOrDoneTwiceWhateverFails(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 2, 3, 4} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			client := &flaky{Client: w.client, random: rand.New(rand.NewPCG(seed, 0))}
			clean := w.manager(w.client, w.config())
			j, err := journal.Open(t.Context(), client, journal.Config{})
			for err != nil {
				j, err = journal.Open(t.Context(), client, journal.Config{})
			}
			var managers atomic.Int32
			manager := func() *process.Manager[Saga] {
				config := w.config()
				config.Queues = 1 + int(managers.Add(1))%4
				m, err := process.New(j, client, definition, config)
				require.NoError(t, err)
				return m
			}
			random := rand.New(rand.NewPCG(seed, 1))
			const orders = 40
			inTime := map[string]bool{}
			var work sync.WaitGroup
			for n := range orders {
				order := fmt.Sprint("o", n)
				approved := random.IntN(2) == 0
				inTime[order] = approved
				work.Add(1)
				go func() {
					defer work.Done()
					until := func(msg func() *message.Message) {
						err := errCut
						for err != nil {
							err = manager().Handle(msg())
						}
						_ = manager().Handle(msg()) // the message is delivered again anyway
					}
					until(func() *message.Message { return event(t.Context(), "placed-"+order, order, OrderPlaced{n}) })
					if approved {
						until(func() *message.Message { return event(t.Context(), "reserved-"+order, "c", CreditReserved{order}) })
					}
				}()
			}
			for range 5 { // meanwhile, unsent commands are sent
				w.pass(7 * time.Second)
				_, _ = manager().Fire(t.Context())
			}
			work.Wait()
			for range 10 {
				w.pass(deadline)
				var both sync.WaitGroup
				for range 2 {
					both.Add(1)
					go func() {
						defer both.Done()
						_, _ = manager().Fire(t.Context())
					}()
				}
				both.Wait()
			}
			client.off = true
			for range 3 {
				w.pass(deadline)
				w.fire(manager())
			}
			commands := map[string]map[string]bool{}
			for _, s := range w.sent {
				order := s.metadata.Get("aggregate_id") + " " + s.topic
				if commands[order] == nil {
					commands[order] = map[string]bool{}
				}
				commands[order][s.uuid] = true
			}
			for order, approved := range inTime {
				state, version := w.saga(clean, order)
				want, outcome, events := []string{"ReserveCredit", "RejectOrder"}, "too late", 2
				if approved {
					want, outcome, events = []string{"ReserveCredit", "ApproveOrder"}, "approved", 3
				}
				assert.Equal(t, outcome, state.Outcome, order)
				assert.EqualValues(t, events, version, order)
				for _, topic := range want {
					assert.Len(t, commands[order+" "+topic], 1, "%s of %s", topic, order)
				}
			}
			assert.Len(t, commands, 2*orders, strings.Join(w.topics(), " "))
			assert.Empty(t, w.open(process.BacklogQuery{}), "all have ended")
		})
	}
}

func TestWhatWasStoredIsSentThoughTheProcessHasEnded(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.manager(w.client, w.config())
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	w.setOffline(true)
	last := event(t.Context(), "e2", "c", CreditReserved{Order: "o1"})
	require.ErrorIs(t, m.Handle(last), errOffline)
	w.setOffline(false)
	require.NoError(t, m.Handle(last))
	assert.Equal(t, []string{"ReserveCredit", "ApproveOrder"}, w.topics())
}

func TestAPanicOfAReactionToATimeoutIsAnError(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := process.Define(sagas,
		process.On(byID, func(Saga, OrderPlaced, process.Input) (step, error) {
			return begun.SetTimeout("bomb", time.Second), nil
		}).Starts(),
		process.OnTimeout("bomb", func(Saga, process.Input) (step, error) { panic("boom") }))
	m, err := process.New(w.j, w.client, d, w.config())
	require.NoError(t, err)
	require.NoError(t, m.Handle(event(t.Context(), "e1", "o1", OrderPlaced{})))
	w.pass(time.Second)
	fired, err := m.Fire(t.Context())
	require.ErrorContains(t, err, "boom")
	assert.Zero(t, fired)
	w.pass(31 * time.Second)
	_, err = m.Fire(t.Context())
	require.ErrorContains(t, err, "boom", "it is due again")
}

// Notes is a state with shared memory.
type Notes struct{ Seen map[string]bool }

type Noted struct{ What string }

func (Noted) EventType() string { return "noted" }
func (e Noted) Apply(n *Notes) {
	if n.Seen == nil {
		n.Seen = map[string]bool{}
	}
	n.Seen[e.What] = true
}

func TestAReactionCannotSpoilTheState(t *testing.T) {
	t.Parallel()
	w := setup(t)
	d := process.Define(aggregate.Define[Notes]("notes", Noted{}),
		process.On(byID, func(n Notes, _ OrderPlaced, in process.Input) (process.Step[Notes], error) {
			if n.Seen != nil {
				n.Seen["what nobody recorded"] = true
			}
			return process.Record(Noted{in.ID}), nil
		}).Starts())
	m, err := process.New(w.j, w.client, d, w.config())
	require.NoError(t, err)
	for _, id := range []string{"e1", "e2"} {
		require.NoError(t, m.Handle(event(t.Context(), id, "o1", OrderPlaced{})))
	}
	notes, err := m.Repository().Load(t.Context(), "o1")
	require.NoError(t, err)
	assert.Equal(t, Notes{Seen: map[string]bool{"e1": true, "e2": true}}, notes.State)
}

// meddling calls a function when a row is leased.
type meddling struct {
	*dynamodb.Client
	leased func()
}

func (m meddling) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := m.Client.UpdateItem(ctx, in, o...)
	m.leased()
	return out, err
}

func TestATimeoutThatIsMovedWhileItFiresDoesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	other := w.manager(w.client, w.config())
	require.NoError(t, other.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 5})))
	m := w.manager(meddling{w.client, func() {
		assert.NoError(t, other.Handle(event(t.Context(), "e2", "o1", OrderTouched{})))
	}}, w.config())
	w.pass(deadline)
	w.topics()
	w.fire(m)
	state, _ := w.saga(other, "o1")
	assert.Empty(t, state.Outcome)
	assert.Empty(t, w.topics())
	w.pass(deadline)
	assert.Equal(t, 1, w.fire(other), "it fires when it is due then")
	assert.Equal(t, []string{"RejectOrder"}, w.topics())
}

// orderImported is an old event that stands for two current ones.
type orderImported struct{ Total int }

func (orderImported) EventType() string { return "order.imported" }

type orderNoted struct{}

func (orderNoted) EventType() string { return "order.noted" }
func (orderNoted) Apply(*struct{})   {}

var importedOrders = aggregate.Define[struct{}]("order", orderNoted{}).WithUpcasters(
	aggregate.UpcastRaw("order.imported", func(payload []byte) ([]aggregate.EncodedEvent, error) {
		return []aggregate.EncodedEvent{
			{Type: "order.placed", Payload: payload},
			{Type: "credit.reserved", Payload: []byte(`{"Order":"o1"}`)},
		}, nil
	}),
)

// The subscriber can upcast instead of the process manager, or both can, and either can start to at
// any time.
func TestAManagerHandlesAllMessagesThatAnEventHasBecome(t *testing.T) {
	t.Parallel()
	w := setup(t)
	testjournal.Append(t, w.j, storage.Commit{
		Aggregate: aggregate.ID{Type: "order", Value: "o1"}, Events: []storage.Event{{Type: "order.imported", Payload: []byte(`{"Order":"o1","Total":5}`)}},
	})
	ofToday := w.config()
	ofToday.Definitions = []aggregate.AnyDefinition{importedOrders}
	var versions []uint64
	for group, config := range map[string]process.Config{"subscriber": w.config(), "both": ofToday} {
		m := w.manager(w.client, config)
		sub, err := subscriber.NewSubscriber(subscriber.Config{
			Journal: w.j, ConsumerGroup: group, Definitions: []aggregate.AnyDefinition{importedOrders},
		}, nil)
		require.NoError(t, err)
		messages, err := sub.Subscribe(t.Context(), "order")
		require.NoError(t, err)
		for range 2 {
			msg := <-messages
			require.NoError(t, m.Handle(msg))
			msg.Ack()
		}
		require.NoError(t, sub.Close())
		state, version := w.saga(m, "o1")
		assert.Equal(t, Saga{Total: 5, Reserved: true, Outcome: "approved"}, state, group)
		versions = append(versions, version)
	}
	assert.Equal(t, versions[0], versions[1], "the second group repeats them")
}

func TestEventsOfOldTypesComeAsThoseOfToday(t *testing.T) {
	t.Parallel()
	w := setup(t)
	orders := importedOrders
	config := w.config()
	config.Definitions = []aggregate.AnyDefinition{orders}
	m := w.manager(w.client, config)
	msg := event(t.Context(), "e1", "o1", orderImported{Total: 5})
	require.NoError(t, m.Handle(msg))
	state, version := w.saga(m, "o1")
	assert.Equal(t, Saga{Total: 5, Reserved: true, Outcome: "approved"}, state)
	assert.Equal(t, []string{"ReserveCredit", "ApproveOrder"}, w.topics())

	require.NoError(t, m.Handle(msg))
	_, again := w.saga(m, "o1")
	assert.Equal(t, version, again, "each part was handled before")

	config.Definitions = []aggregate.AnyDefinition{orders, orders}
	_, err := process.New(w.j, w.client, definition, config)
	require.ErrorAs(t, err, new(*process.ConfigError))
}

func TestARecordOfASkippedEventHasTheErrorOfTheReaction(t *testing.T) {
	t.Parallel()
	w := setup(t)
	order := aggregate.ID{Type: "order", Value: "o1"}
	testjournal.Append(t, w.j, storage.Commit{
		Aggregate: order, Events: []storage.Event{{Type: "order.broken", Payload: []byte(`{"Fault":"fails"}`)}},
	})
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: w.j, ConsumerGroup: "sagas", Failures: subscriber.Skip(1)}, nil)
	require.NoError(t, err)
	messages, err := sub.Subscribe(t.Context(), "order")
	require.NoError(t, err)
	msg := <-messages
	require.ErrorIs(t, w.manager(w.client, w.config()).Handle(msg), errNotNow)
	msg.Nack()
	require.Eventually(t, func() bool { return sub.Stats().Skipped == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, sub.Close())
	for skipped, err := range groups.Of(w.j, "sagas", "order").Skipped(t.Context(), aggregate.ID{}, 0) {
		require.NoError(t, err)
		assert.Contains(t, skipped.Reason, errNotNow.Error())
	}
}
