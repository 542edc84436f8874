package howto_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/docs/howto/bursts"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

func TestOrdersAreHandledInBursts(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app, err := millrace.Open(t.Context(), db.Client(), millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 4}})
	require.NoError(t, err)
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	var placed []string
	require.NoError(t, app.HandleEvents(millrace.Group{Name: "mails", Topics: []string{"order"}},
		cqrs.NewGroupEventHandler(func(ctx context.Context, _ *shop.Placed) error {
			id, _, _ := subscriber.AggregateFromContext(ctx)
			placed = append(placed, id.Value)
			return nil
		})))
	for _, id := range []string{"1", "2"} {
		_, err := orders.Execute(t.Context(), id, shop.Place("ada", 1))
		require.NoError(t, err)
	}
	require.NoError(t, bursts.Announced(t.Context(), app, "2", 1))
	assert.Equal(t, []string{"2"}, placed)
	require.NoError(t, bursts.EachMinute(t.Context(), app))
	assert.Equal(t, []string{"2", "1"}, placed)
}
