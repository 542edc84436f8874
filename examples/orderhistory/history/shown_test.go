package history_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/internal/testdb"
)

func TestAnOrderIsAwaitedUntilItShowsAnEvent(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		f := setup(t)
		event := aggregate.ID{Type: order.Definition.Type(), Value: f.place("ada", "Ajanta", "Vindaloo")}
		shown := make(chan history.Order, 1)
		go func() {
			o, err := f.dao.AwaitOrder(t.Context(), event, 1)
			assert.NoError(t, err)
			shown <- o
		}()
		f.project("history")
		assert.Equal(t, "ada", (<-shown).ConsumerID)

		execute(f, f.orders, event.Value, order.Approve(0))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		o, err := f.dao.AwaitOrder(ctx, event, 2)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, history.ErrNotFound)
		assert.Equal(t, order.StatusApprovalPending, o.Status, "as it was seen last")
	})
}

func TestAnOrderThatIsNotThereIsAwaitedAsLongAsTheContextLasts(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		f := setup(t)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		_, err := f.dao.AwaitOrder(ctx, aggregate.ID{Type: order.Definition.Type(), Value: "nothing"}, 1)
		require.ErrorIs(t, err, context.Canceled)
	})
}
