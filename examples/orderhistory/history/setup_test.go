package history_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/orderhistory/delivery"
	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/examples/orderhistory/ticket"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// patience limits a failing test. It is not a claim about speed.
const patience = 2 * time.Minute

// noon is the time of the first order of a test. The n-th order is n minutes later.
var noon = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// fixture is a database with orders and their history.
type fixture struct {
	t       *testing.T
	client  *dynamodb.Client
	dao     *history.OrderHistoryDao
	journal *journal.Journal
	placed  int
	events  int

	orders     *repository.Repository[order.Order]
	tickets    *repository.Repository[ticket.Ticket]
	deliveries *repository.Repository[delivery.Delivery]
}

func setup(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, client: testdb.Client(t)}
	f.dao = history.NewOrderHistoryDao(f.client, history.Config{})
	require.NoError(t, f.dao.CreateTable(t.Context()))
	config := journal.Config{Layout: journal.Packed, Shards: 2}
	require.NoError(t, journal.Create(t.Context(), f.client, config))
	var err error
	f.journal, err = journal.Open(t.Context(), f.client, config)
	require.NoError(t, err)
	f.orders, err = repository.New(f.journal, order.Definition, repository.Config{})
	require.NoError(t, err)
	f.tickets, err = repository.New(f.journal, ticket.Definition, repository.Config{})
	require.NoError(t, err)
	f.deliveries, err = repository.New(f.journal, delivery.Definition, repository.Config{})
	require.NoError(t, err)
	return f
}

// execute executes commands on an aggregate. Each makes one event.
func execute[S any](f *fixture, on *repository.Repository[S], id string, commands ...aggregate.Decision[S]) {
	f.t.Helper()
	for _, command := range commands {
		_, err := on.Execute(f.t.Context(), id, command)
		require.NoError(f.t, err)
		f.events++
	}
}

// place creates an order, one minute after the one before, and returns its id.
func (f *fixture) place(consumer, restaurant string, lines ...string) string {
	f.t.Helper()
	f.placed++
	id := fmt.Sprintf("%s-%03d", consumer, f.placed)
	execute(f, f.orders, id, order.Create(order.Details{
		ConsumerID: consumer, Restaurant: restaurant, Lines: menu(lines...), CreatedAt: noon.Add(time.Duration(f.placed) * time.Minute),
	}))
	return id
}

func menu(names ...string) (lines []order.Line) {
	for i, name := range names {
		lines = append(lines, order.Line{Name: name, Quantity: int64(i + 1), PriceCents: 500})
	}
	return lines
}

// topics are the topics of the three services.
var topics = []string{order.Definition.Type(), ticket.Definition.Type(), delivery.Definition.Type()}

// project runs a consumer group from the first event until it has handled all events.
func (f *fixture) project(group string) projection.Stats {
	f.t.Helper()
	p, messages := f.subscribe(group)
	deadline := time.After(patience)
	for n := range f.events {
		var msg *message.Message
		select {
		case msg = <-messages[topics[0]]:
		case msg = <-messages[topics[1]]:
		case msg = <-messages[topics[2]]:
		case <-deadline:
			require.FailNow(f.t, "an event did not come", "%d of %d came", n, f.events)
		}
		require.NoError(f.t, p.Handle(msg))
		msg.Ack()
	}
	return p.Stats()
}

// subscribe returns the projection of a group, and its messages by topic.
func (f *fixture) subscribe(group string) (*projection.Projection, map[string]<-chan *message.Message) {
	f.t.Helper()
	p, err := projection.New(f.client, projection.Config{}, f.dao.EventHandlers()...)
	require.NoError(f.t, err)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: f.journal, ConsumerGroup: group, MaxInFlight: 1_000}, nil)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { require.NoError(f.t, sub.Close()) })
	messages := map[string]<-chan *message.Message{}
	for _, topic := range topics {
		messages[topic], err = sub.Subscribe(context.WithoutCancel(f.t.Context()), topic)
		require.NoError(f.t, err)
	}
	return p, messages
}

// find returns a page of the orders of a consumer.
func (f *fixture) find(consumer string, filter history.Filter) history.Page {
	f.t.Helper()
	page, err := f.dao.FindOrderHistory(f.t.Context(), consumer, filter)
	require.NoError(f.t, err)
	return page
}

// findAll follows the page tokens, and returns the ids page by page.
func (f *fixture) findAll(consumer string, filter history.Filter) (pages [][]string) {
	f.t.Helper()
	for {
		page := f.find(consumer, filter)
		pages = append(pages, ids(page))
		if page.NextToken == "" {
			return pages
		}
		filter.PageToken = page.NextToken
	}
}

func ids(page history.Page) []string {
	ids := make([]string, len(page.Orders))
	for i, o := range page.Orders {
		ids[i] = o.OrderID
	}
	return ids
}
