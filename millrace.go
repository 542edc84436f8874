// Package millrace wires an event-sourced application on DynamoDB and Watermill. One [App] opens
// the tables, runs repositories, projections, process managers and Watermill handlers on one
// router, and stops them in order.
//
//	app, err := millrace.Open(ctx, client, millrace.Config{
//		Prefix: "post-", Journal: journal.Config{Layout: journal.Packed, Shards: 4},
//	})
//	repo, err := millrace.Repository(app, parcels, repository.Config{})
//	err = app.HandleCommands(command.Handler("register-parcel", repo,
//		func(c *registerParcel) (string, aggregate.Decision[parcel]) { return c.ID, c.decide }))
//	err = app.HandleEvents(millrace.Group{Name: "labels", Topics: []string{"parcel"}},
//		cqrs.NewGroupEventHandler(func(ctx context.Context, e *registered) error {
//			return printLabel(ctx, e.Weight)
//		}))
//	err = app.Run(ctx) // until ctx ends
//
// The package example has the types, and checks the errors. An App is optional: a program can do
// the same with the packages below it. [App.Journal], [App.Router], [App.Groups] and
// [App.Publisher] return the objects that an App consists of.
//
// # What an App runs
//
//   - [Repository]: loads aggregates, and stores their events.
//   - [App.HandleCommands]: handlers of commands that come as messages.
//   - [App.HandleEvents] and [App.Handle]: handlers of events, typed or as messages.
//   - [App.Project]: a projection, which applies each event to a table exactly once.
//   - [App.ProjectRows]: the same with one row for each aggregate, at a quarter of the cost.
//   - [App.ProjectSQL]: a projection to an SQL database, which applies each event exactly once too.
//   - [App.ReadModel], [App.RowReadModel], [App.SQLReadModel]: one that can be rebuilt while it
//     serves queries.
//   - [Process]: a process manager, which reacts to events with commands.
//   - [App.Forward]: events go to other systems, as messages over any Pub/Sub.
//   - [App.Receive]: messages of other systems become commands.
//   - [App.Live]: a feed, which pushes changes to web pages.
//   - [App.Serve] and [App.Add]: an HTTP server, or any other [Service].
//
// [App.CatchUp] does the work of everything that handles events in a process that does not run for
// long. [App.Settle] waits in tests until all of it is done.
//
// # Tables
//
// [Open] creates the tables journal, snapshot and checkpoint if they are missing, and with
// [Config].Personal the table keys. [Process] creates the table process, and [App.ReadModel] the
// table readmodel. All names begin with Config.Prefix. [App.CreateTables] creates the tables of
// projections. With [Config].ExistingTables an App creates no table. It then reports missing tables
// as errors, except for those of projections. The number of shards and the layout of a journal stay
// as they were at its creation.
//
// # Events of old types
//
// The definitions passed to [Repository] and [Process] upcast events: they convert stored events of
// an old type to the current type. This applies to handlers, projections, read models and process
// managers that are added after the definition.
//
// # Commands
//
// Commands have one topic, [Config].CommandTopic, and one consumer group, "commands". Process
// managers publish their commands to that topic. Commands with the same aggregate id are handled in
// order. Commands that all groups of the topic have handled are removed after
// [Config].CommandRetention, by [App.Run] and by sweeps of [App.CatchUp]. The same is true for
// messages of [App.Receive].
//
// # Start and stop
//
// [App.Run] starts the handlers first, then live feeds, then process managers and read models, then
// the services in the order in which they were added. Each request of the start that DynamoDB
// throttles or does not answer is repeated for up to 30 seconds. After a second the reason is
// logged. The start has several requests, so it may take longer than that in all.
//
// The App stops when the context of Run ends, or when anything that it runs ends. From then on
// [App.Ready] returns [ErrNotRunning]. Run stops live feeds first, then the services in the reverse
// order, then the handlers, then process managers and read models, then the publisher, and finally
// the sender of wake-ups. Each of these steps has a time limit, so Run returns within
// [Config].StopTimeout, or up to 5 seconds later.
//
// If commits of the publisher take longer, Run cuts them off and returns publisher.ErrCloseTimeout.
// Nothing is lost: their Publish calls return errors, events whose handlers have failed are
// delivered again, and process managers send their stored commands again.
//
// # Related packages
//
//   - Metrics: metrics.Collectors returns the collectors of everything that was added to an App.
//   - Traces: set Config.Middleware to tracing.Middleware, Config.CommitMiddleware to
//     tracing.CommitMiddleware, and process.Config.Middleware to tracing.StepMiddleware.
//     Correlation and causation ids pass from messages to events and commands also without them.
//   - Health checks: [App.ReadyHandler].
//   - Queries that show what their client has written: [App.Consistent].
package millrace

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/encrypt"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
	"github.com/millrace-dev/millrace/wakeup"
)

// Config configures an [App]. Only Journal.Shards and Journal.Layout are required, and not with
// ExistingTables.
type Config struct {
	// Prefix is the beginning of the names of all tables, such as "shop-". Default: none.
	Prefix string

	// Journal configures the journal. Its Shards and Layout are required to create the tables.
	// Table names that it sets are used without the prefix.
	Journal journal.Config

	// Personal selects aggregates whose payloads are encrypted, so that a person can be forgotten.
	// Default: none.
	Personal Personal

	// ExistingTables stops Open, [Process] and [App.ReadModel] from creating tables. They return an
	// error if a table is missing. Default: missing tables are created.
	ExistingTables bool

	// Subscriber, if set, changes the settings of the subscriber of each group, also of commands,
	// process managers and read models. Group.Subscriber changes those of one group afterwards. The
	// function receives the defaults of the App: Journal and ConsumerGroup, which it must not
	// change, HandlerTimeout as CloseTimeout, a CommitInterval of 100 ms for projections, and for
	// handlers Definitions and EventTypes. Projections and process managers ignore Definitions,
	// because they upcast events themselves. Read models call it from their own goroutines.
	Subscriber func(group string, c *subscriber.Config)

	// Marshaler names, encodes and decodes commands. It also names and decodes the events of
	// [App.HandleEvents]. Default: cqrs.JSONMarshaler with the names of publisher.EventName. This
	// default cannot decode the events of a definition with a codec of its own (WithCodec), so
	// [App.HandleEvents] refuses their topics.
	Marshaler cqrs.CommandEventMarshaler

	// CommandTopic is the topic of commands. Default: "commands".
	CommandTopic string

	// CommandRetention is how long the commands of CommandTopic and the messages of [App.Receive]
	// stay at least. Older ones are removed when all groups of the topic have handled them. This is
	// about messages. How long the ids of commands are remembered is
	// journal.Config.CommandRetention. Negative: nothing is removed. At least a minute. Default: 7
	// days.
	CommandRetention time.Duration

	// Wakeups reports the commits of this process to other processes, if its Publisher is set, and
	// wakes the App when other processes report theirs, if its Subscriber is set. The App sets its
	// Journal. The caller closes Publisher and Subscriber after [App.Run]. Default: none, so polls
	// find the events of other processes. See package wakeup.
	Wakeups wakeup.Config

	// Middleware wraps all handlers; the first middleware is the outermost. The App adds
	// subscriber.NackReason outside of them and Watermill's Recoverer inside. The subscriber logs
	// the error of a handler with its event, so the router does not. Default: none.
	Middleware []message.HandlerMiddleware

	// CommitMiddleware wraps the calls of all repositories of the App that have no middleware of
	// their own, and their transactions, such as tracing.CommitMiddleware. Default: none.
	CommitMiddleware repository.Middleware

	// HandlerTimeout is the time that handlers have to finish when the App stops. Default: 5
	// seconds.
	HandlerTimeout time.Duration

	// StopTimeout limits the time that [App.Run] waits for everything to stop. Run may exceed it by
	// 5 seconds, because commits of the publisher have at least that time. Default: 30 seconds.
	StopTimeout time.Duration

	// Logger receives the logs of everything in the App. Default: none.
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
	if c.CommandRetention == 0 {
		c.CommandRetention = 7 * 24 * time.Hour
	}
	if c.HandlerTimeout == 0 {
		c.HandlerTimeout = 5 * time.Second
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
	case c.HandlerTimeout < 0:
		return &ConfigError{"HandlerTimeout", "is negative; leave it 0 for the default"}
	case c.StopTimeout < 0:
		return &ConfigError{"StopTimeout", "is negative; leave it 0 for the default"}
	case c.CommandRetention > 0 && c.CommandRetention < time.Minute:
		return &ConfigError{"CommandRetention", "is less than a minute; leave it 0 for 7 days, or make it negative to keep all commands"}
	case c.Wakeups.Subscriber == nil && c.Wakeups.PollRarely:
		return &ConfigError{"Wakeups.PollRarely", "needs a Subscriber, which receives the wake-ups"}
	case c.Wakeups.Subscriber == nil && c.Wakeups.Publisher == nil && c.Wakeups != (wakeup.Config{}):
		return &ConfigError{"Wakeups", "has neither a Publisher nor a Subscriber"}
	}
	return nil
}

// App is the wiring of one process. One goroutine adds everything before [App.Run]. After that an
// App is safe for concurrent use.
type App struct {
	config    Config
	client    journal.Client
	journal   *journal.Journal
	secret    *encrypt.Encryption // of Config.Personal, nil if there is none
	groups    *groups.Groups
	publisher *publisher.Publisher
	router    *message.Router
	handling  *handling
	sender    *wakeup.Sender   // nil if there is none
	receiver  *wakeup.Receiver // nil if there is none

	definitions []aggregate.AnyDefinition
	subscribers []*subscriber.Subscriber
	publishers  []*publisher.Publisher // of inboxes
	inboxes     []string               // topics of the journal
	feeds       []*live.Feed
	workers     []Service // process managers and read models
	// The following are for CatchUp: what adds the handlers of groups to a router, what adds those
	// of read models, and what fires the timeouts of process managers.
	wirings    []func(*message.Router) error
	models     []func(context.Context, *message.Router) error
	fires      []func(context.Context) error
	services   []Service
	components []component
	jsonEvents bool                // Config.Marshaler is the default
	topics     map[string]bool     // topics that a group or a read model handles
	topicsOf   map[string][]string // topics by consumer group
	// external has the positions outside of the journal's tables, by consumer group. Those of
	// generations that do not run are in readModels.
	external map[string]groups.Positions
	queried  []string // consumer groups of Consistent
	// The following are for Settle. Subscribers include those of generations that run.
	subscriberOf map[string]*subscriber.Subscriber // by consumer group
	defers       map[string]bool                   // the groups that defer failed events
	readModels   []liveModel
	managers     []manager
	sends        bool // a process manager sends commands to Config.CommandTopic

	mu       sync.Mutex
	started  bool
	bursts   bool // started by CatchUp
	running  chan struct{}
	stopped  chan struct{}
	stopping atomic.Bool
}

// component is an object that metrics can observe.
type component struct {
	name  string
	value any
}

// Open creates the missing tables, unless [Config].ExistingTables is set. It opens the journal, and
// returns an App to which nothing was added yet.
//
// Errors: [*ConfigError], *wakeup.ConfigError, *encrypt.ConfigError, and those of journal.Create
// and journal.Open.
func Open(ctx context.Context, client journal.Client, config Config) (*App, error) {
	if client == nil {
		return nil, &ConfigError{"client", "is nil: pass a *dynamodb.Client"}
	}
	if err := config.validate(); err != nil {
		return nil, err
	}
	jsonEvents := config.Marshaler == nil
	config.setDefaults()
	ctx = config.starting(ctx)
	secret, err := config.Personal.open(ctx, client, &config)
	if err != nil {
		return nil, err
	}
	if !config.ExistingTables {
		if err := journal.Create(ctx, client, config.Journal); err != nil {
			return nil, err
		}
	}
	j, err := journal.Open(ctx, client, config.Journal)
	if err != nil {
		return nil, err
	}
	p, err := publisher.NewPublisher(publisher.Config{Journal: j, Queues: []string{config.CommandTopic}}, config.Logger)
	if err != nil {
		return nil, err
	}
	a := &App{
		config: config, client: client, journal: j, secret: secret, publisher: p, handling: newHandling(), jsonEvents: jsonEvents,
		topics: map[string]bool{}, topicsOf: map[string][]string{}, external: map[string]groups.Positions{},
		subscriberOf: map[string]*subscriber.Subscriber{}, defers: map[string]bool{}, running: make(chan struct{}), stopped: make(chan struct{}),
	}
	a.groups = groups.New(j, groups.WithPositions(storedPositions{a}))
	if a.router, err = a.newRouter(config.Logger); err != nil {
		return nil, err
	}
	a.addRetention()
	if err := a.addWakeups(); err != nil {
		return nil, err
	}
	return a, nil
}

// starting returns a context for requests of the start. A delay of these is logged.
func (c Config) starting(ctx context.Context) context.Context {
	return dynamo.OnSlowStart(ctx, func(err error) {
		c.Logger.Info(dynamo.SlowStart, watermill.LogFields{"err": err})
	})
}

func (a *App) newRouter(logger watermill.LoggerAdapter) (*message.Router, error) {
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: a.config.HandlerTimeout + closing}, logger)
	if err != nil {
		return nil, err
	}
	router.AddMiddleware(a.handling.middleware, nackReason)
	router.AddMiddleware(a.config.Middleware...)
	router.AddMiddleware(middleware.Recoverer)
	return router, nil
}

// closing is the time that subscribers need after the end of their handlers to store positions and
// to free shards.
const closing = 2 * time.Second

// Journal returns the journal.
func (a *App) Journal() *journal.Journal { return a.journal }

// Groups returns the operations on consumer groups, also on those of [App.ProjectSQL].
func (a *App) Groups() *groups.Groups { return a.groups }

// Publisher returns the publisher to the journal. The App closes it.
func (a *App) Publisher() *publisher.Publisher { return a.publisher }

// ReadModelTable returns the name of the table of [App.ReadModel], Prefix + "readmodel", for tools
// that list read models (readmodel.List).
func (a *App) ReadModelTable() string { return a.config.Prefix + readmodel.DefaultTable }

// Backlog returns the timeouts, unsent commands and open processes of the process managers that use
// the App's table, Prefix + "process".
func (a *App) Backlog() *process.Backlog {
	return process.NewBacklog(a.client, a.config.Prefix+process.DefaultTable)
}

// Router returns the router of the handlers. Use it to add handlers, middlewares and plugins for
// which an App has no method. The App runs and closes it.
func (a *App) Router() *message.Router { return a.router }

// Marshaler returns the marshaler of commands and events.
func (a *App) Marshaler() cqrs.CommandEventMarshaler { return a.config.Marshaler }

// Components yields what package metrics can observe, with its name. This is the aggregate type of
// a repository or process manager, and the consumer group of a subscriber, projection, forwarder or
// receiver. The sender and the receiver of wake-ups have the name "wakeups".
func (a *App) Components() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, c := range a.components {
			if !yield(c.name, c.value) {
				return
			}
		}
	}
}

func (a *App) addComponent(name string, of any) {
	a.components = append(a.components, component{name, of})
}
