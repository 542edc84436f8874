package policies_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/policies"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 2 * time.Minute

var (
	lines   = []order.Line{{Name: "Naan", Quantity: 2, PriceCents: 300}}
	details = order.Details{ConsumerID: "ada", Restaurant: "Ajanta", Lines: lines}
)

// fixture is a database with the three services, whose policies handle messages one at a time.
type fixture struct {
	t          *testing.T
	journal    *journal.Journal
	orders     *repository.Repository[order.Order]
	tickets    *repository.Repository[ticket.Ticket]
	deliveries *repository.Repository[delivery.Delivery]
	policies   policies.Policies
	ofOrders   <-chan *message.Message
	ofTickets  <-chan *message.Message
}

func setup(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t}
	client := testdb.Client(t)
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Packed, Shards: 1}))
	var err error
	f.journal, err = journal.Open(t.Context(), client, journal.Config{})
	require.NoError(t, err)
	f.orders, err = repository.New(f.journal, order.Definition, repository.Config{})
	require.NoError(t, err)
	f.tickets, err = repository.New(f.journal, ticket.Definition, repository.Config{})
	require.NoError(t, err)
	f.deliveries, err = repository.New(f.journal, delivery.Definition, repository.Config{})
	require.NoError(t, err)
	f.policies = policies.Policies{Orders: f.orders, Tickets: f.tickets, Deliveries: f.deliveries}
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: f.journal, ConsumerGroup: "policies"}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sub.Close()) })
	f.ofOrders, err = sub.Subscribe(context.WithoutCancel(t.Context()), order.Definition.Type())
	require.NoError(t, err)
	f.ofTickets, err = sub.Subscribe(context.WithoutCancel(t.Context()), ticket.Definition.Type())
	require.NoError(t, err)
	return f
}

// react makes the policies handle the next message twice.
func (f *fixture) react(messages <-chan *message.Message, handle message.NoPublishHandlerFunc) {
	f.t.Helper()
	select {
	case msg := <-messages:
		require.NoError(f.t, handle(msg))
		require.NoError(f.t, handle(msg), "a message may come again")
		msg.Ack()
	case <-time.After(patience):
		require.FailNow(f.t, "an event must come")
	}
}

func (f *fixture) reactToOrder()  { f.t.Helper(); f.react(f.ofOrders, f.policies.OnOrder) }
func (f *fixture) reactToTicket() { f.t.Helper(); f.react(f.ofTickets, f.policies.OnTicket) }

func (f *fixture) order(decide order.Decision) {
	f.t.Helper()
	_, err := f.orders.Execute(f.t.Context(), "1", decide)
	require.NoError(f.t, err)
}

func (f *fixture) ticket(decide aggregate.Decision[ticket.Ticket]) {
	f.t.Helper()
	_, err := f.tickets.Execute(f.t.Context(), "1", decide)
	require.NoError(f.t, err)
}

// are checks the statuses of the order in the three services.
func (f *fixture) are(ofOrder order.Status, ofTicket ticket.Status, ofDelivery delivery.Status) {
	f.t.Helper()
	o, err := f.orders.Load(f.t.Context(), "1")
	require.NoError(f.t, err)
	assert.Equal(f.t, ofOrder, o.State.Status)
	t, err := f.tickets.Load(f.t.Context(), "1")
	require.NoError(f.t, err)
	assert.Equal(f.t, ofTicket, t.State.Status)
	d, err := f.deliveries.Load(f.t.Context(), "1")
	if ofDelivery == "" {
		assert.ErrorIs(f.t, err, journal.ErrNotFound)
		return
	}
	require.NoError(f.t, err)
	assert.Equal(f.t, ofDelivery, d.State.Status)
	assert.EqualValues(f.t, 1, d.Version, "scheduled once")
}

func TestAnOrderThatTheKitchenAcceptsIsApprovedAndItsDeliveryScheduled(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.order(order.Create(details))
	f.reactToOrder()
	f.are(order.StatusApprovalPending, ticket.StatusAwaitingAcceptance, "")
	f.ticket(ticket.Accept)
	f.reactToTicket() // requested
	f.reactToTicket()
	f.are(order.StatusApproved, ticket.StatusAccepted, "")
	f.reactToOrder()
	f.are(order.StatusApproved, ticket.StatusAccepted, delivery.StatusScheduled)
}

func TestAnOrderThatTheKitchenDeclinesIsRejectedForItsReason(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.order(order.Create(details))
	f.reactToOrder()
	f.ticket(ticket.Decline("sold out"))
	f.reactToTicket()
	f.reactToTicket()
	f.are(order.StatusRejected, ticket.StatusDeclined, "")
	o, err := f.orders.Load(t.Context(), "1")
	require.NoError(t, err)
	assert.Equal(t, "sold out", o.State.Reason)
}

func TestAnOrderThatIsCancelledWhileTheKitchenAcceptsItStaysCancelled(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.order(order.Create(details))
	f.reactToOrder()
	f.ticket(ticket.Accept)
	f.order(order.Cancel("changed my mind"))
	f.reactToTicket()
	f.reactToTicket() // the order refuses, which is a valid reply
	f.are(order.StatusCancelled, ticket.StatusAccepted, "")
	f.reactToOrder()
	f.are(order.StatusCancelled, ticket.StatusCancelled, "")
}

func TestAnOrderThatIsRevisedWhileTheKitchenAcceptsItIsAcceptedAnew(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.order(order.Create(details))
	f.reactToOrder()
	f.ticket(ticket.Accept)
	f.order(order.Revise(lines[:1]))
	f.reactToTicket()
	f.reactToTicket() // of the later revision
	f.are(order.StatusApprovalPending, ticket.StatusAccepted, "")
	f.reactToOrder()
	f.are(order.StatusApprovalPending, ticket.StatusAwaitingAcceptance, "")
	f.ticket(ticket.Accept)
	f.reactToTicket() // requested
	f.reactToTicket()
	f.are(order.StatusApproved, ticket.StatusAccepted, "")
}

func TestWhatIsNotThereYetIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.ticket(ticket.Request(0, nil)) // without an order
	f.ticket(ticket.Accept)
	f.reactToTicket()
	msg := <-f.ofTickets
	require.ErrorIs(t, f.policies.OnTicket(msg), order.Refused{})
	f.order(order.Create(details))
	require.NoError(t, f.policies.OnTicket(msg))
	msg.Ack()
	f.are(order.StatusApproved, ticket.StatusAccepted, "")
}

// broken cannot reach its database.
type broken struct{ err error }

func (b broken) Execute(context.Context, string, order.Decision, ...repository.Option) (a repository.Aggregate[order.Order], err error) {
	return a, b.err
}

func TestAFailureIsNoAnswer(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.policies.Orders = broken{errors.New("no connection")}
	f.ticket(ticket.Request(0, nil))
	f.ticket(ticket.Accept)
	f.reactToTicket()
	msg := <-f.ofTickets
	assert.EqualError(t, f.policies.OnTicket(msg), "after ticket.accepted.v1: no connection")
	msg.Ack()
}
