package history_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/examples/orderhistory/history"
	"github.com/millrace-dev/millrace/examples/orderhistory/order"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// patience bounds a failing test and is no claim about speed.
const patience = 30 * time.Second

// noon is when the first order of a test is placed; the n-th is placed n minutes later.
var noon = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

// fixture is a database with orders and their history.
type fixture struct {
	t       *testing.T
	client  *dynamodb.Client
	dao     *history.DAO
	journal *journal.Journal
	orders  *repository.Repository[order.Order]
	placed  int
	events  int
}

func setup(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, client: testdb.Client(t)}
	f.dao = history.NewDAO(f.client, history.Config{})
	require.NoError(t, f.dao.CreateTable(t.Context()))
	config := journal.Config{Shards: 2}
	require.NoError(t, journal.Create(t.Context(), f.client, config))
	var err error
	f.journal, err = journal.Open(t.Context(), f.client, config)
	require.NoError(t, err)
	f.orders, err = repository.New(f.journal, order.Definition, repository.Config{})
	require.NoError(t, err)
	return f
}

// execute carries out commands on an order, of which each makes an event.
func (f *fixture) execute(id string, commands ...order.Decision) {
	f.t.Helper()
	for _, command := range commands {
		_, err := f.orders.Execute(f.t.Context(), id, command)
		require.NoError(f.t, err)
		f.events++
	}
}

// place creates an order a minute after the one before and gives its id.
func (f *fixture) place(consumer, restaurant string, lines ...string) string {
	f.t.Helper()
	f.placed++
	id := fmt.Sprintf("%s-%03d", consumer, f.placed)
	f.execute(id, order.Create(order.Details{
		ConsumerID: consumer, Restaurant: restaurant, Lines: menu(lines...), CreatedAt: noon.Add(time.Duration(f.placed) * time.Minute),
	}))
	return id
}

func menu(names ...string) (lines order.Lines) {
	for i, name := range names {
		lines = append(lines, order.Line{Name: name, Quantity: int64(i + 1), PriceCents: 500})
	}
	return lines
}

// project brings a consumer group that starts at the beginning up to date.
func (f *fixture) project(group string) projection.Stats {
	f.t.Helper()
	p, err := projection.New(f.client, projection.Config{}, f.dao.Reactions()...)
	require.NoError(f.t, err)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: f.journal, ConsumerGroup: group}, nil)
	require.NoError(f.t, err)
	defer func() { require.NoError(f.t, sub.Close()) }()
	messages, err := sub.Subscribe(f.t.Context(), order.Definition.Type())
	require.NoError(f.t, err)
	deadline := time.After(patience)
	for n := range f.events {
		select {
		case msg := <-messages:
			require.NoError(f.t, p.Handle(msg))
			msg.Ack()
		case <-deadline:
			require.FailNow(f.t, "an event did not come", "%d of %d came", n, f.events)
		}
	}
	return p.Stats()
}

// find gives the page of a consumer.
func (f *fixture) find(consumer string, filter history.Filter) history.Page {
	f.t.Helper()
	page, err := f.dao.FindOrderHistory(f.t.Context(), consumer, filter)
	require.NoError(f.t, err)
	return page
}

// findAll follows the page tokens, and gives the ids page by page.
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
