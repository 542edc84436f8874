package millrace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Group describes a consumer group and the topics that it handles.
type Group struct {
	// Name is the name of the consumer group (subscriber.Config.ConsumerGroup). A new name is a new
	// group. By default it begins with the first event. Add each group once, with all its topics.
	Name string
	// Topics are the topics that the group handles. The topic of an event is its aggregate type.
	Topics []string
	// Subscriber, if set, changes the settings of the group's subscriber, such as Failures. It is
	// called after Config.Subscriber, and the same rules apply.
	Subscriber func(*subscriber.Config)
}

func (g Group) validate() error {
	switch {
	case g.Name == "":
		return &ConfigError{"Group.Name", "is empty; name the consumer group"}
	case len(g.Topics) == 0:
		return &ConfigError{"Group.Topics", fmt.Sprintf("of %q is empty; name the topics that the group handles", g.Name)}
	}
	for i, topic := range g.Topics {
		if slices.Contains(g.Topics[:i], topic) {
			return &ConfigError{"Group.Topics", fmt.Sprintf("of %q has topic %q twice; name it once", g.Name, topic)}
		}
		if err := (aggregate.ID{Type: topic, Value: "any"}).Validate(); err != nil {
			return &ConfigError{"Group.Topics", fmt.Sprintf("of %q has %q, which is not a valid aggregate type: %v", g.Name, topic, err)}
		}
	}
	return nil
}

// Repository adds a repository on the App's journal, and returns it. Its definition upcasts the
// events of its aggregates for everything that is added later. If config leaves them out, Logger
// and Middleware are those of the App.
//
// Errors: [*ConfigError] if the App already has a definition of the same type, or a handler of its
// events; [ErrStarted]; the errors of repository.New.
func Repository[S any](a *App, definition aggregate.Definition[S], config repository.Config) (*repository.Repository[S], error) {
	if err := a.checkDefinition(definition); err != nil {
		return nil, err
	}
	if config.Logger == nil {
		config.Logger = a.config.Logger
	}
	if config.Middleware == nil {
		config.Middleware = a.config.CommitMiddleware
	}
	r, err := repository.New(a.journal, definition, config)
	if err != nil {
		return nil, err
	}
	a.definitions = append(a.definitions, definition)
	a.addComponent(definition.Type(), r)
	return r, nil
}

// checkDefinition returns an error if a definition cannot be added.
func (a *App) checkDefinition(definition aggregate.AnyDefinition) error {
	if err := a.checkNotStarted(); err != nil {
		return err
	}
	if err := definition.Validate(); err != nil {
		return err
	}
	if definition.Type() == a.config.CommandTopic || slices.Contains(a.inboxes, definition.Type()) {
		return &ConfigError{"definition", fmt.Sprintf("of %q has the name of a topic of commands, which are removed after a time; give the commands a topic of their own", definition.Type())}
	}
	for _, d := range a.definitions {
		if d.Type() == definition.Type() {
			return &ConfigError{"definition", fmt.Sprintf("of %q is the second one of this aggregate type; use one repository", d.Type())}
		}
	}
	if a.topics[definition.Type()] {
		return &ConfigError{"definition", fmt.Sprintf(
			"of %q is added after a handler of its events, which would receive them without upcasting; add the definition first", definition.Type())}
	}
	return nil
}

// Process adds a process manager, which reacts to the events of the topics, and returns it. Its
// consumer group has the name of the aggregate type of its definition.
//
// If config leaves them out, Publisher, Marshaler and Logger are the App's, the topic of commands
// is [Config].CommandTopic, and the table is Prefix + "process". Process creates the table if it is
// missing.
//
// Errors: those of [Repository], of process.CreateTable and of process.New.
func Process[S any](ctx context.Context, a *App, definition process.Definition[S], config process.Config, topics ...string) (*process.Manager[S], error) {
	if err := definition.Validate(); err != nil {
		return nil, err
	}
	g := Group{Name: definition.Type(), Topics: topics}
	if err := errors.Join(a.checkDefinition(definition.Aggregate()), g.validate(), a.checkTopics(g, definition.EventTypes())); err != nil {
		return nil, err
	}
	definitions := append(slices.Clone(a.definitions), definition.Aggregate())
	if config.Definitions == nil {
		config.Definitions = slices.Clone(definitions)
	}
	if err := a.prepareProcess(ctx, &config); err != nil {
		return nil, err
	}
	manager, err := process.New(a.journal, a.client, definition, config)
	if err != nil {
		return nil, err
	}
	if err := a.add(g, ofUpcaster, manager.Handle); err != nil {
		return nil, err
	}
	a.definitions = definitions
	a.workers = append(a.workers, Service{Name: "process manager " + definition.Type(), Run: manager.Run})
	fire := func(ctx context.Context) error {
		_, err := manager.Fire(ctx)
		return err
	}
	a.fires = append(a.fires, fire)
	a.managers = append(a.managers, a.managerOf(definition.Type(), config, fire))
	a.addComponent(definition.Type(), manager)
	return manager, nil
}

func (a *App) prepareProcess(ctx context.Context, config *process.Config) error {
	if config.Publisher == nil {
		config.Publisher = a.publisher
	}
	if config.GeneratePublishTopic == nil {
		a.sends = true
		config.GeneratePublishTopic = func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return a.config.CommandTopic, nil }
	}
	if config.Marshaler == nil {
		config.Marshaler = a.config.Marshaler
	}
	if config.Logger == nil {
		config.Logger = a.config.Logger
	}
	if config.RetryAfter == 0 {
		config.RetryAfter = 30 * time.Second
	}
	if config.Table == "" {
		config.Table = a.config.Prefix + process.DefaultTable
	}
	ctx = a.config.starting(ctx)
	if !a.config.ExistingTables {
		return process.CreateTable(ctx, a.client, config.Table)
	}
	// This request finds a missing table now, and not at the first step. It costs one read unit.
	for _, err := range process.NewBacklog(a.client, config.Table).Pending(ctx, process.BacklogQuery{Type: "millrace", ID: "ready"}) {
		return err
	}
	return nil
}

// checkTopics returns an error if the group handles an event type that the App knows, but lacks the
// topic of these events.
func (a *App) checkTopics(g Group, eventTypes []string) error {
	for _, eventType := range eventTypes {
		missing := ""
		for _, d := range a.definitions {
			if known, ok := d.(interface{ EventTypes() []string }); !ok || !slices.Contains(known.EventTypes(), eventType) {
				continue
			}
			if missing = d.Type(); slices.Contains(g.Topics, missing) {
				missing = ""
				break
			}
		}
		if missing != "" {
			return &ConfigError{"Topics", fmt.Sprintf("of group %q lack %q, the topic of event %q, which it handles; add the topic", g.Name, missing, eventType)}
		}
	}
	return nil
}

// Project adds a projection of the events of a group's topics, and returns it. The writes of a
// reaction are committed together with the position of the group. The positions of events without
// writes are stored every 100 ms, unless a function of Config or Group sets another CommitInterval.
//
// Errors: [*ConfigError], [ErrStarted], and the errors of projection.New and
// subscriber.NewSubscriber.
func (a *App) Project(g Group, reactions ...projection.Reaction) (*projection.Projection, error) {
	if err := a.checkNotStarted(); err != nil {
		return nil, err
	}
	if len(reactions) == 0 {
		return nil, &ConfigError{"reactions", fmt.Sprintf("of group %q are missing; add one for each type of event", g.Name)}
	}
	p, err := projection.New(a.client, projection.Config{Definitions: slices.Clone(a.definitions)}, reactions...)
	if err != nil {
		return nil, err
	}
	if err := a.checkTopics(g, p.EventTypes()); err != nil {
		return nil, err
	}
	if err := a.add(g, ofProjection, p.Handle); err != nil {
		return nil, err
	}
	a.addComponent(g.Name, p)
	return p, nil
}

// settings are the settings of a subscriber that the App decides: defaults, which the functions of
// Config and Group can change, and fixed ones, which they cannot.
type settings struct {
	defaults, fixed func(*subscriber.Config)
	ordered         string // why the handler needs the order of events, if it does
}

// ofUpcaster are the settings for handlers that upcast events themselves.
var ofUpcaster = settings{fixed: func(c *subscriber.Config) { c.Definitions = nil }}

// ofProjection are the settings for projections. The commit interval is short. A projection stores
// the position of an event with the writes for it. Positions of events without writes are stored at
// the commit interval, and [App.Consistent] and live pages wait for these.
var ofProjection = settings{
	defaults: func(c *subscriber.Config) { c.Timing.CommitInterval = 100 * time.Millisecond },
	fixed:    ofUpcaster.fixed,
	ordered:  "a projection needs the order of events, and deferred ones have no position",
}

// ofHandler returns the settings for handlers that receive upcast events, of some types or of all.
func (a *App) ofHandler(eventTypes []string) settings {
	return settings{defaults: func(c *subscriber.Config) { c.Definitions, c.EventTypes = slices.Clone(a.definitions), eventTypes }}
}

// Handle adds a handler of the messages of a group's topics. Each message is one event, upcast.
//
// Errors: [*ConfigError], [ErrStarted], and the errors of subscriber.NewSubscriber.
func (a *App) Handle(g Group, handle message.NoPublishHandlerFunc) error {
	if handle == nil {
		return &ConfigError{"handle", fmt.Sprintf("of group %q is nil; pass a function that handles its messages", g.Name)}
	}
	return a.add(g, a.ofHandler(nil), handle)
}

// add adds a handler for each topic of a group to the router.
func (a *App) add(g Group, s settings, handle message.NoPublishHandlerFunc) error {
	return a.wire(g, s, func(router *message.Router, sub message.Subscriber) error {
		for _, topic := range g.Topics {
			router.AddConsumerHandler(g.handlerName(topic), topic, sub, handle)
		}
		return nil
	})
}

// wire makes the subscriber of a group and adds its handlers to the App's router. [App.CatchUp]
// adds them to a router of its own.
func (a *App) wire(g Group, s settings, add func(*message.Router, message.Subscriber) error) error {
	sub, err := a.newSubscriber(g, s)
	if err != nil {
		return err
	}
	if err := add(a.router, sub); err != nil {
		return err
	}
	a.wirings = append(a.wirings, func(router *message.Router) error { return add(router, kept{sub}) })
	a.subscribed(g, sub)
	return nil
}

// handlerName returns the name of the router's handler of a topic.
func (g Group) handlerName(topic string) string { return g.Name + "/" + topic }

// newSubscriber makes the subscriber of a group on the App's router.
func (a *App) newSubscriber(g Group, s settings) (*subscriber.Subscriber, error) {
	if err := errors.Join(a.checkNotStarted(), g.validate()); err != nil {
		return nil, err
	}
	if a.topicsOf[g.Name] != nil {
		return nil, &ConfigError{"Group.Name", fmt.Sprintf("%q is the name of another group; pass all topics in one call, or use a group for each purpose", g.Name)}
	}
	for _, topic := range g.Topics {
		if _, taken := a.router.Handlers()[g.handlerName(topic)]; taken {
			return nil, &ConfigError{"Group.Name", fmt.Sprintf("%q leads to the handler name %q, which another handler has; choose another name", g.Name, g.handlerName(topic))}
		}
	}
	config, err := a.configure(g, s)
	if err != nil {
		return nil, err
	}
	sub, err := a.subscriber(g, config)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setExternal(g, config)
	a.subscriberOf[g.Name], a.defers[g.Name] = sub, config.Failures.Defers()
	return sub, nil
}

// setExternal records where the positions of a group are, if they are not in the journal's tables.
// The caller holds mu.
func (a *App) setExternal(g Group, config subscriber.Config) {
	if store, ok := config.Positions.(groups.Positions); ok {
		a.external[g.Name] = store
	}
}

// configure returns the config of the subscriber of a group.
func (a *App) configure(g Group, s settings) (subscriber.Config, error) {
	config := subscriber.Config{Journal: a.journal, ConsumerGroup: g.Name, CloseTimeout: a.config.HandlerTimeout}
	if s.defaults != nil {
		s.defaults(&config)
	}
	if a.config.Subscriber != nil {
		a.config.Subscriber(g.Name, &config)
	}
	if g.Subscriber != nil {
		g.Subscriber(&config)
	}
	if s.fixed != nil {
		s.fixed(&config)
	}
	if s.ordered != "" && config.Failures.Defers() {
		return config, &ConfigError{"Failures", fmt.Sprintf("of group %q is Defer, but %s; use another policy", g.Name, s.ordered)}
	}
	return config, checkPositions(g, config)
}

// subscriber returns the subscriber of a group.
func (a *App) subscriber(g Group, config subscriber.Config) (*subscriber.Subscriber, error) {
	if config.Journal != a.journal || config.ConsumerGroup != g.Name {
		return nil, &ConfigError{"Subscriber", fmt.Sprintf("changes Journal or ConsumerGroup of group %q, which the App sets; leave them as they are", g.Name)}
	}
	sub, err := subscriber.NewSubscriber(config, a.config.Logger)
	if err != nil {
		return nil, fmt.Errorf("group %q: %w", g.Name, err)
	}
	return sub, nil
}

// subscribed records the subscriber of a group whose handlers are on the router.
func (a *App) subscribed(g Group, sub *subscriber.Subscriber) {
	a.topicsOf[g.Name] = slices.Clone(g.Topics)
	a.subscribers = append(a.subscribers, sub)
	a.addComponent(g.Name, sub)
	a.handled(g.Topics)
}

// handled records that the topics have a handler. A definition of these events can no longer be
// added.
func (a *App) handled(topics []string) {
	for _, topic := range topics {
		a.topics[topic] = true
	}
}

// groupsOf returns the groups that handle a topic, without those of read models.
func (a *App) groupsOf(topic string) (names []string) {
	for group, topics := range a.topicsOf {
		if slices.Contains(topics, topic) {
			names = append(names, group)
		}
	}
	return names
}

// checkNotStarted returns [ErrStarted] if the App has been started.
func (a *App) checkNotStarted() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.started {
		return ErrStarted
	}
	return nil
}
