package streams_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
	"github.com/millrace-dev/millrace/test/docs/howto/streams"
)

func TestEventsAreCopiedOnceEachInOrder(t *testing.T) {
	t.Parallel()
	c, orders, _ := open(t)
	place(t, c.From, "1", "2", "3")
	// The former application writes while three processes copy.
	var wg sync.WaitGroup
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			assert.NoError(t, c.CopyAll(t.Context()))
		}()
	}
	ship(t, c.From, "2")
	wg.Wait()
	require.NoError(t, c.Handle(t.Context(), stream("2", "1", "2")))

	differ, err := c.Differences(t.Context())
	require.NoError(t, err)
	assert.Empty(t, differ)
	order, err := orders.Load(t.Context(), "2")
	require.NoError(t, err)
	assert.Equal(t, shop.Order{Customer: "ada", Total: 30, Shipped: true}, order.State)
	assert.EqualValues(t, 2, order.Version)

	ship(t, c.From, "3")
	differ, err = c.Differences(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{"3"}, differ)
}

func TestNoEventIsLostWhenAnOrderMoves(t *testing.T) {
	t.Parallel()
	c, orders, _ := open(t)
	place(t, c.From, "1")
	service := &streams.Service{Copier: c, Orders: orders}
	var wg sync.WaitGroup
	var former int
	wg.Add(1)
	go func() { // a former release, which ships until the order is sealed
		defer wg.Done()
		for former < 5 {
			last, err := c.From.Last(t.Context(), "1")
			if !assert.NoError(t, err) || last.Type == "sealed" {
				return
			}
			event := streams.Item{Type: "order.shipped.v1", At: "2026-01-01", Data: []byte(`{"Customer":"ada"}`)}
			err = c.From.Append(t.Context(), "1", last.Number, event)
			if err == nil {
				former++
			} else if !errors.As(err, new(*types.ConditionalCheckFailedException)) {
				assert.NoError(t, err)
				return
			}
		}
	}()
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			assert.NoError(t, service.Execute(t.Context(), "1", shop.Ship))
		}()
	}
	wg.Wait()
	order, err := orders.Load(t.Context(), "1")
	require.NoError(t, err)
	assert.EqualValues(t, 1+former+2, order.Version)
	differ, err := c.Differences(t.Context())
	require.NoError(t, err)
	assert.Empty(t, differ)
}

func TestHandlersKnowCopiedEvents(t *testing.T) {
	t.Parallel()
	c, orders, app := open(t)
	place(t, c.From, "1", "2")
	require.NoError(t, c.CopyAll(t.Context()))
	handled := make(chan string, 10)
	require.NoError(t, app.HandleEvents(millrace.Group{Name: "mails", Topics: []string{"order"}},
		cqrs.NewGroupEventHandler(func(ctx context.Context, e *shop.Placed) error {
			handled <- fmt.Sprintf("%s %t", e.Customer, streams.Copied(ctx))
			return nil
		})))
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	service := &streams.Service{Copier: c, Orders: orders}
	require.NoError(t, service.Execute(t.Context(), "3", shop.Place("eve", 5)))
	got := []string{await.Receive(t, handled, "1"), await.Receive(t, handled, "2"), await.Receive(t, handled, "3")}
	assert.ElementsMatch(t, []string{"ada true", "ada true", "eve false"}, got)
	require.NoError(t, stop())
}

func place(t *testing.T, f streams.Former, ids ...string) {
	t.Helper()
	for _, id := range ids {
		event := streams.Item{Type: "order.placed.v1", At: "2026-01-01", Data: []byte(`{"Customer":"ada","Total":30}`)}
		require.NoError(t, f.Append(t.Context(), id, 0, event))
	}
}

func ship(t *testing.T, f streams.Former, id string) {
	t.Helper()
	event := streams.Item{Type: "order.shipped.v1", At: "2026-01-02", Data: []byte(`{"Customer":"ada"}`)}
	require.NoError(t, f.Append(t.Context(), id, 1, event))
}

func stream(ids ...string) (batch events.DynamoDBEvent) {
	for _, id := range ids {
		batch.Records = append(batch.Records, events.DynamoDBEventRecord{Change: events.DynamoDBStreamRecord{
			Keys: map[string]events.DynamoDBAttributeValue{"order": events.NewStringAttribute(id)},
		}})
	}
	return batch
}

func open(t *testing.T) (*streams.Copier, *repository.Repository[shop.Order], *millrace.App) {
	t.Helper()
	client := dynamotest.New(t).Client()
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("order-events"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("order"), AttributeType: types.ScalarAttributeTypeS},
			{AttributeName: aws.String("number"), AttributeType: types.ScalarAttributeTypeN},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("order"), KeyType: types.KeyTypeHash},
			{AttributeName: aws.String("number"), KeyType: types.KeyTypeRange},
		},
	})
	require.NoError(t, err)
	app, err := millrace.Open(t.Context(), client, millrace.Config{
		Prefix: "shop-", Journal: journal.Config{Layout: journal.Packed, Shards: 2},
	})
	require.NoError(t, err)
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	require.NoError(t, err)
	return &streams.Copier{
		From: streams.Former{Client: client, Table: "order-events"}, Journal: app.Journal(), Publisher: app.Publisher(),
	}, orders, app
}
