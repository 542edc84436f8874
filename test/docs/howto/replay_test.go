package howto_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/docs/howto/replay"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

func TestTheBackfillAndTheLiveGroupShareTheEvents(t *testing.T) {
	t.Parallel()
	client := dynamotest.New(t).Client()
	deployed := time.Now().Truncate(time.Millisecond)
	now := deployed.Add(-time.Hour) // of the writers
	config := journal.Config{Layout: journal.Packed, Shards: 2, Now: func() time.Time { return now }}
	app, err := millrace.Open(t.Context(), client, millrace.Config{Journal: config})
	require.NoError(t, err)
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	var versions []repository.Aggregate[shop.Order]
	for _, id := range []string{"old", "both"} {
		order, err := orders.Execute(t.Context(), id, shop.Place("ada", 30))
		require.NoError(t, err)
		versions = append(versions, order)
	}
	now = deployed
	both, err := orders.Execute(t.Context(), "both", shop.Ship)
	require.NoError(t, err)
	versions = append(versions, both)

	var mu sync.Mutex
	handled := map[string][]string{} // the groups that handled an event
	handle := func(msg *message.Message) error {
		mu.Lock()
		defer mu.Unlock()
		group, _ := subscriber.ConsumerGroupFromContext(msg.Context())
		id, number, _ := subscriber.AggregateFromContext(msg.Context())
		event := fmt.Sprintf("%s %d", id.Value, number)
		handled[event] = append(handled[event], group)
		return nil
	}
	require.NoError(t, app.Handle(replay.Live(deployed), handle))
	require.NoError(t, replay.Backfill(app, deployed, handle))
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	for _, group := range []string{"labels", "labels-backfill"} {
		for _, order := range versions {
			require.NoError(t, app.Groups().WaitApplied(t.Context(), group, order.ID, order.Version))
		}
	}
	require.NoError(t, stop())

	assert.Equal(t, map[string][]string{"old 1": {"labels-backfill"}, "both 1": {"labels-backfill"}, "both 2": {"labels"}}, handled)
}
