package millrace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// Group is a consumer group and what it handles.
type Group struct {
	// Name is subscriber.Config.ConsumerGroup. Another name is another group, which begins with the
	// first event.
	Name string
	// Topics are the aggregate types whose events the group handles.
	Topics []string
	// Configure, if set, changes the settings of the group's subscriber.
	Configure func(*subscriber.Config)
}

func (g Group) validate() error {
	switch {
	case g.Name == "":
		return &ConfigError{"Group.Name", "is empty; name the consumer group"}
	case len(g.Topics) == 0:
		return &ConfigError{"Group.Topics", fmt.Sprintf("of %q is empty; name the aggregate types whose events it handles", g.Name)}
	}
	return nil
}

// Repository returns a repository on the App's journal, as repository.New does. Its definition
// upcasts the events of its aggregates for what is added after it.
//
// Errors: [*ConfigError] if the events of its aggregates are handled already, [ErrStarted], those of
// repository.New.
func Repository[S any](a *App, definition aggregate.Definition[S], config repository.Config) (*repository.Repository[S], error) {
	if err := a.define(definition); err != nil {
		return nil, err
	}
	if config.Logger == nil {
		config.Logger = a.config.Logger
	}
	r, err := repository.New(a.journal, definition, config)
	if err != nil {
		return nil, err
	}
	a.observe(definition.Type(), r)
	return r, nil
}

// define notes a definition, for what is added after it.
func (a *App) define(definition aggregate.AnyDefinition) error {
	if err := a.mayAdd(); err != nil {
		return err
	}
	if err := definition.Validate(); err != nil {
		return err
	}
	for _, d := range a.definitions {
		if d.Type() == definition.Type() {
			return &ConfigError{"definition", fmt.Sprintf("of %q is the second one of that type; use one repository", d.Type())}
		}
	}
	if a.topics[definition.Type()] {
		return &ConfigError{"definition", fmt.Sprintf("of %q comes after a handler of its events, which would not have them upcast; add it first", definition.Type())}
	}
	a.definitions = append(a.definitions, definition)
	return nil
}

// Process adds a process manager, which reacts to the events of some topics, with the aggregate type
// of its definition as the consumer group. If config leaves them out, Publisher is that of the App,
// commands go to [Config].CommandTopic, and the table is Prefix + "process", which is created.
//
// Errors: those of [Repository], of process.CreateTable and of process.New.
func Process[S any](ctx context.Context, a *App, definition process.Definition[S], topics []string, config process.Config) (*process.Manager[S], error) {
	if err := definition.Validate(); err != nil {
		return nil, err
	}
	if err := a.define(definition.Aggregate()); err != nil {
		return nil, err
	}
	if err := a.prepareProcess(ctx, &config); err != nil {
		return nil, err
	}
	manager, err := process.New(a.journal, a.client, definition, config)
	if err != nil {
		return nil, err
	}
	if err := a.add(Group{Name: definition.Type(), Topics: topics}, manager.Handle); err != nil {
		return nil, err
	}
	a.workers = append(a.workers, Part{Name: "process manager " + definition.Type(), Run: manager.Run})
	a.observe(definition.Type(), manager)
	return manager, nil
}

func (a *App) prepareProcess(ctx context.Context, config *process.Config) error {
	if config.Publisher == nil {
		config.Publisher = a.publisher
	}
	if config.GeneratePublishTopic == nil {
		config.GeneratePublishTopic = func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return a.config.CommandTopic, nil }
	}
	if config.Marshaler == nil {
		config.Marshaler = a.config.Marshaler
	}
	if config.Definitions == nil {
		config.Definitions = slices.Clone(a.definitions)
	}
	if config.Logger == nil {
		config.Logger = a.config.Logger
	}
	if config.Table == "" {
		config.Table = a.config.Prefix + process.DefaultTable
	}
	if a.config.ExistingTables {
		return nil
	}
	return process.CreateTable(ctx, a.client, config.Table)
}

// Project adds a projection, whose reactions to the events of a group's topics commit with the
// group's positions.
//
// Errors: [*ConfigError], [ErrStarted], those of projection.New and subscriber.NewSubscriber.
func (a *App) Project(g Group, reactions ...projection.Reaction) (*projection.Projection, error) {
	if err := a.mayAdd(); err != nil {
		return nil, err
	}
	p, err := projection.New(a.client, projection.Config{Definitions: slices.Clone(a.definitions)}, reactions...)
	if err != nil {
		return nil, err
	}
	if err := a.add(g, p.Handle); err != nil {
		return nil, err
	}
	a.observe(g.Name, p)
	return p, nil
}

// Handle has a group handle the messages of its topics. Their events are upcast.
//
// Errors: [*ConfigError], [ErrStarted], those of subscriber.NewSubscriber.
func (a *App) Handle(g Group, handle message.NoPublishHandlerFunc) error {
	configure := g.Configure
	g.Configure = func(c *subscriber.Config) {
		c.Definitions = slices.Clone(a.definitions)
		if configure != nil {
			configure(c)
		}
	}
	return a.add(g, handle)
}

// HandleEvents has a group handle the events of its topics by typed handlers of Watermill's cqrs
// component. Events are upcast, and those without a handler are not delivered.
//
// Errors: those of [App.Handle], and of the cqrs component.
func (a *App) HandleEvents(g Group, handlers ...cqrs.GroupEventHandler) error {
	if len(handlers) == 0 {
		return &ConfigError{"handlers", fmt.Sprintf("of group %q are missing; add one for each type of event", g.Name)}
	}
	configure := g.Configure
	g.Configure = func(c *subscriber.Config) {
		c.Definitions = slices.Clone(a.definitions)
		for _, handler := range handlers {
			c.EventTypes = append(c.EventTypes, a.config.Marshaler.Name(handler.NewEvent()))
		}
		if configure != nil {
			configure(c)
		}
	}
	return a.addTyped(g, true, handlers)
}

// HandleCommands has the group "commands" handle the commands of [Config].CommandTopic, each by the
// handler of its type. See package command for handlers. It is called once. A command without a
// handler is nacked, and comes again: in a rolling deployment a newer process handles it.
//
// Errors: those of [App.Handle], and of the cqrs component.
func (a *App) HandleCommands(handlers ...cqrs.CommandHandler) error {
	if len(handlers) == 0 {
		return &ConfigError{"handlers", "of commands are missing; add one for each type of command"}
	}
	var all []cqrs.GroupEventHandler
	for _, handler := range handlers {
		all = append(all, commandHandler{handler})
	}
	return a.addTyped(Group{Name: commandGroup, Topics: []string{a.config.CommandTopic}}, false, all)
}

// commandGroup is the consumer group of commands.
const commandGroup = "commands"

// commandHandler is a handler of commands as one of a group: the handlers of a group share a
// subscriber, so commands of all types stay in order.
type commandHandler struct{ cqrs.CommandHandler }

// NewEvent returns a new command.
func (h commandHandler) NewEvent() any { return h.NewCommand() }

// addTyped adds a group processor for each topic, which share a subscriber.
func (a *App) addTyped(g Group, ackUnknown bool, handlers []cqrs.GroupEventHandler) error {
	sub, err := a.subscribe(g)
	if err != nil {
		return err
	}
	for _, topic := range g.Topics {
		processor, err := cqrs.NewEventGroupProcessorWithConfig(a.router, cqrs.EventGroupProcessorConfig{
			Marshaler:         a.config.Marshaler,
			AckOnUnknownEvent: ackUnknown,
			GenerateSubscribeTopic: func(cqrs.EventGroupProcessorGenerateSubscribeTopicParams) (string, error) {
				return topic, nil
			},
			SubscriberConstructor: func(cqrs.EventGroupProcessorSubscriberConstructorParams) (message.Subscriber, error) {
				return sub, nil
			},
			Logger: a.config.Logger,
		})
		if err != nil {
			return err
		}
		if err := processor.AddHandlersGroup(g.Name+"/"+topic, handlers...); err != nil {
			return err
		}
	}
	return nil
}

// add has the router handle the topics of a group.
func (a *App) add(g Group, handle message.NoPublishHandlerFunc) error {
	sub, err := a.subscribe(g)
	if err != nil {
		return err
	}
	for _, topic := range g.Topics {
		a.router.AddConsumerHandler(g.Name+"/"+topic, topic, sub, handle)
	}
	return nil
}

// subscribe makes the subscriber of a group on the App's router.
func (a *App) subscribe(g Group) (*subscriber.Subscriber, error) {
	if err := errors.Join(a.mayAdd(), g.validate()); err != nil {
		return nil, err
	}
	for i, topic := range g.Topics {
		if slices.Contains(g.Topics[:i], topic) {
			return nil, &ConfigError{"Group.Topics", fmt.Sprintf("of %q has topic %q twice; name it once", g.Name, topic)}
		}
		if _, twice := a.router.Handlers()[g.Name+"/"+topic]; twice {
			return nil, &ConfigError{"Group", fmt.Sprintf("%q handles topic %q already; use one group for each purpose", g.Name, topic)}
		}
	}
	sub, err := a.newSubscriber(g)
	if err != nil {
		return nil, err
	}
	a.subscribers = append(a.subscribers, sub)
	a.observe(g.Name, sub)
	a.handled(g.Topics)
	return sub, nil
}

func (a *App) newSubscriber(g Group) (*subscriber.Subscriber, error) {
	config := a.config.Subscriber
	config.Journal, config.ConsumerGroup = a.journal, g.Name
	if g.Configure != nil {
		g.Configure(&config)
	}
	sub, err := subscriber.NewSubscriber(config, a.config.Logger)
	if err != nil {
		return nil, fmt.Errorf("group %q: %w", g.Name, err)
	}
	return sub, nil
}

// handled notes that the events of topics are handled: a definition that comes later is too late.
func (a *App) handled(topics []string) {
	for _, topic := range topics {
		a.topics[topic] = true
	}
}

// mayAdd reports [ErrStarted].
func (a *App) mayAdd() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.started {
		return ErrStarted
	}
	return nil
}
