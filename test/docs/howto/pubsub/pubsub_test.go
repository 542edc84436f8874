package pubsub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/pubsub"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

const topic = "orders"

func TestATopicMovesToTheJournalWhileItsConsumersContinue(t *testing.T) {
	t.Parallel()
	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true, BlockPublishUntilSubscriberAck: true}, nil)
	placed := former("1", "OrderPlaced", "7", `{"Customer":"ada","Total":30}`)
	require.NoError(t, broker.Publish(topic, placed, placed.Copy())) // delivered twice
	require.NoError(t, broker.Publish(topic, former("2", "OrderShipped", "7", `{"Customer":"ada"}`)))

	app, err := millrace.Open(t.Context(), dynamotest.New(t).Client(), millrace.Config{
		Prefix: "shop-", Journal: journal.Config{Layout: journal.Packed, Shards: 2},
	})
	require.NoError(t, err)
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	app.Router().AddConsumerHandler("import", topic, broker, pubsub.Importer{Orders: orders}.Handle)
	require.NoError(t, pubsub.Forward(app, topic, broker))
	handled := make(chan string, 10)
	require.NoError(t, app.HandleEvents(millrace.Group{Name: "mails", Topics: []string{"order"}},
		cqrs.NewGroupEventHandler(func(ctx context.Context, e *shop.Placed) error {
			handled <- fmt.Sprintf("%s %t", e.Customer, pubsub.Copied(ctx))
			return nil
		})))
	stop, err := app.Start(t.Context())
	require.NoError(t, err)

	await.True(t, "the order is copied", func() bool {
		order, err := orders.Load(t.Context(), "7")
		return err == nil && order.State.Shipped
	})
	order, err := orders.Execute(t.Context(), "8", shop.Place("eve", 5))
	require.NoError(t, err)
	// Then the importer has acked what came from the journal.
	waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, app.Groups().WaitApplied(waiting, "former-topic", order.ID, order.Version))
	messages, err := broker.Subscribe(t.Context(), topic) // a former consumer
	require.NoError(t, err)
	var got []string
	for len(got) < 4 {
		msg := await.Receive(t, messages, "a message")
		got = append(got, msg.Metadata.Get("name")+" "+msg.Metadata.Get("order"))
		msg.Ack()
	}
	assert.ElementsMatch(t, []string{"OrderPlaced 7", "OrderPlaced 7", "OrderShipped 7", "OrderPlaced 8"}, got)
	assert.ElementsMatch(t, []string{"ada true", "eve false"},
		[]string{await.Receive(t, handled, "the first"), await.Receive(t, handled, "the second")})
	require.NoError(t, stop())
	for id, want := range map[string]uint64{"7": 2, "8": 1} {
		order, err := orders.Load(t.Context(), id)
		require.NoError(t, err)
		assert.Equal(t, want, order.Version, id)
	}
}

func TestAMessageThatNobodyKnowsIsAnError(t *testing.T) {
	t.Parallel()
	err := pubsub.Importer{}.Handle(former("1", "OrderLost", "7", `{}`))
	assert.ErrorContains(t, err, `unknown name "OrderLost"`)
}

func former(id, name, order, payload string) *message.Message {
	msg := message.NewMessage(id, []byte(payload))
	msg.Metadata.Set("name", name)
	msg.Metadata.Set("order", order)
	return msg
}
