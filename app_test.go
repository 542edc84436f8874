package millrace_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/metrics"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// patience limits the time that a test waits before it fails.
const patience = 2 * time.Minute

type (
	order   struct{ Shipped bool }
	placed  struct{ Item string }
	shipped struct{}

	shipping struct{ Done bool }
	begun    struct{}
	over     struct{}

	shipOrder struct{ Order string }
)

func (placed) EventType() string  { return "order.placed.v2" }
func (shipped) EventType() string { return "order.shipped.v1" }
func (placed) Apply(*order)       {}
func (shipped) Apply(o *order)    { o.Shipped = true }
func (begun) EventType() string   { return "shipping.begun.v1" }
func (over) EventType() string    { return "shipping.over.v1" }
func (begun) Apply(*shipping)     {}
func (over) Apply(s *shipping)    { s.Done = true }
func (c shipOrder) decide(order) (aggregate.Events[order], error) {
	return aggregate.Events[order]{shipped{}}, nil
}

var (
	orders    = aggregate.Define[order]("order", placed{}, shipped{})
	shippings = process.Define(aggregate.Define[shipping]("shipping", begun{}, over{}),
		process.On(func(_ placed, in process.Input) string { return in.Source.Value },
			func(_ shipping, _ placed, in process.Input) (process.Step[shipping], error) {
				return process.Record(begun{}).Send(shipOrder{in.Source.Value}), nil
			}).Starts(),
		process.On(func(_ shipped, in process.Input) string { return in.Source.Value },
			func(shipping, shipped, process.Input) (process.Step[shipping], error) {
				return process.Record(over{}), nil
			}),
	).EndsWhen(func(s shipping) bool { return s.Done })
)

func place(item string) aggregate.Decision[order] {
	return func(order) (aggregate.Events[order], error) { return aggregate.Events[order]{placed{item}}, nil }
}

// open opens an App on a database.
func open(t *testing.T, db *dynamotest.DB, change ...func(*millrace.Config)) *millrace.App {
	t.Helper()
	config := millrace.Config{
		Prefix: "shop-", Journal: journal.Config{Layout: journal.Classic, Shards: 2},
		Subscriber: func(_ string, c *subscriber.Config) {
			c.Timing.PollInterval, c.Timing.MaxPollInterval = 5*time.Millisecond, 20*time.Millisecond
		},
	}
	for _, c := range change {
		c(&config)
	}
	app, err := millrace.Open(t.Context(), db.Client(), config)
	require.NoError(t, err)
	return app
}

// subscribing returns a change of the settings of all subscribers.
func subscribing(change func(group string, c *subscriber.Config)) func(*millrace.Config) {
	return func(c *millrace.Config) {
		before := c.Subscriber
		c.Subscriber = func(group string, s *subscriber.Config) {
			before(group, s)
			change(group, s)
		}
	}
}

// start runs an App, and returns a function that stops it and waits for its end.
func start(t *testing.T, app *millrace.App) (stop func() error) {
	t.Helper()
	stop, err := app.Start(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stop()) })
	return stop
}

func TestStartReturnsWhenAllRunsOrWhyItDoesNot(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	require.NoError(t, app.Ready(t.Context()))
	_, err = app.Start(t.Context())
	require.ErrorIs(t, err, millrace.ErrStarted)
	require.ErrorIs(t, app.Run(t.Context()), millrace.ErrStarted)
	select {
	case <-app.Stopped():
		require.Fail(t, "it still runs")
	default:
	}
	require.NoError(t, stop())
	require.NoError(t, stop(), "it stops once")
	<-app.Stopped()
	require.ErrorIs(t, app.Ready(t.Context()), millrace.ErrNotRunning)

	db := dynamotest.New(t)
	app = open(t, db)
	require.NoError(t, app.Handle(millrace.Group{Name: "audit", Topics: []string{"order"}}, func(*message.Message) error { return nil }))
	db.Inject(dynamotest.Refuse(&smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no access"}), dynamotest.Table("shop-checkpoint"))
	_, err = app.Start(t.Context())
	require.ErrorIs(t, err, journal.ErrAccess)
	<-app.Stopped()

	app = open(t, dynamotest.New(t))
	require.NoError(t, app.Handle(millrace.Group{Name: "audit", Topics: []string{"order"}}, func(*message.Message) error { return nil }))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = app.Start(over)
	require.ErrorIs(t, err, context.Canceled)
}

func TestAServiceThatEndsAfterTheStartIsAnErrorOfStop(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	fail := make(chan struct{})
	require.NoError(t, app.Add(millrace.Service{Name: "broken", Run: func(context.Context) error {
		<-fail
		return errors.New("no disk")
	}}))
	stop, err := app.Start(t.Context())
	require.NoError(t, err)
	close(fail)
	await.End(t, app.Stopped(), "the App ends with its service")
	require.EqualError(t, stop(), "broken: no disk")
}

func ExampleApp_Start() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // any *dynamodb.Client
	app, err := millrace.Open(ctx, client, millrace.Config{Journal: journal.Config{Layout: journal.Classic, Shards: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	stop, err := app.Start(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("not ready:", app.Ready(ctx))
	fmt.Println("not stopped:", stop())
	// Output:
	// not ready: <nil>
	// not stopped: <nil>
}

func TestAnAppRunsAllThatWasAdded(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app := open(t, db)
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	saga, err := millrace.Process(t.Context(), app, shippings, process.Config{PollInterval: 10 * time.Millisecond}, "order")
	require.NoError(t, err)
	require.NoError(t, app.HandleCommands(command.Handler("ship", repo, func(c *shipOrder) (string, aggregate.Decision[order]) {
		return c.Order, c.decide
	})))
	items := projection.Table{Name: "shop-items", PartitionKey: "order"}
	require.NoError(t, projection.CreateTable(t.Context(), db.Client(), items))
	_, err = app.Project(millrace.Group{Name: "items", Topics: []string{"order"}},
		projection.On(func(_ context.Context, e placed, r *journal.Record) ([]projection.Write, error) {
			item := items.Key(r.Aggregate.Value)
			item["item"] = &types.AttributeValueMemberS{Value: e.Item}
			return []projection.Write{projection.Put(types.Put{TableName: &items.Name, Item: item})}, nil
		}))
	require.NoError(t, err)
	mails := make(chan string, 10)
	require.NoError(t, app.HandleEvents(millrace.Group{Name: "mails", Topics: []string{"order"}},
		cqrs.NewGroupEventHandler(func(ctx context.Context, _ *shipped) error {
			mails <- cqrs.OriginalMessageFromCtx(ctx).Metadata.Get(subscriber.AggregateIDKey)
			return nil
		})))
	audit := make(chan string, 10)
	require.NoError(t, app.Handle(millrace.Group{Name: "audit", Topics: []string{"order", "shipping"}}, func(msg *message.Message) error {
		audit <- msg.Metadata.Get(subscriber.NameKey)
		return nil
	}))
	require.ErrorIs(t, app.Ready(t.Context()), millrace.ErrNotRunning)
	stop := start(t, app)
	require.NoError(t, app.Ready(t.Context()))

	written := testjournal.Execute(t, repo, "1", place("tea"))
	assert.Equal(t, "1", nextOf(t, mails))
	var all []string
	for range 4 {
		all = append(all, nextOf(t, audit))
	}
	assert.ElementsMatch(t, []string{"order.placed.v2", "shipping.begun.v1", "order.shipped.v1", "shipping.over.v1"}, all)
	require.NoError(t, app.Groups().WaitApplied(t.Context(), "items", written.ID, written.Version))
	loaded, err := saga.Repository().Load(t.Context(), "1")
	require.NoError(t, err)
	assert.True(t, loaded.State.Done)

	registry := prometheus.NewRegistry()
	for _, c := range metrics.Collectors(app.Components()) {
		require.NoError(t, registry.Register(c))
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range families {
		names[f.GetName()] = true
	}
	for _, name := range []string{
		"millrace_repository_commits_total", "millrace_subscriber_messages_acked_total",
		"millrace_projection_events_applied_total", "millrace_process_steps_total",
	} {
		assert.True(t, names[name], "%s of %v", name, names)
	}
	require.NoError(t, stop())
	require.ErrorIs(t, app.Ready(t.Context()), millrace.ErrNotRunning)
	require.ErrorIs(t, app.Run(t.Context()), millrace.ErrStarted)
	require.ErrorIs(t, app.Handle(millrace.Group{Name: "late", Topics: []string{"order"}}, func(*message.Message) error { return nil }), millrace.ErrStarted)
}

func nextOf(t *testing.T, from <-chan string) string {
	t.Helper()
	return await.Receive(t, from, "a value")
}

func TestAReadModelIsRebuiltWhileItServes(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app := open(t, db)
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	model, err := app.ReadModel(t.Context(), readmodel.Config{Name: "items", Topics: []string{"order"}, Refresh: 10 * time.Millisecond},
		func(ctx context.Context, g readmodel.Generation) ([]projection.Reaction, error) {
			items := projection.Table{Name: "shop-" + g.Table("items"), PartitionKey: "order"}
			return []projection.Reaction{projection.On(func(_ context.Context, _ placed, r *journal.Record) ([]projection.Write, error) {
				return []projection.Write{projection.Put(types.Put{TableName: &items.Name, Item: items.Key(r.Aggregate.Value)})}, nil
			})}, projection.CreateTable(ctx, db.Client(), items)
		})
	require.NoError(t, err)
	stop := start(t, app)
	first, err := model.Serving(t.Context())
	require.NoError(t, err)
	next, err := model.Begin(t.Context())
	require.NoError(t, err)
	written := testjournal.Execute(t, repo, "1", place("tea"))

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, g := range []readmodel.Generation{first, next} {
		require.NoError(t, app.Groups().WaitApplied(ctx, g.Group(), written.ID, written.Version), g.String())
		table := projection.Table{Name: "shop-" + g.Table("items"), PartitionKey: "order"}
		found, err := db.Client().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table.Name, Key: table.Key("1")})
		require.NoError(t, err)
		assert.NotEmpty(t, found.Item, g.String())
	}
	require.NoError(t, model.CatchUp(ctx, next, nil))
	require.NoError(t, model.Switch(ctx, next))
	require.NoError(t, stop())
}

func TestHandlersGetEventsOfToday(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app := open(t, db)
	msg := message.NewMessage(watermill.NewUUID(), []byte(`{"Name":"tea"}`))
	msg.Metadata.Set("aggregate_id", "1")
	msg.Metadata.Set("name", "order.placed.v1")
	require.NoError(t, app.Publisher().Publish("order", msg))
	_, err := millrace.Repository(app, orders.WithUpcasters(aggregate.Upcast("order.placed.v1", func(old struct{ Name string }) placed {
		return placed{old.Name}
	})), repository.Config{})
	require.NoError(t, err)
	items := make(chan string, 1)
	require.NoError(t, app.HandleEvents(millrace.Group{Name: "items", Topics: []string{"order"}},
		cqrs.NewGroupEventHandler(func(_ context.Context, e *placed) error {
			items <- e.Item
			return nil
		})))
	start(t, app)
	assert.Equal(t, "tea", nextOf(t, items))
}

func TestServicesStopInTheReverseOrderAndHandlersAfterThem(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	var mu sync.Mutex
	var stopped []string
	note := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		stopped = append(stopped, name)
	}
	for _, name := range []string{"feed", "server"} {
		end := make(chan struct{})
		require.NoError(t, app.Add(millrace.Service{
			Name: name,
			Run:  func(context.Context) error { <-end; return nil },
			Stop: func(context.Context) error {
				note(name)
				assert.False(t, app.Router().IsClosed(), "handlers handle the events of requests")
				close(end)
				return nil
			},
		}))
	}
	require.NoError(t, app.Add(millrace.Service{Name: "ticker", Run: func(ctx context.Context) error {
		<-ctx.Done()
		note("ticker")
		return ctx.Err()
	}}))
	require.NoError(t, start(t, app)())
	mu.Lock()
	defer mu.Unlock()
	assert.ElementsMatch(t, []string{"ticker", "server", "feed"}, stopped)
	assert.Less(t, index(stopped, "server"), index(stopped, "feed"))
}

func index(all []string, one string) int {
	for i, s := range all {
		if s == one {
			return i
		}
	}
	return -1
}

func TestAServiceThatEndsEndsTheApp(t *testing.T) {
	t.Parallel()
	for name, ended := range map[string]error{"broken: no disk": errors.New("no disk"), "broken: has ended by itself": nil} {
		app := open(t, dynamotest.New(t))
		require.NoError(t, app.Add(millrace.Service{Name: "broken", Run: func(context.Context) error { return ended }}))
		require.EqualError(t, app.Run(t.Context()), name)
	}
}

func TestAnAppThatCannotStartSaysWhyAndStopsItsServices(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app := open(t, db)
	require.NoError(t, app.Handle(millrace.Group{Name: "audit", Topics: []string{"order"}}, func(*message.Message) error { return nil }))
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	require.NoError(t, err)
	require.NoError(t, app.Serve(listener, &http.Server{ReadHeaderTimeout: time.Second}))
	denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no access to the positions"}
	db.Inject(dynamotest.Refuse(denied), dynamotest.Table("shop-checkpoint"))

	require.ErrorContains(t, app.Run(t.Context()), "no access to the positions")
	_, err = listener.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestAnAppStartsAmidThrottling(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app := open(t, db)
	require.NoError(t, app.Handle(millrace.Group{Name: "audit", Topics: []string{"order"}}, func(*message.Message) error { return nil }))
	db.Inject(dynamotest.Throttle(), dynamotest.Table("shop-checkpoint"), dynamotest.Times(20))
	start(t, app)
}

func TestAnAppThatIsNotToStartAnyMoreStops(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app := open(t, db)
	require.NoError(t, app.Handle(millrace.Group{Name: "audit", Topics: []string{"order"}}, func(*message.Message) error { return nil }))
	fault := db.Inject(dynamotest.Latency(time.Hour, time.Hour), dynamotest.Table("shop-checkpoint"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx) }()
	require.Eventually(t, func() bool { return fault.Fired() > 0 }, patience, time.Millisecond, "it tries to start")
	cancel()
	assert.NoError(t, await.Receive(t, ended, "it must not hang"))
}

func TestAServiceThatDoesNotStopHoldsUpTheAppForALimitedTime(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		app := open(t, dynamotest.New(t), func(c *millrace.Config) { c.StopTimeout = 50 * time.Millisecond })
		hang := make(chan struct{})
		t.Cleanup(func() { close(hang) })
		require.NoError(t, app.Add(millrace.Service{Name: "stubborn", Run: func(context.Context) error { <-hang; return nil }}))
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-app.Running()
			cancel()
		}()
		require.EqualError(t, app.Run(ctx), "not stopped within 50ms: stubborn")
	})
}

func TestAStopThatHangsLeavesTimeForTheHandlers(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		app := open(t, dynamotest.New(t), func(c *millrace.Config) { c.StopTimeout = 4 * time.Second })
		hang := make(chan struct{})
		t.Cleanup(func() { close(hang) })
		stopping := make(chan error, 1)
		require.NoError(t, app.Add(millrace.Service{
			Name: "stubborn",
			Run:  func(ctx context.Context) error { <-ctx.Done(); return nil },
			Stop: func(context.Context) error {
				stopping <- app.Ready(t.Context())
				<-hang
				return nil
			},
		}))
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-app.Running()
			cancel()
		}()
		require.EqualError(t, app.Run(ctx), "stop stubborn: context deadline exceeded")
		require.ErrorIs(t, <-stopping, millrace.ErrNotRunning)
		assert.True(t, app.Router().IsClosed())
	})
}

func TestAServerFinishesItsRequests(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	require.NoError(t, err)
	arrived, goOn := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("/readyz", app.ReadyHandler())
	mux.HandleFunc("/slow", func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-goOn
		fmt.Fprint(w, "done")
	})
	require.NoError(t, app.Serve(listener, &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}))
	stop := start(t, app)
	assert.Equal(t, "ready\n", get(t, "http://"+listener.Addr().String()+"/readyz"))
	reply := make(chan string, 1)
	go func() { reply <- get(t, "http://"+listener.Addr().String()+"/slow") }()
	<-arrived
	go func() { close(goOn) }()
	require.NoError(t, stop())
	assert.Equal(t, "done", nextOf(t, reply))
}

func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url) //nolint:noctx,gosec // it ends with the test
	if !assert.NoError(t, err) {
		return ""
	}
	defer func() { assert.NoError(t, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	assert.NoError(t, err)
	return string(body)
}

func TestAPanicInAHandlerIsAFailure(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app := open(t, db, subscribing(func(_ string, c *subscriber.Config) { c.Failures = subscriber.Skip(1) }))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	require.NoError(t, app.Handle(millrace.Group{Name: "audit", Topics: []string{"order"}}, func(*message.Message) error { panic("no order") }))
	start(t, app)
	testjournal.Execute(t, repo, "1", place("tea"))
	require.Eventually(t, func() bool {
		for e, err := range app.Groups().Of("audit", "order").Skipped(t.Context(), aggregate.ID{}, 0) {
			if errors.Is(err, groups.ErrNoGroup) { // no member has joined yet
				return false
			}
			return assert.NoError(t, err) && assert.Contains(t, e.Reason, "no order")
		}
		return false
	}, patience, 10*time.Millisecond)
}

func TestAPanicWhileAReadModelIsBuiltIsTriedAgain(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	var builds atomic.Int64
	_, err := app.ReadModel(t.Context(), readmodel.Config{Name: "items", Topics: []string{"order"}, Refresh: 10 * time.Millisecond},
		func(context.Context, readmodel.Generation) ([]projection.Reaction, error) {
			if builds.Add(1) == 1 {
				panic("no tables")
			}
			return []projection.Reaction{noWrites}, nil
		})
	require.NoError(t, err)
	stop := start(t, app)
	require.Eventually(t, func() bool { return builds.Load() >= 2 }, patience, 10*time.Millisecond)
	require.NoError(t, stop())
}

func TestAnAppSaysThatNobodyHandlesItsCommands(t *testing.T) {
	t.Parallel()
	for _, handles := range []bool{false, true} {
		logger := &hints{}
		app := open(t, dynamotest.New(t), func(c *millrace.Config) { c.Logger = logger })
		repo, err := millrace.Repository(app, orders, repository.Config{})
		require.NoError(t, err)
		_, err = millrace.Process(t.Context(), app, shippings, process.Config{}, "order")
		require.NoError(t, err)
		if handles {
			require.NoError(t, app.HandleCommands(command.Handler("ship", repo, func(c *shipOrder) (string, aggregate.Decision[order]) {
				return c.Order, c.decide
			})))
		}
		require.NoError(t, start(t, app)())
		assert.Equal(t, !handles, logger.noCommands.Load())
	}
}

// hints is a logger that notes whether one message was logged.
type hints struct {
	watermill.NopLogger
	noCommands atomic.Bool
}

func (h *hints) With(watermill.LogFields) watermill.LoggerAdapter { return h }

func (h *hints) Info(msg string, _ watermill.LogFields) {
	if strings.Contains(msg, "handles no commands") {
		h.noCommands.Store(true)
	}
}

// The subscriber splits an event into messages without positions, which a projection refuses.
func TestAProjectionUpcastsEventsWhateverIsConfigured(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		split := orders.WithUpcasters(aggregate.Split("order.placed-twice.v1", func(old struct{ First, Second string }) ([]placed, error) {
			return []placed{{old.First}, {old.Second}}, nil
		}))
		app := open(t, dynamotest.New(t), subscribing(func(_ string, c *subscriber.Config) {
			c.Definitions = []aggregate.AnyDefinition{split}
		}))
		msg := message.NewMessage(watermill.NewUUID(), []byte(`{"First":"tea","Second":"milk"}`))
		msg.Metadata.Set("aggregate_id", "1")
		msg.Metadata.Set("name", "order.placed-twice.v1")
		require.NoError(t, app.Publisher().Publish("order", msg))
		_, err := millrace.Repository(app, split, repository.Config{})
		require.NoError(t, err)
		items := make(chan string, 2)
		_, err = app.Project(millrace.Group{Name: "items", Topics: []string{"order"}},
			projection.On(func(_ context.Context, e placed, _ *journal.Record) ([]projection.Write, error) {
				items <- e.Item
				return nil, nil
			}))
		require.NoError(t, err)
		start(t, app)
		assert.Equal(t, "tea", nextOf(t, items))
		assert.Equal(t, "milk", nextOf(t, items))
	})
}

func TestPositionsOfProjectionsAreStoredSoonUnlessConfigured(t *testing.T) {
	t.Parallel()
	for configured, want := range map[time.Duration]time.Duration{0: 100 * time.Millisecond, time.Second: time.Second} {
		got := map[string]time.Duration{}
		app := open(t, dynamotest.New(t), subscribing(func(group string, c *subscriber.Config) {
			c.Timing.CommitInterval = cmp.Or(configured, c.Timing.CommitInterval)
			got[group] = c.Timing.CommitInterval
		}))
		topics := []string{"order"}
		_, err := app.Project(millrace.Group{Name: "items", Topics: topics}, noWrites)
		require.NoError(t, err)
		audit := millrace.Group{Name: "audit", Topics: topics, Subscriber: func(c *subscriber.Config) {
			assert.Equal(t, configured, c.Timing.CommitInterval, "the function of the App comes before that of the group")
		}}
		require.NoError(t, app.Handle(audit, func(*message.Message) error { return nil }))
		assert.Equal(t, map[string]time.Duration{"items": want, "audit": configured}, got)
	}
}

func TestASecondCallOfHandleCommandsIsNamed(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	h := cqrs.NewCommandHandler("ship", func(context.Context, *shipOrder) error { return nil })
	require.NoError(t, app.HandleCommands(h))
	require.EqualError(t, app.HandleCommands(h), "millrace: HandleCommands was called twice; pass all handlers in one call")
	group := millrace.Group{Name: "commands", Topics: []string{"order"}}
	require.ErrorContains(t, app.Handle(group, func(*message.Message) error { return nil }), "the name of another group")
}

func TestWhatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	handle := func(*message.Message) error { return nil }
	for name, add := range map[string]func(*millrace.App) error{
		"no name":   func(a *millrace.App) error { return a.Handle(millrace.Group{Topics: []string{"order"}}, handle) },
		"no topics": func(a *millrace.App) error { return a.Handle(millrace.Group{Name: "audit"}, handle) },
		"twice": func(a *millrace.App) error {
			g := millrace.Group{Name: "audit", Topics: []string{"order"}}
			return errors.Join(a.Handle(g, handle), a.Handle(g, handle))
		},
		"no handlers": func(a *millrace.App) error {
			return a.HandleEvents(millrace.Group{Name: "audit", Topics: []string{"order"}})
		},
		"no commands": func(a *millrace.App) error { return a.HandleCommands() },
		"nil": func(a *millrace.App) error {
			return a.Handle(millrace.Group{Name: "audit", Topics: []string{"order"}}, nil)
		},
		"a nil handler": func(a *millrace.App) error {
			return a.HandleEvents(millrace.Group{Name: "audit", Topics: []string{"order"}}, nil)
		},
		"a topic that a projection lacks": func(a *millrace.App) error {
			if _, err := millrace.Repository(a, orders, repository.Config{}); err != nil {
				return err
			}
			_, err := a.Project(millrace.Group{Name: "audit", Topics: []string{"orders"}}, noWrites)
			return err
		},
		"a topic that a handler lacks": func(a *millrace.App) error {
			if _, err := millrace.Repository(a, orders, repository.Config{}); err != nil {
				return err
			}
			h := cqrs.NewGroupEventHandler(func(context.Context, *shipped) error { return nil })
			return a.HandleEvents(millrace.Group{Name: "audit", Topics: []string{"shipping"}}, h)
		},
		"a topic that a process lacks": func(a *millrace.App) error {
			if _, err := millrace.Repository(a, orders, repository.Config{}); err != nil {
				return err
			}
			_, err := millrace.Process(t.Context(), a, shippings, process.Config{}, "shipping")
			return err
		},
		"a live page of an unknown group": func(a *millrace.App) error {
			_, err := a.Live(live.Config{Group: "audit"})
			return err
		},
		"no reactions": func(a *millrace.App) error {
			_, err := a.Project(millrace.Group{Name: "audit", Topics: []string{"order"}})
			return err
		},
		"a nil command": func(a *millrace.App) error { return a.HandleCommands(nil) },
		"two handlers of a type": func(a *millrace.App) error {
			h := cqrs.NewGroupEventHandler(func(context.Context, *shipped) error { return nil })
			return a.HandleEvents(millrace.Group{Name: "audit", Topics: []string{"order"}}, h, h)
		},
		"a group in two calls": func(a *millrace.App) error {
			if err := a.Handle(millrace.Group{Name: "audit", Topics: []string{"order"}}, handle); err != nil {
				return err
			}
			return a.Handle(millrace.Group{Name: "audit", Topics: []string{"shipping"}}, handle)
		},
		"a name of a handler twice": func(a *millrace.App) error {
			if err := a.Handle(millrace.Group{Name: "audit", Topics: []string{"a/b"}}, handle); err != nil {
				return err
			}
			return a.Handle(millrace.Group{Name: "audit/a", Topics: []string{"b"}}, handle)
		},
		"a topic without a name": func(a *millrace.App) error {
			return a.Handle(millrace.Group{Name: "audit", Topics: []string{""}}, handle)
		},
		"a read model twice": func(a *millrace.App) error {
			for range 2 {
				_, err := a.ReadModel(t.Context(), readmodel.Config{Name: "items", Topics: []string{"order"}}, noReactions)
				if err != nil {
					return err
				}
			}
			return nil
		},
		"no build": func(a *millrace.App) error {
			_, err := a.ReadModel(t.Context(), readmodel.Config{Name: "items", Topics: []string{"order"}}, nil)
			return err
		},
		"no run":    func(a *millrace.App) error { return a.Add(millrace.Service{Name: "nothing"}) },
		"no server": func(a *millrace.App) error { return a.Serve(nil, nil) },
		"a name twice": func(a *millrace.App) error {
			p := millrace.Service{Name: "ticker", Run: func(context.Context) error { return nil }}
			return errors.Join(a.Add(p), a.Add(p))
		},
		"a definition after its handler": func(a *millrace.App) error {
			if err := a.Handle(millrace.Group{Name: "audit", Topics: []string{"order"}}, handle); err != nil {
				return err
			}
			_, err := millrace.Repository(a, orders, repository.Config{})
			return err
		},
		"two repositories": func(a *millrace.App) error {
			_, first := millrace.Repository(a, orders, repository.Config{})
			_, second := millrace.Repository(a, orders, repository.Config{})
			return errors.Join(first, second)
		},
		"no client": func(*millrace.App) error {
			_, err := millrace.Open(t.Context(), nil, millrace.Config{})
			return err
		},
		"another group": func(a *millrace.App) error {
			other := func(c *subscriber.Config) { c.ConsumerGroup = "other" }
			return a.Handle(millrace.Group{Name: "audit", Topics: []string{"order"}, Subscriber: other}, handle)
		},
		"a topic twice": func(app *millrace.App) error {
			return app.Handle(millrace.Group{Name: "twice", Topics: []string{"order", "order"}}, func(*message.Message) error { return nil })
		},
		"a projection that defers": func(app *millrace.App) error {
			late := func(c *subscriber.Config) { c.Failures = subscriber.Defer(subscriber.Backoff{}) }
			_, err := app.Project(millrace.Group{Name: "totals", Topics: []string{"order"}, Subscriber: late}, noWrites)
			return err
		},
		"a negative timeout": func(*millrace.App) error {
			_, err := millrace.Open(t.Context(), db.Client(), millrace.Config{StopTimeout: -1})
			return err
		},
	} {
		var refused *millrace.ConfigError
		require.ErrorAs(t, add(open(t, db)), &refused, name)
		assert.NotEmpty(t, refused.Reason, name)
	}
}

var noWrites = projection.On(func(context.Context, placed, *journal.Record) ([]projection.Write, error) { return nil, nil })

func noReactions(context.Context, readmodel.Generation) ([]projection.Reaction, error) {
	return nil, nil
}

func TestAReadModelWithATopicTwiceIsRefused(t *testing.T) {
	t.Parallel()
	_, err := open(t, dynamotest.New(t)).ReadModel(t.Context(), readmodel.Config{Name: "items", Topics: []string{"order", "order"}}, noReactions)
	require.ErrorAs(t, err, new(*readmodel.ConfigError))
}

func TestWhatCouldNotBeAddedCanBeAddedAgain(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	app := open(t, db)
	_, err := millrace.Repository(app, orders, repository.Config{MaxAttempts: -1})
	require.Error(t, err)
	_, err = millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)

	topics := []string{"order"}
	_, err = millrace.Process(t.Context(), app, shippings, process.Config{})
	require.Error(t, err, "no topics")
	offline := db.Inject(dynamotest.CutConnection(), dynamotest.Table("shop-process"))
	// Without a deadline, Process would retry for 30 seconds.
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = millrace.Process(soon, app, shippings, process.Config{}, topics...)
	require.Error(t, err)
	offline.Remove()
	_, err = millrace.Process(t.Context(), app, shippings, process.Config{}, topics...)
	require.NoError(t, err)

	handler := cqrs.NewGroupEventHandler(func(context.Context, *shipped) error { return nil })
	g := millrace.Group{Name: "mails", Topics: topics, Subscriber: func(c *subscriber.Config) { c.MaxInFlight = -1 }}
	require.Error(t, app.HandleEvents(g, handler))
	g.Subscriber = nil
	require.NoError(t, app.HandleEvents(g, handler))
	registry := prometheus.NewRegistry()
	for _, c := range metrics.Collectors(app.Components()) {
		require.NoError(t, registry.Register(c))
	}
}

func TestAProcessWhoseTableIsMissingIsRefused(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	open(t, db)
	app := open(t, db, func(c *millrace.Config) { c.ExistingTables = true })
	_, err := millrace.Process(t.Context(), app, shippings, process.Config{}, "order")
	require.ErrorIs(t, err, journal.ErrTableMissing)
	require.NoError(t, process.CreateTable(t.Context(), db.Client(), "shop-process"))
	_, err = millrace.Process(t.Context(), app, shippings, process.Config{}, "order")
	require.NoError(t, err)
	for _, err := range app.Backlog().OpenProcesses(t.Context(), process.BacklogQuery{}) {
		require.NoError(t, err)
	}
}

// A program that only writes is an App without handlers.
func TestAnAppWithoutHandlersStops(t *testing.T) {
	t.Parallel()
	db := dynamotest.New(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		require.NoError(t, open(t, db).Run(ended))
		_, err := open(t, db).Start(ended)
		require.ErrorIs(t, err, context.Canceled)
	}
	stop, err := open(t, db).Start(t.Context())
	require.NoError(t, err)
	require.NoError(t, stop())
}

func TestGroupsOfAnAppCanBeConfigured(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	configured := map[string]bool{}
	app := open(t, dynamotest.New(t), subscribing(func(group string, c *subscriber.Config) {
		mu.Lock()
		defer mu.Unlock()
		configured[group] = true
		if group == "commands" {
			c.Failures = subscriber.Park(1)
		}
	}))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	_, err = millrace.Process(t.Context(), app, shippings, process.Config{}, "order")
	require.NoError(t, err)
	_, err = app.Project(millrace.Group{Name: "items", Topics: []string{"order"}}, noWrites)
	require.NoError(t, err)
	_, err = app.ReadModel(t.Context(), readmodel.Config{Name: "prices", Topics: []string{"order"}}, noReactions)
	require.NoError(t, err)
	require.NoError(t, app.HandleCommands(command.Handler("ship", repo, func(shipOrder *shipOrder) (string, aggregate.Decision[order]) {
		return "", shipOrder.decide // an id that no order has
	})))
	start(t, app)
	testjournal.Execute(t, repo, "1", place("tea"))
	require.Eventually(t, func() bool {
		for _, err := range app.Groups().Of("commands", "commands").Parked(t.Context(), aggregate.ID{}) {
			return err == nil
		}
		return false
	}, patience, 10*time.Millisecond, "the command is parked")
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(configured) == 4
	}, patience, 10*time.Millisecond, "%v", configured)
}

// A page shows the events that its client has written, and changes when others write.
func TestPagesAreConsistentAndLive(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	_, err = app.Project(millrace.Group{Name: "items", Topics: []string{"order"}}, noWrites)
	require.NoError(t, err)
	feed, err := app.Live(live.Config{Group: "items"})
	require.NoError(t, err)
	mux := http.NewServeMux()
	queries := make(chan string, 10)
	mux.HandleFunc("/live", func(w http.ResponseWriter, r *http.Request) {
		assert.NoError(t, feed.Serve(w, r, "1", func(context.Context) (live.Update, error) {
			queries <- "query"
			return live.Update{Data: 1}, nil
		}))
	})
	mux.Handle("/query", app.Consistent("items", consistency.Config{Timeout: patience})(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it ends with the test
	require.NoError(t, err)
	require.NoError(t, app.Serve(listener, &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}))
	stop := start(t, app)

	stream, err := http.Get("http://" + listener.Addr().String() + "/live") //nolint:noctx // it ends with the test
	require.NoError(t, err)
	defer stream.Body.Close()
	nextOf(t, queries)
	placed := testjournal.Execute(t, repo, "1", place("tea"))
	nextOf(t, queries)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/query", nil)
	require.NoError(t, err)
	request.Header.Set(consistency.Header, placed.Token().And(aggregate.Token{{ID: aggregate.ID{Type: "other", Value: "1"}, Version: 1}}).String())
	reply, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	assert.Equal(t, http.StatusOK, reply.StatusCode, "the group does not have the other topic")
	require.NoError(t, stop(), "the stream ends before the server stops")
}

// The CloseTimeout of a group may be longer than the StopTimeout of the App.
func TestAHandlerThatDoesNotReturnHoldsUpTheAppForALimitedTime(t *testing.T) {
	t.Parallel()
	app := open(t, dynamotest.New(t), func(c *millrace.Config) { c.StopTimeout, c.HandlerTimeout = time.Second, time.Second })
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	arrived, hang := make(chan struct{}, 10), make(chan struct{})
	t.Cleanup(func() { close(hang) })
	g := millrace.Group{Name: "audit", Topics: []string{"order"}, Subscriber: func(c *subscriber.Config) { c.CloseTimeout = time.Hour }}
	require.NoError(t, app.Handle(g, func(*message.Message) error {
		arrived <- struct{}{}
		<-hang
		return nil
	}))
	stop, err := app.Start(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	testjournal.Execute(t, repo, "1", place("tea"))
	<-arrived
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	require.ErrorContains(t, await.Receive(t, stopped, "it must stop"), "not stopped within 1s: subscribers")
}

func TestExistingTablesAreNotCreated(t *testing.T) {
	t.Parallel()
	_, err := millrace.Open(t.Context(), dynamotest.New(t).Client(), millrace.Config{ExistingTables: true})
	require.ErrorIs(t, err, journal.ErrTableMissing)
}

func TestTheGroupsOfHandlersExistWhenTheAppHasStarted(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		app := open(t, db)
		require.NoError(t, app.Handle(millrace.Group{Name: "mails", Topics: []string{"order"}}, func(*message.Message) error { return nil }))
		slow := db.Inject(dynamotest.Pause(func(context.Context) { time.Sleep(2 * time.Second) }), dynamotest.On("TransactWriteItems"), dynamotest.Times(1))

		stop, err := app.Start(t.Context())

		require.NoError(t, err)
		assert.Equal(t, 1, slow.Fired(), "a transaction makes a group")
		require.NoError(t, app.Groups().Of("mails", "order").Pause(t.Context()))
		require.NoError(t, stop())
	})
}

func TestTheAppStartsAlsoIfAGroupCannotBeJoined(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		app := open(t, db)
		require.NoError(t, app.Handle(millrace.Group{Name: "mails", Topics: []string{"order"}}, func(*message.Message) error { return nil }))
		db.Inject(dynamotest.Throttle(), dynamotest.On("TransactWriteItems"))
		begun := time.Now()

		stop, err := app.Start(t.Context())

		require.NoError(t, err)
		assert.Equal(t, 30*time.Second, time.Since(begun).Round(time.Second))
		require.NoError(t, stop())
	})
}

func TestADelayOfTheStartIsLogged(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db, log := dynamotest.New(t), watermill.NewCaptureLogger()
		throttling := db.Inject(dynamotest.Throttle())
		time.AfterFunc(5*time.Second, throttling.Remove)

		open(t, db, func(c *millrace.Config) { c.Logger = log })

		lines := log.Captured()[watermill.InfoLogLevel]
		require.Len(t, lines, 1)
		assert.Equal(t, dynamo.SlowStart, lines[0].Msg)
		assert.ErrorIs(t, lines[0].Fields["err"].(error), journal.ErrThrottled)
	})
}

// wrapping is a codec that is not the default.
type wrapping struct{ aggregate.Codec }

func TestHandlersOfAnotherCodecNeedAMarshaler(t *testing.T) {
	t.Parallel()
	audit := millrace.Group{Name: "audit", Topics: []string{"order"}}
	handler := cqrs.NewGroupEventHandler(func(context.Context, *placed) error { return nil })
	add := func(config ...func(*millrace.Config)) error {
		app := open(t, dynamotest.New(t), config...)
		_, err := millrace.Repository(app, orders.WithCodec(wrapping{aggregate.JSON}), repository.Config{})
		require.NoError(t, err)
		return app.HandleEvents(audit, handler)
	}

	err := add()

	var invalid *millrace.ConfigError
	require.ErrorAs(t, err, &invalid)
	assert.Equal(t, "Marshaler", invalid.Field)
	assert.ErrorContains(t, err, `the definition of "order"`)
	assert.ErrorContains(t, err, "set Config.Marshaler")
	require.NoError(t, add(func(c *millrace.Config) { c.Marshaler = cqrs.JSONMarshaler{GenerateName: publisher.EventName} }))
}
