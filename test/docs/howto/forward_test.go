package howto_test

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/forward"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

func TestEventsGoOutAndMessagesComeIn(t *testing.T) {
	t.Parallel()
	app, err := millrace.Open(t.Context(), dynamotest.New(t).Client(), millrace.Config{
		Prefix: "shop-", Journal: journal.Config{Layout: journal.Packed, Shards: 2},
	})
	require.NoError(t, err)
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)
	require.NoError(t, forward.Forward(app, broker))
	require.NoError(t, forward.Receive(app, orders, broker))
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	_, err = orders.Execute(t.Context(), "7", shop.Place("anna", 30))
	require.NoError(t, err)
	out, err := broker.Subscribe(t.Context(), "orders")
	require.NoError(t, err)
	msg := await.Receive(t, out, "the message")
	msg.Ack()
	assert.JSONEq(t, `{"order":"7","total":30}`, string(msg.Payload))
	settled := message.NewMessage("p1", []byte(`{"order":"7"}`))
	settled.Metadata.Set("key", "7")
	require.NoError(t, broker.Publish("payments.settled", settled, settled.Copy()))
	await.True(t, "the order is shipped", func() bool {
		order, err := orders.Load(t.Context(), "7")
		return err == nil && order.State.Shipped
	})
	require.NoError(t, stop())
	require.NoError(t, broker.Close())
}
