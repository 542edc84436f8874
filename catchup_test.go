package millrace_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

func ExampleApp_CatchUp() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // any *dynamodb.Client
	app, err := millrace.Open(ctx, client, millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	repo, err := millrace.Repository(app, orders, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = app.HandleEvents(millrace.Group{Name: "labels", Topics: []string{"order"}},
		cqrs.NewGroupEventHandler(func(_ context.Context, e *placed) error {
			fmt.Println("label for", e.Item)
			return nil
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := repo.Execute(ctx, "1", place("tea")); err != nil {
		fmt.Println(err)
		return
	}
	order := aggregate.ID{Type: "order", Value: "1"}
	left, err := app.CatchUp(ctx, subscriber.Hint{Aggregate: order, Version: 1})
	fmt.Println("left:", left.Aggregates, err)
	// Output:
	// label for tea
	// left: 0 <nil>
}

// A burst handles the event of its hint, and what follows from it: the step of a process, its
// command, the event of that command, and the projections and read models of all of these.
func TestAnAppCatchesUp(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		app := open(t, db)
		repo, err := millrace.Repository(app, orders, repository.Config{})
		require.NoError(t, err)
		saga, err := millrace.Process(t.Context(), app, shippings, process.Config{}, "order")
		require.NoError(t, err)
		require.NoError(t, app.HandleCommands(command.Handler("ship", repo, func(c *shipOrder) (string, aggregate.Decision[order]) {
			return c.Order, c.decide
		})))
		items := projection.Table{Name: "shop-items", PartitionKey: "order"}
		require.NoError(t, projection.CreateTable(t.Context(), db.Client(), items))
		reactions := func(table projection.Table) projection.Reaction {
			return projection.On(func(_ context.Context, e shipped, r *journal.Record) ([]projection.Write, error) {
				return []projection.Write{projection.Put(types.Put{TableName: &table.Name, Item: table.Key(r.Aggregate.Value)})}, nil
			})
		}
		_, err = app.Project(millrace.Group{Name: "items", Topics: []string{"order"}}, reactions(items))
		require.NoError(t, err)
		model, err := app.ReadModel(t.Context(), readmodel.Config{Name: "model", Topics: []string{"order"}},
			func(ctx context.Context, g readmodel.Generation) ([]projection.Reaction, error) {
				table := projection.Table{Name: g.Table("model"), PartitionKey: "order"}
				return []projection.Reaction{reactions(table)}, projection.CreateTable(ctx, db.Client(), table)
			})
		require.NoError(t, err)
		serving, err := model.Serving(t.Context())
		require.NoError(t, err)

		has := func(table, order string) bool {
			found, err := db.Client().GetItem(t.Context(), &dynamodb.GetItemInput{
				TableName: &table, Key: projection.Table{PartitionKey: "order"}.Key(order),
			})
			require.NoError(t, err)
			return len(found.Item) > 0
		}
		for n, hints := range [][]subscriber.Hint{nil, {{Aggregate: aggregate.ID{Type: "order", Value: "2"}, Version: 1}}, nil} {
			id := fmt.Sprint(n + 1)
			testjournal.Execute(t, repo, id, place("tea"))
			left, err := app.CatchUp(t.Context(), hints...)
			require.NoError(t, err)
			assert.Zero(t, left)
			loaded, err := saga.Repository().Load(t.Context(), id)
			require.NoError(t, err)
			assert.True(t, loaded.State.Done, id)
			assert.True(t, has("shop-items", id), id)
			assert.True(t, has(serving.Table("model"), id), id)
		}
		require.ErrorIs(t, app.Run(t.Context()), millrace.ErrStarted)
		require.ErrorIs(t, app.Handle(millrace.Group{Name: "late", Topics: []string{"order"}}, func(*message.Message) error { return nil }), millrace.ErrStarted)
	})
}

type (
	reminder struct{ Sent bool }
	reminded struct{}
)

func (reminded) EventType() string { return "reminder.sent.v1" }
func (reminded) Apply(r *reminder) { r.Sent = true }

// A sweep fires timeouts that are due.
func TestASweepFiresTimeouts(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		app := open(t, dynamotest.New(t))
		repo, err := millrace.Repository(app, orders, repository.Config{})
		require.NoError(t, err)
		reminders := process.Define(aggregate.Define[reminder]("reminder", begunReminder{}, reminded{}),
			process.On(func(_ placed, in process.Input) string { return in.Source.Value },
				func(reminder, placed, process.Input) (process.Step[reminder], error) {
					return process.Record(begunReminder{}).SetTimeout("late", time.Hour), nil
				}).Starts(),
			process.OnTimeout("late", func(reminder, process.Input) (process.Step[reminder], error) {
				return process.Record(reminded{}), nil
			}))
		saga, err := millrace.Process(t.Context(), app, reminders, process.Config{}, "order")
		require.NoError(t, err)
		testjournal.Execute(t, repo, "1", place("tea"))
		sent := func() bool {
			_, err := app.CatchUp(t.Context())
			require.NoError(t, err)
			loaded, err := saga.Repository().Load(t.Context(), "1")
			require.NoError(t, err)
			return loaded.State.Sent
		}
		assert.False(t, sent())
		time.Sleep(59 * time.Minute)
		assert.False(t, sent())
		time.Sleep(2 * time.Minute)
		assert.True(t, sent())
	})
}

type begunReminder struct{}

func (begunReminder) EventType() string { return "reminder.begun.v1" }
func (begunReminder) Apply(*reminder)   {}

func TestAnAppThatRunsDoesNotCatchUp(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	stop := start(t, app)
	_, err := app.CatchUp(t.Context())
	require.ErrorIs(t, err, millrace.ErrStarted)
	require.NoError(t, stop())
}

// hanging is a broker that does not answer.
type hanging chan struct{}

func (h hanging) Publish(string, ...*message.Message) error { <-h; return nil }
func (hanging) Close() error                                { return nil }

func TestABrokerThatHangsDoesNotHoldUpABurst(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		broker := make(hanging)
		defer close(broker)
		app := open(t, dynamotest.New(t), func(c *millrace.Config) { c.Wakeups.Publisher = broker })
		repo, err := millrace.Repository(app, orders, repository.Config{})
		require.NoError(t, err)
		testjournal.Execute(t, repo, "1", place("tea"))
		began := time.Now()
		_, err = app.CatchUp(t.Context())
		require.NoError(t, err)
		assert.Less(t, time.Since(began), time.Minute)
	})
}

// A read model that cannot be built does not prevent the rest.
func TestAReadModelThatPanicsIsAnErrorOfTheBurst(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	for name, fail := range map[string]func() error{
		"panics": func() error { panic("no table") },
		"fails":  func() error { return errors.New("no access") },
	} {
		_, err = app.ReadModel(t.Context(), readmodel.Config{Name: name, Topics: []string{"order"}},
			func(context.Context, readmodel.Generation) ([]projection.Reaction, error) { return nil, fail() })
		require.NoError(t, err)
	}
	handled := 0
	require.NoError(t, app.Handle(millrace.Group{Name: "audit", Topics: []string{"order"}}, func(*message.Message) error {
		handled++
		return nil
	}))
	testjournal.Execute(t, repo, "1", place("tea"))
	_, err = app.CatchUp(t.Context())
	require.ErrorContains(t, err, "build panicked: no table")
	require.ErrorContains(t, err, "no access")
	assert.Equal(t, 1, handled)
}

// The build function of a read model that hangs costs at most half of the time.
func TestAReadModelThatHangsDoesNotHoldUpABurst(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{20 * time.Second, 0} {
		testdb.WithFakeTime(t, func(t *testing.T) {
			app := open(t, dynamotest.New(t))
			_, err := app.ReadModel(t.Context(), readmodel.Config{Name: "hangs", Topics: []string{"order"}},
				func(ctx context.Context, _ readmodel.Generation) ([]projection.Reaction, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				})
			require.NoError(t, err)
			built := false
			_, err = app.ReadModel(t.Context(), readmodel.Config{Name: "later", Topics: []string{"order"}},
				func(context.Context, readmodel.Generation) ([]projection.Reaction, error) {
					built = true
					return nil, errors.New("no access")
				})
			require.NoError(t, err)
			var handled atomic.Int64
			require.NoError(t, app.Handle(millrace.Group{Name: "mails", Topics: []string{"order"}}, func(*message.Message) error {
				handled.Add(1)
				return nil
			}))
			testjournal.Append(t, app.Journal(), storage.Commit{
				Aggregate: aggregate.ID{Type: "order", Value: "1"}, Events: []storage.Event{{Type: "placed"}},
			})
			ctx, began := t.Context(), time.Now()
			if limit > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, limit)
				defer cancel()
			}
			_, err = app.CatchUp(ctx)
			require.ErrorContains(t, err, "create its tables when you deploy")
			assert.True(t, built)
			assert.EqualValues(t, 1, handled.Load())
			assert.LessOrEqual(t, time.Since(began), cmp.Or(limit, time.Minute))
		})
	}
}
