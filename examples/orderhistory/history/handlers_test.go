package history_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/projection"
)

func TestTheHistoryShowsWhatHappenedToAnOrder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id := f.place("ada", "Ajanta", "Vindaloo")
	f.execute(id, order.Approve(), order.Revise(menu("Korma", "Naan")), order.PickUp(), order.Deliver())
	cancelled := f.place("ada", "Ajanta", "Samosa")
	f.execute(cancelled, order.Cancel("changed my mind"))

	assert.Equal(t, projection.Stats{Applied: 7}, f.project("history"))

	found, err := f.dao.FindOrder(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, history.Order{
		OrderID: id, ConsumerID: "ada", Restaurant: "Ajanta", Lines: menu("Korma", "Naan"), TotalCents: 500 + 2*500,
		CreationTime: noon.Add(time.Minute), Status: order.StatusApproved, DeliveryStatus: order.DeliveryDelivered, Version: 5,
	}, found)

	found, err = f.dao.FindOrder(t.Context(), cancelled)
	require.NoError(t, err)
	assert.Equal(t, history.Order{
		OrderID: cancelled, ConsumerID: "ada", Restaurant: "Ajanta", Lines: menu("Samosa"), TotalCents: 500,
		CreationTime: noon.Add(2 * time.Minute), Status: order.StatusCancelled, CancelReason: "changed my mind", Version: 2,
	}, found)
}

// A second group that writes to the same table is told every event once more.
func TestOldEventsThatComeAgainNeverSetAnAttributeBack(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id := f.place("ada", "Ajanta", "Vindaloo")
	f.execute(id, order.Approve(), order.Revise(menu("Korma")), order.PickUp(), order.Deliver())
	f.project("history")
	before, err := f.dao.FindOrder(t.Context(), id)
	require.NoError(t, err)

	again := f.project("again")

	assert.EqualValues(t, f.events, again.Dropped, "every update must be left out")
	after, err := f.dao.FindOrder(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, before, after)
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

	other := history.NewDAO(f.client, history.Config{Table: f.journal.Config().Tables.Journal})
	assert.ErrorContains(t, other.CreateTable(t.Context()), "made for something else")
}
