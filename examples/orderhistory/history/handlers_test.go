package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
)

func TestTheHistoryShowsWhatHappenedToAnOrder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	delivered := f.place("ada", "Ajanta", "Vindaloo")
	execute(f, f.orders, delivered, order.Revise(menu("Korma", "Naan")), order.Approve(1))
	execute(f, f.tickets, delivered, ticket.Request(0, nil), ticket.Accept, ticket.Prepare, ticket.Finish)
	execute(f, f.deliveries, delivered, delivery.Schedule, delivery.PickUp, delivery.Deliver)
	cancelled := f.place("ada", "Ajanta", "Samosa")
	execute(f, f.orders, cancelled, order.Cancel("changed my mind"))
	execute(f, f.tickets, cancelled, ticket.Request(0, nil), ticket.Cancel)
	rejected := f.place("ada", "Ajanta", "Naan")
	execute(f, f.orders, rejected, order.Reject("sold out"))
	execute(f, f.tickets, rejected, ticket.Request(0, nil), ticket.Decline("sold out"))

	assert.Equal(t, projection.Stats{Applied: uint64(f.events)}, f.project("history"))

	for _, want := range []history.Order{
		{
			OrderID: delivered, Lines: menu("Korma", "Naan"), TotalCents: 500 + 2*500, CreationTime: noon.Add(time.Minute),
			Status: order.StatusApproved, TicketStatus: ticket.StatusReady, DeliveryStatus: delivery.StatusDelivered,
			Versions: history.Versions{Order: 3, Ticket: 4, Delivery: 3},
		},
		{
			OrderID: cancelled, Lines: menu("Samosa"), TotalCents: 500, CreationTime: noon.Add(2 * time.Minute),
			Status: order.StatusCancelled, Reason: "changed my mind", TicketStatus: ticket.StatusCancelled,
			Versions: history.Versions{Order: 2, Ticket: 2},
		},
		{
			OrderID: rejected, Lines: menu("Naan"), TotalCents: 500, CreationTime: noon.Add(3 * time.Minute),
			Status: order.StatusRejected, Reason: "sold out", TicketStatus: ticket.StatusDeclined,
			Versions: history.Versions{Order: 2, Ticket: 2},
		},
	} {
		want.ConsumerID, want.Restaurant = "ada", "Ajanta"
		found, err := f.dao.FindOrder(t.Context(), want.OrderID)
		require.NoError(t, err)
		assert.Equal(t, want, found)
	}
}

func TestAnOrderOfWhichOnlyOtherServicesHaveToldIsNotShown(t *testing.T) {
	t.Parallel()
	f := setup(t)
	execute(f, f.tickets, "early", ticket.Request(0, nil))
	execute(f, f.deliveries, "early", delivery.Schedule)
	f.project("history")

	_, err := f.dao.FindOrder(t.Context(), "early")
	require.ErrorIs(t, err, history.ErrNotFound)
	execute(f, f.orders, "early", order.Create(order.Details{ConsumerID: "ada", Restaurant: "Ajanta", Lines: menu("Naan"), CreatedAt: noon}))
	f.project("again")
	found, err := f.dao.FindOrder(t.Context(), "early")
	require.NoError(t, err)
	assert.Equal(t, ticket.StatusAwaitingAcceptance, found.TicketStatus)
	assert.Equal(t, history.Versions{Order: 1, Ticket: 1, Delivery: 1}, found.Versions)
}

func TestAnOrderIsFoundOnceTheHistoryHasBeenTold(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id := f.place("ada", "Ajanta", "Vindaloo")

	for _, unknown := range []string{id, "", "no such order"} {
		_, err := f.dao.FindOrder(t.Context(), unknown)
		require.ErrorIs(t, err, history.ErrNotFound)
	}
	f.project("history")
	_, err := f.dao.FindOrder(t.Context(), id)
	assert.NoError(t, err)
}

func TestTheTableIsMadeOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id := f.place("ada", "Ajanta", "Vindaloo")
	f.project("history")

	require.NoError(t, f.dao.CreateTable(t.Context()), "a second time")
	_, err := f.dao.FindOrder(t.Context(), id)
	assert.NoError(t, err, "what is in the table must stay")

	other := history.NewOrderHistoryDao(f.client, history.Config{Table: f.journal.Config().Tables.Journal})
	assert.ErrorAs(t, other.CreateTable(t.Context()), new(*journal.DescriptorMismatchError), "it has another purpose")
}
