package millrace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
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
	if err := checkHandlers(g, a.config.Marshaler, handlers); err != nil {
		return err
	}
	var eventTypes []string
	for _, handler := range handlers {
		eventTypes = append(eventTypes, a.config.Marshaler.Name(handler.NewEvent()))
	}
	if err := errors.Join(a.checkTopics(g, eventTypes), a.checkMarshaler(g)); err != nil {
		return err
	}
	return a.addTyped(g, a.ofHandler(eventTypes), a.config.Marshaler, true, handlers)
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
// process can handle it.
//
// Errors: those of [App.Handle] and of the cqrs component.
func (a *App) HandleCommands(handlers ...cqrs.CommandHandler) error {
	all := typedCommands(handlers)
	g := Group{Name: commandGroup, Topics: []string{a.config.CommandTopic}}
	if err := errors.Join(a.checkNotStarted(), checkHandlers(g, a.config.Marshaler, all)); err != nil {
		return err
	}
	if slices.Equal(a.topicsOf[g.Name], g.Topics) {
		return &ConfigError{"HandleCommands", "was called twice; pass all handlers in one call"}
	}
	return a.addTyped(g, settings{}, a.config.Marshaler, false, all)
}

// checkHandlers returns an error if there is no handler, a nil handler, or a second handler of a
// type, which Watermill would never call.
func checkHandlers(g Group, marshaler cqrs.CommandEventMarshaler, handlers []cqrs.GroupEventHandler) error {
	if len(handlers) == 0 {
		return &ConfigError{"handlers", fmt.Sprintf("of group %q are missing; add one for each type of message", g.Name)}
	}
	names := map[string]bool{}
	for _, handler := range handlers {
		if handler == nil {
			return &ConfigError{"handlers", fmt.Sprintf("of group %q include nil; leave it out", g.Name)}
		}
		name := marshaler.Name(handler.NewEvent())
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
func (a *App) addTyped(g Group, s settings, marshaler cqrs.CommandEventMarshaler, ackUnknown bool, handlers []cqrs.GroupEventHandler) error {
	return a.wire(g, s, func(router *message.Router, sub message.Subscriber) error {
		for _, topic := range g.Topics {
			processor, err := cqrs.NewEventGroupProcessorWithConfig(router, cqrs.EventGroupProcessorConfig{
				Marshaler:         marshaler,
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
		return nil
	})
}
