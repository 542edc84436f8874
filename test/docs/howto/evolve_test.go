package howto_test

import (
	"context"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/evolve"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

func TestOldEventsAreReadAsThoseOfToday(t *testing.T) {
	t.Parallel()
	aggregatetest.Given(t, evolve.Orders).
		Stored("order.placed.v1", `{"Customer":"ada","Total":30}`).
		Stored("order.viewed.v1", `{"By":"ben"}`).
		Stored("order.completed.v1", `{"Prepaid":false}`).
		ThenState(evolve.Order{Customer: "ada", Currency: "EUR", Total: 30, Paid: true, Shipped: true})
}

func TestARenamedEventAndAPrepaidOrderAreShipped(t *testing.T) {
	t.Parallel()
	aggregatetest.Given(t, evolve.Orders).Stored("order.sent.v1", `{}`).ThenState(evolve.Order{Shipped: true})
	aggregatetest.Given(t, evolve.Orders).Stored("order.completed.v1", `{"Prepaid":true}`).ThenState(evolve.Order{Shipped: true})
}

func open(t *testing.T) *millrace.App {
	t.Helper()
	app, err := millrace.Open(t.Context(), dynamotest.New(t).Client(), millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 1}})
	require.NoError(t, err)
	return app
}

func TestTheCheckNamesEventsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	app := open(t)
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{Snapshots: repository.Every(1)})
	require.NoError(t, err)
	_, err = orders.Execute(t.Context(), "1", shop.Place("ada", 30))
	require.NoError(t, err)
	require.NoError(t, evolve.Check(t.Context(), app.Journal(), 1))

	msg := message.NewMessage(watermill.NewUUID(), []byte(`{}`))
	msg.Metadata.Set(publisher.AggregateIDKey, "2")
	msg.Metadata.Set(publisher.NameKey, "order.lost.v1")
	require.NoError(t, app.Publisher().Publish("order", msg))

	err = evolve.Check(t.Context(), app.Journal(), 1)
	require.ErrorAs(t, err, new(*aggregate.UnknownEventError))
	assert.ErrorContains(t, err, "order.lost.v1")
}

func TestAFormerReleasePassesOverEventsOfANewType(t *testing.T) {
	t.Parallel()
	app := open(t)
	today, err := repository.New(app.Journal(), evolve.Orders, repository.Config{})
	require.NoError(t, err)
	placed, err := today.Execute(t.Context(), "1", func(evolve.Order) (aggregate.Events[evolve.Order], error) {
		return aggregate.Events[evolve.Order]{evolve.Placed{Customer: "ada", Currency: "USD", Total: 30}}, nil
	})
	require.NoError(t, err)
	former, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	_, err = app.Project(millrace.Group{Name: "totals", Topics: []string{"order"}},
		projection.On(func(context.Context, shop.Placed, *journal.Record) ([]projection.Write, error) {
			t.Error("the former release has no reaction to the new type")
			return nil, nil
		}))
	require.NoError(t, err)
	stop, err := app.Start(t.Context())
	require.NoError(t, err)

	require.NoError(t, app.Groups().WaitApplied(t.Context(), "totals", placed.ID, placed.Version))
	_, err = former.Load(t.Context(), "1")
	require.ErrorAs(t, err, new(*aggregate.UnknownEventError))
	require.NoError(t, stop())
}
