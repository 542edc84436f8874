package millrace_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// shop is an App with a group of each kind.
type shop struct {
	*millrace.App
	db      *dynamotest.DB
	orders  *repository.Repository[order]
	saga    *process.Manager[shipping]
	mails   *atomic.Int64 // handled events
	sent    *forward.Forwarder
	tables  []string // the read models have an item for each order that was shipped
	broker  *gochannel.GoChannel
	aborted atomic.Int64 // attempts of handlers that have failed
}

// openShop opens an App. The handler of mails fails at first.
func openShop(t *testing.T, db *dynamotest.DB, layout journal.Layout, commitInterval time.Duration) *shop {
	t.Helper()
	s := &shop{db: db, mails: new(atomic.Int64), broker: gochannel.NewGoChannel(gochannel.Config{Persistent: true}, nil)}
	s.App = open(t, db, func(c *millrace.Config) { c.Journal.Layout = layout },
		subscribing(func(_ string, c *subscriber.Config) {
			c.NackResendSleep, c.Timing.CommitInterval = 10*time.Millisecond, commitInterval
		}))
	var err error
	s.orders, err = millrace.Repository(s.App, orders, repository.Config{})
	require.NoError(t, err)
	s.saga, err = millrace.Process(t.Context(), s.App, shippings, process.Config{}, "order")
	require.NoError(t, err)
	require.NoError(t, s.HandleCommands(command.Handler("ship", s.orders, func(c *shipOrder) (string, aggregate.Decision[order]) {
		return c.Order, c.decide
	})))
	_, err = s.Receive(millrace.Group{Name: "payments"}, millrace.Inbox{Subscriber: s.broker, Topics: []string{"payments"}},
		command.Handler("paid", s.orders, func(c *Paid) (string, aggregate.Decision[order]) { return c.Order, place(c.Item) }))
	require.NoError(t, err)
	require.NoError(t, s.Handle(millrace.Group{Name: "mails", Topics: []string{"order"}}, func(*message.Message) error {
		if s.aborted.Add(1) < 5 {
			return errors.New("no mail server")
		}
		time.Sleep(5 * time.Millisecond)
		s.mails.Add(1)
		return nil
	}))
	s.sent, err = s.Forward(millrace.Group{Name: "out", Topics: []string{"order"}}, forward.Config{Publisher: s.broker}, ordered)
	require.NoError(t, err)
	s.project(t)
	return s
}

// project adds the read models.
func (s *shop) project(t *testing.T) {
	t.Helper()
	reaction := func(table string) projection.Reaction {
		return projection.On(func(_ context.Context, _ shipped, r *journal.Record) ([]projection.Write, error) {
			time.Sleep(50 * time.Millisecond) // longer than the rest, so that Settle has to wait
			key := projection.Table{PartitionKey: "order"}.Key(r.Aggregate.Value)
			return []projection.Write{projection.Put(types.Put{TableName: &table, Item: key})}, nil
		})
	}
	table := func(ctx context.Context, name string) error {
		return projection.CreateTable(ctx, s.db.Client(), projection.Table{Name: name, PartitionKey: "order"})
	}
	row := func(name string) projection.RowTable {
		return projection.RowTable{Table: projection.Table{Name: name, PartitionKey: "order"}}
	}
	set := projection.OnRow(func(context.Context, shipped, *journal.Record) (projection.RowUpdate, error) {
		time.Sleep(50 * time.Millisecond)
		values := map[string]types.AttributeValue{":t": &types.AttributeValueMemberBOOL{Value: true}}
		return projection.RowUpdate{Expression: "SET shipped = :t", Values: values}, nil
	})
	require.NoError(t, errors.Join(table(t.Context(), "items"), table(t.Context(), "rows")))
	_, err := s.Project(millrace.Group{Name: "items", Topics: []string{"order"}}, reaction("items"))
	require.NoError(t, err)
	_, err = s.ProjectRows(millrace.Group{Name: "rows", Topics: []string{"order"}}, row("rows"), set)
	require.NoError(t, err)
	_, err = s.ReadModel(t.Context(), readmodel.Config{Name: "model", Topics: []string{"order"}},
		func(ctx context.Context, g readmodel.Generation) ([]projection.Reaction, error) {
			return []projection.Reaction{reaction(g.Table("model"))}, table(ctx, g.Table("model"))
		})
	require.NoError(t, err)
	_, err = s.RowReadModel(t.Context(), readmodel.Config{Name: "rowmodel", Topics: []string{"order"}},
		func(ctx context.Context, g readmodel.Generation) (projection.RowTable, []projection.RowReaction, error) {
			return row(g.Table("rowmodel")), []projection.RowReaction{set}, table(ctx, g.Table("rowmodel"))
		})
	require.NoError(t, err)
	s.tables = []string{"items", "rows", "model_1", "rowmodel_1"}
}

// isComplete asserts that everything is handled of n orders.
func (s *shop) isComplete(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		id := fmt.Sprint(i)
		ended, err := s.saga.Repository().Load(t.Context(), id)
		require.NoError(t, err)
		assert.True(t, ended.State.Done, "the process of order %s has ended", id)
		for _, table := range s.tables {
			out, err := s.db.Client().GetItem(t.Context(), &dynamodb.GetItemInput{
				TableName: &table, Key: projection.Table{PartitionKey: "order"}.Key(id),
			})
			require.NoError(t, err)
			assert.NotEmpty(t, out.Item, "order %s in %s", id, table)
		}
	}
}

func TestSettleReturnsWhenEverythingIsHandled(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		s := openShop(t, dynamotest.New(t), layout, time.Hour)
		start(t, s.App)
		var writers sync.WaitGroup
		for i := range 20 {
			writers.Add(1)
			go func() {
				defer writers.Done()
				if i%2 == 0 {
					testjournal.Execute(t, s.orders, fmt.Sprint(i), place("tea"))
					return
				}
				assert.NoError(t, s.Publisher().Publish("payments-inbox", inboxMessage(t, s.App, Paid{fmt.Sprint(i), "tea"})))
			}()
		}
		writers.Wait()
		require.NoError(t, s.Settle(t.Context()))
		s.isComplete(t, 20)
		assert.EqualValues(t, 40, s.mails.Load(), "both events of each order")
		assert.EqualValues(t, 20, s.sent.Stats().Messages)
	})
}

// inboxMessage returns a message as Receive stores it.
func inboxMessage(t *testing.T, app *millrace.App, command any) *message.Message {
	t.Helper()
	msg, err := app.Marshaler().Marshal(command)
	require.NoError(t, err)
	return msg
}

// The members of the groups share the shards, and the writer is a third process.
func TestSettleWaitsForTheWorkOfOtherProcesses(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		db := dynamotest.New(t)
		one, two := openShop(t, db, layout, 50*time.Millisecond), openShop(t, db, layout, 50*time.Millisecond)
		start(t, one.App)
		start(t, two.App)
		j, err := journal.Open(t.Context(), db.Client(), one.Journal().Config())
		require.NoError(t, err)
		writer, err := repository.New(j, orders, repository.Config{})
		require.NoError(t, err)
		for i := range 20 {
			testjournal.Execute(t, writer, fmt.Sprint(i), place("tea"))
		}
		require.NoError(t, one.Settle(t.Context()))
		one.isComplete(t, 20)
		assert.EqualValues(t, 40, one.mails.Load()+two.mails.Load())
	})
}

func TestSettleRunsBurstsInAnAppThatWorksInBursts(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		s := openShop(t, dynamotest.New(t), layout, time.Hour)
		_, err := s.CatchUp(t.Context())
		require.NoError(t, err)
		for i := range 5 {
			testjournal.Execute(t, s.orders, fmt.Sprint(i), place("tea"))
		}
		require.NoError(t, s.Settle(t.Context()))
		s.isComplete(t, 5)
		assert.EqualValues(t, 10, s.mails.Load())
	})
}

// Each event leads to one of another aggregate, and other processes handle all of them.
func TestSettleFollowsEventsThatOtherProcessesCommit(t *testing.T) {
	t.Parallel()
	const hops = 12
	db := dynamotest.New(t)
	var handled atomic.Int64
	relay := func() (*millrace.App, *repository.Repository[order]) {
		app := open(t, db, subscribing(func(_ string, c *subscriber.Config) { c.Timing.CommitInterval = 10 * time.Millisecond }))
		repo, err := millrace.Repository(app, orders, repository.Config{})
		require.NoError(t, err)
		require.NoError(t, app.Handle(millrace.Group{Name: "relay", Topics: []string{"order"}}, func(msg *message.Message) error {
			id, _, _ := subscriber.AggregateFromContext(msg.Context())
			n, err := strconv.Atoi(id.Value)
			if err != nil {
				return err
			}
			time.Sleep(20 * time.Millisecond)
			handled.Add(1)
			if n == hops {
				return nil
			}
			_, err = repo.Execute(msg.Context(), strconv.Itoa(n+1), place("tea"))
			return err
		}))
		start(t, app)
		return app, repo
	}
	var idle *millrace.App
	apps := map[*millrace.App]*repository.Repository[order]{}
	for range 3 { // they share two shards
		app, repo := relay()
		apps[app] = repo
	}
	await.True(t, "each of two members has a shard", func() bool {
		owned := 0
		for app := range apps {
			n := shardsOf(app)
			if owned += n; n == 0 {
				idle = app
			}
		}
		return owned == 2 && idle != nil
	})
	testjournal.Execute(t, apps[idle], "1", place("tea"))
	require.NoError(t, idle.Settle(t.Context()))
	assert.EqualValues(t, hops, handled.Load())
}

// shardsOf returns the number of shards that the subscribers of an App own.
func shardsOf(app *millrace.App) (n int) {
	for _, c := range app.Components() {
		if sub, ok := c.(*subscriber.Subscriber); ok {
			n += len(sub.Shards())
		}
	}
	return n
}
