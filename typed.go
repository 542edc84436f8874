package millrace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/subscriber"
)

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
	var events []any
	for _, handler := range handlers {
		if handler == nil {
			return nilHandler(g)
		}
		events = append(events, handler.NewEvent())
	}
	eventTypes, err := namesOf(g, a.config.Marshaler, events)
	if err != nil {
		return err
	}
	if err := errors.Join(a.checkTopics(g, eventTypes), a.checkMarshaler(g)); err != nil {
		return err
	}
	return a.addTyped(g, a.ofHandler(eventTypes), handlers)
}

// checkMarshaler returns an error if the default marshaler would decode events that another codec
// than JSON has encoded. It could decode them as zero values, without an error.
func (a *App) checkMarshaler(g Group) error {
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
// process can handle it. The error is a command.ErrUnknown, and names the message.
//
// Commands with the same publisher.AggregateIDKey, or all commands of a publisher without it, are
// handled in order. So one that always fails holds up the later ones, unless Config.Subscriber sets
// another failure policy for the group "commands", such as subscriber.Skip(20).
//
// Errors: those of [App.Handle].
func (a *App) HandleCommands(handlers ...cqrs.CommandHandler) error {
	g := Group{Name: commandGroup, Topics: []string{a.config.CommandTopic}}
	if _, err := commandNames(g, a.config.Marshaler, handlers); err != nil {
		return err
	}
	if err := a.checkNotStarted(); err != nil {
		return err
	}
	if slices.Equal(a.topicsOf[g.Name], g.Topics) {
		return &ConfigError{"HandleCommands", "was called twice; pass all handlers in one call"}
	}
	return a.dispatch(g, a.config.Marshaler, handlers)
}

// dispatch adds handlers of commands to a group.
func (a *App) dispatch(g Group, marshaler cqrs.CommandEventMarshaler, handlers []cqrs.CommandHandler) error {
	dispatch, err := command.Dispatch(marshaler, handlers...)
	if err != nil {
		return err
	}
	return a.add(g, settings{}, func(msg *message.Message) error {
		err := dispatch(msg)
		if id, number, ok := subscriber.AggregateFromContext(msg.Context()); ok && errors.Is(err, command.ErrUnknown) {
			return fmt.Errorf("%w: start a process that handles it, or skip its message with: millrace group skip %s %s %s %d",
				err, g.Name, id.Type, printable.Text(id.Value), number)
		}
		return err
	})
}

func nilHandler(g Group) error {
	return &ConfigError{"handlers", fmt.Sprintf("of group %q include nil; leave it out", g.Name)}
}

// commandNames returns the names of the commands of handlers.
func commandNames(g Group, marshaler cqrs.CommandEventMarshaler, handlers []cqrs.CommandHandler) ([]string, error) {
	var commands []any
	for _, handler := range handlers {
		if handler == nil {
			return nil, nilHandler(g)
		}
		commands = append(commands, handler.NewCommand())
	}
	return namesOf(g, marshaler, commands)
}

// namesOf returns the names of what the handlers of a group handle. It returns an error if there is
// no handler, or a second one of a type, which would never be called.
func namesOf(g Group, marshaler cqrs.CommandEventMarshaler, handled []any) (names []string, err error) {
	if len(handled) == 0 {
		return nil, &ConfigError{"handlers", fmt.Sprintf("of group %q are missing; add one for each type of message", g.Name)}
	}
	for _, message := range handled {
		name := marshaler.Name(message)
		if slices.Contains(names, name) {
			return nil, &ConfigError{"handlers", fmt.Sprintf("of group %q include two for %q; use a group for each", g.Name, name)}
		}
		names = append(names, name)
	}
	return names, nil
}

// commandGroup is the consumer group of commands.
const commandGroup = "commands"

// addTyped adds a group processor for each topic. The processors share a subscriber.
func (a *App) addTyped(g Group, s settings, handlers []cqrs.GroupEventHandler) error {
	return a.wire(g, s, func(router *message.Router, sub message.Subscriber) error {
		for _, topic := range g.Topics {
			processor, err := cqrs.NewEventGroupProcessorWithConfig(router, cqrs.EventGroupProcessorConfig{
				Marshaler:         a.config.Marshaler,
				AckOnUnknownEvent: true,
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
		return nil
	})
}
