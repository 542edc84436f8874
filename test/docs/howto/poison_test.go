package howto_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/poison"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

func TestAParkedAggregateGoesOnAfterTheFix(t *testing.T) {
	t.Parallel()
	app, err := millrace.Open(t.Context(), dynamotest.New(t).Client(), millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 1}})
	require.NoError(t, err)
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	var fixed atomic.Bool
	require.NoError(t, app.Handle(poison.Group(1), func(*message.Message) error {
		if !fixed.Load() {
			return errors.New("no carrier takes it")
		}
		return nil
	}))
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, stop()) })
	placed, err := orders.Execute(t.Context(), "1", shop.Place("ada", 30))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		for parked, err := range app.Groups().Of("shipping", "order").Parked(t.Context(), aggregate.ID{}) {
			return err == nil && assert.Contains(t, parked.Parked.Reason, "no carrier")
		}
		return false
	}, time.Minute, 10*time.Millisecond)

	fixed.Store(true)
	retried, err := poison.Retry(t.Context(), app, "no carrier")
	require.NoError(t, err)
	assert.Equal(t, 1, retried)

	require.NoError(t, app.Groups().WaitApplied(t.Context(), "shipping", placed.ID, placed.Version))
}
