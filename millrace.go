// Package millrace wires an event sourced application: one App opens the tables, runs repositories,
// projections, process managers and Watermill handlers on one router, and stops them in order.
//
//	config := journal.Config{Layout: journal.Packed, Shards: 4} // they stay as they are
//	app, err := millrace.Open(ctx, client, millrace.Config{Prefix: "shop-", Journal: config})
//	orders, err := millrace.Repository(app, order.Definition, repository.Config{})
//	saga, err := millrace.Process(ctx, app, fulfilment.Definition, []string{"order", "payment"}, process.Config{})
//	err = app.HandleCommands(command.Handler("ship-order", orders, ship))
//	history, err := app.Project(millrace.Group{Name: "history", Topics: []string{"order"}}, reactions...)
//	prices, err := app.ReadModel(ctx, readmodel.Config{Name: "prices", Topics: []string{"order"}}, build)
//	err = app.HandleEvents(millrace.Group{Name: "mails", Topics: []string{"order"}}, cqrs.NewGroupEventHandler(sendMail))
//	err = app.Serve(listener, server)
//	err = app.Run(ctx) // until ctx ends, or stop, err := app.Start(ctx)
//
// An App is optional: a program can do the same with the packages below it. [App.Journal],
// [App.Router], [App.Groups] and [App.Publisher] return what an App is made of.
//
// # Tables
//
// Open creates the tables that are missing, with names that begin with Config.Prefix: journal,
// snapshot and checkpoint. [Process] creates the table process, and [App.ReadModel] readmodel. The
// tables that projections write to belong to the application (projection.CreateTable). With
// [Config].ExistingTables an App creates none, and reports those that are missing.
//
// # Events of old types
//
// The definitions passed to [Repository] and [Process] upcast the events of their aggregates, for
// all handlers, projections, read models and process managers that are added after them.
//
// # Commands
//
// [App.HandleCommands] adds the handlers of the commands of one topic, [Config].CommandTopic, in
// one consumer group, "commands". Process managers publish their commands there. Commands with the
// same aggregate id are handled in order.
//
// # Start and stop
//
// [App.Run] starts the handlers first, then the process managers and read models, then the parts in
// the order in which they were added. Requests of the start that DynamoDB throttles or does not
// answer are repeated for up to 30 seconds.
//
// When its context ends, or a part fails, [App.Ready] returns [ErrNotRunning] from then on. Run
// stops the parts in the reverse order, then the handlers, then the process managers and read
// models, and at last the publisher. Each of these has a time limit, so Run returns within
// [Config].StopTimeout, or a few seconds later.
//
// # Hooks
//
// Metrics: metrics.Collectors(app) returns the collectors of all that was added. Traces:
// Config.Middleware takes tracing.Middleware, process.Config.Middleware takes tracing.Steps;
// correlation and causation ids pass from messages to events, and to commands, without either.
// Health: [App.Ready]. Read models in an SQL database: [App.Handle] with the handler of
// sqlprojection, or a [Part] that runs readmodel.Model.Run. Live pages: [App.Live]. Queries that
// show what their client has written: [App.Consistent].
package millrace

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Config configures an [App]. The zero value works where the tables exist.
type Config struct {
	// Prefix begins the names of all tables, such as "shop-". Default: none.
	Prefix string

	// Journal configures the journal. Its Shards are required to create the tables. Tables that it
	// names are used as they are named; the others get the prefix.
	Journal journal.Config

	// ExistingTables makes Open, [Process] and [App.ReadModel] use existing tables, and create
	// none. Default: missing tables are created.
	ExistingTables bool

	// Subscriber has the settings that the subscribers of all groups share. The App sets Journal,
	// ConsumerGroup, EventTypes and Definitions.
	Subscriber subscriber.Config

	// Configure, if set, changes the settings of the subscriber of each group, such as Failures of
	// "commands". It is called with the names of all groups, those of process managers, commands
	// and read models too, before Group.Configure.
	Configure func(group string, c *subscriber.Config)

	// Marshaler names, encodes and decodes commands, and decodes events for [App.HandleEvents].
	// Default: cqrs.JSONMarshaler with the names of publisher.EventName.
	Marshaler cqrs.CommandEventMarshaler

	// CommandTopic is the topic of commands. Default: "commands".
	CommandTopic string

	// Middleware wraps all handlers, the first one outermost. subscriber.NackReason wraps them, and
	// they wrap Watermill's Recoverer. Default: none.
	Middleware []message.HandlerMiddleware

	// HandlerTimeout is how long handlers have to finish when the App stops. Default:
	// Subscriber.CloseTimeout if that is set, 5 seconds otherwise.
	HandlerTimeout time.Duration

	// StopTimeout limits how long [App.Run] waits for all parts to stop. Default: 30 seconds.
	StopTimeout time.Duration

	// Logger receives the logs of all parts. Default: none.
	Logger watermill.LoggerAdapter
}

func (c *Config) setDefaults() {
	tables := &c.Journal.Tables
	for name, table := range map[string]*string{"journal": &tables.Journal, "snapshot": &tables.Snapshot, "checkpoint": &tables.Checkpoint} {
		if *table == "" {
			*table = c.Prefix + name
		}
	}
	if c.Marshaler == nil {
		c.Marshaler = cqrs.JSONMarshaler{GenerateName: publisher.EventName}
	}
	if c.CommandTopic == "" {
		c.CommandTopic = "commands"
	}
	if c.HandlerTimeout == 0 {
		c.HandlerTimeout = 5 * time.Second
		if c.Subscriber.CloseTimeout > 0 {
			c.HandlerTimeout = c.Subscriber.CloseTimeout
		}
	}
	if c.Subscriber.CloseTimeout == 0 {
		c.Subscriber.CloseTimeout = c.HandlerTimeout
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = 30 * time.Second
	}
	if c.Logger == nil {
		c.Logger = watermill.NopLogger{}
	}
}

func (c Config) validate() error {
	switch {
	case c.Subscriber.Journal != nil, c.Subscriber.ConsumerGroup != "", c.Subscriber.EventTypes != nil, c.Subscriber.Definitions != nil:
		return &ConfigError{"Subscriber", "has a Journal, ConsumerGroup, EventTypes or Definitions, which the App fills in; leave them out"}
	case c.Subscriber.Broadcast:
		return &ConfigError{"Subscriber", "is a broadcast, and groups are not; set Broadcast in Group.Configure"}
	case c.HandlerTimeout < 0:
		return &ConfigError{"HandlerTimeout", "is negative; leave it 0 for the default"}
	case c.StopTimeout < 0:
		return &ConfigError{"StopTimeout", "is negative; leave it 0 for the default"}
	}
	return nil
}

// ConfigError reports a setting that cannot work.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("millrace: %s %s", e.Field, e.Reason) }

// Errors of this package, for errors.Is. [*ConfigError] is for errors.As.
var (
	// ErrStarted reports that the App runs, or has run. An App runs once. Add everything before.
	ErrStarted = errors.New("the app has been started")
	// ErrNotRunning reports that the App has not started yet, is stopping, or has stopped.
	ErrNotRunning = errors.New("the app does not run")
)

// App is the wiring of one process. Its parts are added before [App.Run], by one goroutine; after
// that it is safe for concurrent use.
type App struct {
	config    Config
	client    journal.Client
	journal   *journal.Journal
	groups    *groups.Groups
	publisher *publisher.Publisher
	router    *message.Router

	definitions []aggregate.AnyDefinition
	subscribers []*subscriber.Subscriber
	feeds       []*live.Feed
	workers     []Part // process managers and read models
	parts       []Part
	components  []component
	topics      map[string]bool     // that something added so far handles
	topicsOf    map[string][]string // of each group
	sends       bool                // a process manager sends commands to Config.CommandTopic

	mu       sync.Mutex
	started  bool
	running  chan struct{}
	stopped  chan struct{}
	stopping atomic.Bool
}

// component is something that can be observed.
type component struct {
	name string
	part any
}

// Open creates the tables that are missing, unless [Config].ExistingTables is set. It opens the
// journal, and returns an App without parts.
//
// Errors: [*ConfigError] and those of journal.Create and journal.Open.
func Open(ctx context.Context, client journal.Client, config Config) (*App, error) {
	if client == nil {
		return nil, &ConfigError{"client", "is nil: pass a *dynamodb.Client"}
	}
	if err := config.validate(); err != nil {
		return nil, err
	}
	config.setDefaults()
	if !config.ExistingTables {
		if err := journal.Create(ctx, client, config.Journal); err != nil {
			return nil, err
		}
	}
	j, err := journal.Open(ctx, client, config.Journal)
	if err != nil {
		return nil, err
	}
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, config.Logger)
	if err != nil {
		return nil, err
	}
	router, err := config.newRouter()
	if err != nil {
		return nil, err
	}
	return &App{
		config: config, client: client, journal: j, groups: groups.New(j), publisher: p, router: router,
		topics: map[string]bool{}, topicsOf: map[string][]string{}, running: make(chan struct{}), stopped: make(chan struct{}),
	}, nil
}

func (c Config) newRouter() (*message.Router, error) {
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: c.HandlerTimeout + closing}, c.Logger)
	if err != nil {
		return nil, err
	}
	router.AddMiddleware(subscriber.NackReason)
	router.AddMiddleware(c.Middleware...)
	router.AddMiddleware(middleware.Recoverer)
	return router, nil
}

// closing is how long subscribers take, after their handlers, to store positions and free shards.
const closing = 2 * time.Second

// Journal returns the journal.
func (a *App) Journal() *journal.Journal { return a.journal }

// Groups returns the operations on consumer groups.
func (a *App) Groups() *groups.Groups { return a.groups }

// Publisher returns the publisher to the journal. The App closes it.
func (a *App) Publisher() *publisher.Publisher { return a.publisher }

// ReadModelTable returns the name of the table of [App.ReadModel], Prefix + "readmodel", for tools
// that list read models (readmodel.List).
func (a *App) ReadModelTable() string { return a.config.Prefix + readmodel.DefaultTable }

// Backlog returns what the process managers have left to do that use the App's table, Prefix +
// "process".
func (a *App) Backlog() *process.Backlog {
	return process.NewBacklog(a.client, a.config.Prefix+process.DefaultTable)
}

// Router returns the router of the handlers, for handlers, middlewares and plugins that an App does
// not offer. The App runs and closes it.
func (a *App) Router() *message.Router { return a.router }

// Marshaler returns the marshaler of commands and events.
func (a *App) Marshaler() cqrs.CommandEventMarshaler { return a.config.Marshaler }

// Components yields what was added, with its name: repositories and process managers by their
// aggregate type, subscribers and projections by their consumer group. metrics.Collectors uses it.
func (a *App) Components() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, c := range a.components {
			if !yield(c.name, c.part) {
				return
			}
		}
	}
}

func (a *App) observe(name string, part any) {
	a.components = append(a.components, component{name, part})
}

// Running is closed when all parts have been started.
func (a *App) Running() <-chan struct{} { return a.running }

// Stopped is closed when the App has run and everything has stopped.
func (a *App) Stopped() <-chan struct{} { return a.stopped }

// Ready returns nil if the App has started, is not stopping, and can read the journal. It costs
// half a read unit. Errors: [ErrNotRunning] and those of journal.Journal.Version.
func (a *App) Ready(ctx context.Context) error {
	select {
	case <-a.running:
	default:
		return ErrNotRunning
	}
	if a.stopping.Load() {
		return ErrNotRunning
	}
	_, err := a.journal.Version(ctx, aggregate.ID{Type: "millrace", Value: "ready"}) // an id that no aggregate has
	if errors.Is(err, journal.ErrNotFound) {
		return nil
	}
	return err
}

// readyTimeout is how long a readiness check waits for the journal.
const readyTimeout = 2 * time.Second

// ReadyHandler answers 200 if [App.Ready] returns nil within two seconds. Otherwise it logs the
// error and answers 503, without the error.
func (a *App) ReadyHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := a.Ready(ctx); err != nil {
			if errors.Is(err, ErrNotRunning) {
				a.config.Logger.Debug("The app is not ready", watermill.LogFields{"reason": err})
			} else {
				a.config.Logger.Error("The app is not ready", err, nil)
			}
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ready\n"))
	})
}
