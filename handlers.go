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
)

// Group describes a consumer group and the topics that it handles.
type Group struct {
	// Name is the name of the consumer group (subscriber.Config.ConsumerGroup). A new name is a new
	// group. By default it begins with the first event. Add each group once, with all its topics.
	Name string
	// Topics are the topics that the group handles. The topic of an event is its aggregate type.
	Topics []string
	// Configure, if set, changes the subscriber settings of the group. It is called last.
	Configure func(*subscriber.Config)
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

// with returns the group with a Configure that calls set before the group's own Configure.
func (g Group) with(set func(*subscriber.Config)) Group {
	configure := g.Configure
	g.Configure = func(c *subscriber.Config) {
		set(c)
		if configure != nil {
			configure(c)
		}
	}
	return g
}

// Repository adds a repository on the App's journal, and returns it. Its definition upcasts the
// events of its aggregates for everything that is added later. If config leaves Logger out, it is
// the logger of the App.
//
// Errors: [*ConfigError] if the App already has a definition of the same type, or a handler of its
// events; [ErrStarted]; the errors of repository.New.
func Repository[S any](a *App, definition aggregate.Definition[S], config repository.Config) (*repository.Repository[S], error) {
	if err := a.mayDefine(definition); err != nil {
		return nil, err
	}
	if config.Logger == nil {
		config.Logger = a.config.Logger
	}
	r, err := repository.New(a.journal, definition, config)
	if err != nil {
		return nil, err
	}
	a.definitions = append(a.definitions, definition)
	a.observe(definition.Type(), r)
	return r, nil
}

// mayDefine returns an error if a definition cannot be added.
func (a *App) mayDefine(definition aggregate.AnyDefinition) error {
	if err := a.mayAdd(); err != nil {
		return err
	}
	if err := definition.Validate(); err != nil {
		return err
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
func Process[S any](ctx context.Context, a *App, definition process.Definition[S], topics []string, config process.Config) (*process.Manager[S], error) {
	if err := definition.Validate(); err != nil {
		return nil, err
	}
	g := Group{Name: definition.Type(), Topics: topics}
	if err := errors.Join(a.mayDefine(definition.Aggregate()), g.validate(), a.comes(g, definition.EventTypes())); err != nil {
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
	if err := a.add(g, manager.Handle); err != nil {
		return nil, err
	}
	a.definitions = definitions
	a.workers = append(a.workers, Part{Name: "process manager " + definition.Type(), Run: manager.Run})
	a.observe(definition.Type(), manager)
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
	if config.Table == "" {
		config.Table = a.config.Prefix + process.DefaultTable
	}
	ctx = a.config.starting(ctx)
	if !a.config.ExistingTables {
		return process.CreateTable(ctx, a.client, config.Table)
	}
	// This request finds a missing table now, and not at the first step. It costs one read unit.
	for _, err := range process.NewBacklog(a.client, config.Table).Pending(ctx, process.Query{Type: "millrace", ID: "ready"}) {
		return err
	}
	return nil
}

// comes returns an error if the group handles an event type that the App knows, but lacks the topic
// of these events.
func (a *App) comes(g Group, eventTypes []string) error {
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
// writes are stored every 100 ms, unless subscriber.Config.CommitInterval is set.
//
// Errors: [*ConfigError], [ErrStarted], and the errors of projection.New and
// subscriber.NewSubscriber.
func (a *App) Project(g Group, reactions ...projection.Reaction) (*projection.Projection, error) {
	if err := a.mayAdd(); err != nil {
		return nil, err
	}
	if len(reactions) == 0 {
		return nil, &ConfigError{"reactions", fmt.Sprintf("of group %q are missing; add one for each type of event", g.Name)}
	}
	p, err := projection.New(a.client, projection.Config{Definitions: slices.Clone(a.definitions)}, reactions...)
	if err != nil {
		return nil, err
	}
	if err := a.comes(g, p.EventTypes()); err != nil {
		return nil, err
	}
	if err := a.add(g.with(storeSoon), p.Handle); err != nil {
		return nil, err
	}
	a.observe(g.Name, p)
	return p, nil
}

// storeSoon sets a short commit interval. A projection stores the position of an event with the
// writes for it. Positions of events without writes are stored at the commit interval, and
// [App.Consistent] and live pages wait for these.
func storeSoon(c *subscriber.Config) {
	if c.CommitInterval == 0 {
		c.CommitInterval = projectionCommitInterval
	}
}

const projectionCommitInterval = 100 * time.Millisecond

// Handle adds a handler of the messages of a group's topics. Each message is one event, upcast.
//
// Errors: [*ConfigError], [ErrStarted], and the errors of subscriber.NewSubscriber.
func (a *App) Handle(g Group, handle message.NoPublishHandlerFunc) error {
	if handle == nil {
		return &ConfigError{"handle", fmt.Sprintf("of group %q is nil; pass a function that handles its messages", g.Name)}
	}
	return a.add(g.with(func(c *subscriber.Config) { c.Definitions = slices.Clone(a.definitions) }), handle)
}

// HandleEvents adds typed handlers of Watermill's cqrs component for the events of a group's
// topics, at most one for each type of event. Events are upcast. Events without a handler are not
// delivered.
//
// [Config].Marshaler decodes the events, and not the codec of their definition. Its default decodes
// JSON. So set it if the definition of a topic has another codec (aggregate.Definition.WithCodec).
//
// Errors: those of [App.Handle] and of the cqrs component; [*ConfigError] also if the definition of
// a topic has a codec other than aggregate.JSON, and Config.Marshaler is not set.
func (a *App) HandleEvents(g Group, handlers ...cqrs.GroupEventHandler) error {
	if err := a.mayHandle(g, handlers); err != nil {
		return err
	}
	var eventTypes []string
	for _, handler := range handlers {
		eventTypes = append(eventTypes, a.config.Marshaler.Name(handler.NewEvent()))
	}
	if err := errors.Join(a.comes(g, eventTypes), a.mayDecode(g)); err != nil {
		return err
	}
	g = g.with(func(c *subscriber.Config) { c.Definitions, c.EventTypes = slices.Clone(a.definitions), eventTypes })
	return a.addTyped(g, true, handlers)
}

// mayDecode returns an error if the default marshaler would decode events that another codec than
// JSON has encoded. It could decode them as zero values, without an error.
func (a *App) mayDecode(g Group) error {
	if !a.jsonEvents {
		return nil
	}
	for _, d := range a.definitions {
		if slices.Contains(g.Topics, d.Type()) && d.Codec() != aggregate.JSON {
			return &ConfigError{"Marshaler", fmt.Sprintf("is not set, but the definition of %q, a topic of group %q, has the codec %T, which the default "+
				"marshaler cannot decode; set Config.Marshaler to one that decodes these events, or use App.Project or App.Handle",
				d.Type(), g.Name, d.Codec())}
		}
	}
	return nil
}

// HandleCommands adds the handlers of the commands of [Config].CommandTopic, one for each type of
// command, in the consumer group "commands". Package command makes such handlers. Call
// HandleCommands once.
//
// A command without a handler is nacked, and delivered again. So in a rolling deployment a newer
// process can handle it.
//
// Errors: those of [App.Handle] and of the cqrs component.
func (a *App) HandleCommands(handlers ...cqrs.CommandHandler) error {
	var all []cqrs.GroupEventHandler
	for _, handler := range handlers {
		if handler == nil {
			all = append(all, nil)
			continue
		}
		all = append(all, commandHandler{handler})
	}
	g := Group{Name: commandGroup, Topics: []string{a.config.CommandTopic}}
	if err := a.mayHandle(g, all); err != nil {
		return err
	}
	return a.addTyped(g, false, all)
}

// mayHandle returns an error if there is no handler, a nil handler, or a second handler of a type,
// which Watermill would never call.
func (a *App) mayHandle(g Group, handlers []cqrs.GroupEventHandler) error {
	if len(handlers) == 0 {
		return &ConfigError{"handlers", fmt.Sprintf("of group %q are missing; add one for each type of message", g.Name)}
	}
	names := map[string]bool{}
	for _, handler := range handlers {
		if handler == nil {
			return &ConfigError{"handlers", fmt.Sprintf("of group %q include nil; leave it out", g.Name)}
		}
		name := a.config.Marshaler.Name(handler.NewEvent())
		if names[name] {
			return &ConfigError{"handlers", fmt.Sprintf("of group %q include two for %q; use a group for each", g.Name, name)}
		}
		names[name] = true
	}
	return nil
}

// commandGroup is the consumer group of commands.
const commandGroup = "commands"

// commandHandler adapts a command handler to a handler of a group. The handlers of a group share a
// subscriber, so commands of all types stay in order.
type commandHandler struct{ cqrs.CommandHandler }

// NewEvent returns a new command.
func (h commandHandler) NewEvent() any { return h.NewCommand() }

// addTyped adds a group processor for each topic. The processors share a subscriber.
func (a *App) addTyped(g Group, ackUnknown bool, handlers []cqrs.GroupEventHandler) error {
	sub, err := a.newSubscriber(g)
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
		if err := processor.AddHandlersGroup(g.handlerName(topic), handlers...); err != nil {
			return err
		}
	}
	a.subscribed(g, sub)
	return nil
}

// add adds a handler for each topic of a group to the router.
func (a *App) add(g Group, handle message.NoPublishHandlerFunc) error {
	sub, err := a.newSubscriber(g)
	if err != nil {
		return err
	}
	for _, topic := range g.Topics {
		a.router.AddConsumerHandler(g.handlerName(topic), topic, sub, handle)
	}
	a.subscribed(g, sub)
	return nil
}

// handlerName returns the name of the router's handler of a topic.
func (g Group) handlerName(topic string) string { return g.Name + "/" + topic }

// newSubscriber makes the subscriber of a group on the App's router.
func (a *App) newSubscriber(g Group) (*subscriber.Subscriber, error) {
	if err := errors.Join(a.mayAdd(), g.validate()); err != nil {
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
	return a.configured(g)
}

// configured returns a subscriber with the settings of a group.
func (a *App) configured(g Group) (*subscriber.Subscriber, error) {
	config := a.config.Subscriber
	config.Journal, config.ConsumerGroup = a.journal, g.Name
	if a.config.Configure != nil {
		a.config.Configure(g.Name, &config)
	}
	if g.Configure != nil {
		g.Configure(&config)
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
	a.observe(g.Name, sub)
	a.handled(g.Topics)
}

// handled records that the topics have a handler. A definition of these events can no longer be
// added.
func (a *App) handled(topics []string) {
	for _, topic := range topics {
		a.topics[topic] = true
	}
}

// mayAdd returns [ErrStarted] if the App has been started.
func (a *App) mayAdd() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.started {
		return ErrStarted
	}
	return nil
}
