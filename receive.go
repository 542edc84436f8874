package millrace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/receive"
)

// Inbox configures [App.Receive].
type Inbox struct {
	// Subscriber receives the messages of the other Pub/Sub. The App does not close it: close it
	// after [App.Run].
	Subscriber message.Subscriber
	// Marshaler decodes the messages, and names the commands. Default: cqrs.JSONMarshaler with the
	// names of publisher.EventName.
	Marshaler cqrs.CommandEventMarshaler
	// Receive says how messages are stored. The App sets Publisher and Names, and these if they are
	// left out: Topic, to the name of the group and "-inbox"; Name, to the metadata "name", or if
	// there is one handler, its command; Check, which decodes messages as their handlers do.
	Receive receive.Config
}

// Receive handles messages of another Pub/Sub as commands, each once. The group's topics are those
// of the other Pub/Sub. The App stores each message in the journal (package receive), and acks it.
// The handlers then get the stored messages in the consumer group, with its failure policies:
// Group.Subscriber configures it. Package command makes such handlers.
//
// Messages that were handled are removed after Config.CommandRetention. A message without a handler
// is stored, and delivered again until a process handles it, unless Inbox.Receive.IgnoreUnknown is
// set. [App.CatchUp] handles stored messages, and receives none.
//
// Errors: those of [App.HandleCommands] and of receive.New.
func (a *App) Receive(g Group, in Inbox, handlers ...cqrs.CommandHandler) (*receive.Receiver, error) {
	if in.Subscriber == nil {
		return nil, &ConfigError{"Inbox.Subscriber", fmt.Sprintf("of group %q is nil; pass the subscriber of the other Pub/Sub", g.Name)}
	}
	if in.Marshaler == nil {
		in.Marshaler = cqrs.JSONMarshaler{GenerateName: publisher.EventName}
	}
	names, err := commandNames(g, in.Marshaler, handlers)
	if err := errors.Join(a.checkNotStarted(), g.validate(), err); err != nil {
		return nil, err
	}
	config := in.Receive
	if config.Topic == "" {
		config.Topic = g.Name + "-inbox"
	}
	if err := a.checkInbox(config.Topic); err != nil {
		return nil, err
	}
	p, err := publisher.NewPublisher(publisher.Config{Journal: a.journal, Streams: inboxStreams, Queues: []string{config.Topic}}, a.config.Logger)
	if err != nil {
		return nil, err
	}
	config.Publisher, config.Names = p, names
	if config.Name == nil {
		config.Name = nameOf(in.Marshaler, names)
	}
	if config.Check == nil {
		config.Check = decodes(in.Marshaler, config.Name, handlers)
	}
	inbox, err := receive.New(config, a.config.Logger)
	if err != nil {
		return nil, fmt.Errorf("group %q: %w", g.Name, err)
	}
	stored := Group{Name: g.Name, Topics: []string{config.Topic}, Subscriber: g.Subscriber}
	if err := a.dispatch(stored, in.Marshaler, handlers); err != nil {
		return nil, err
	}
	for _, topic := range g.Topics {
		a.router.AddConsumerHandler("receive "+g.handlerName(topic), topic, kept{in.Subscriber}, inbox.Handle)
	}
	a.publishers, a.inboxes = append(a.publishers, p), append(a.inboxes, config.Topic)
	a.addComponent(g.Name, inbox)
	return inbox, nil
}

// checkInbox returns an error for a topic that has other messages than those of one Receive.
func (a *App) checkInbox(topic string) error {
	refused := func(why string) error {
		return &ConfigError{"Inbox.Receive.Topic", fmt.Sprintf("is %q, %s; give the received messages a topic of their own", topic, why)}
	}
	for _, d := range a.definitions {
		if d.Type() == topic {
			return refused("the type of a definition, and received messages are removed after a time")
		}
	}
	if topic == a.config.CommandTopic || slices.Contains(a.inboxes, topic) {
		return refused("whose messages have other handlers, and the group cannot handle these")
	}
	return nil
}

// inboxStreams is the number of streams for messages without a key, so that as many of them are
// handled at a time.
const inboxStreams = 16

// nameOf returns a function that returns the name of a received message. If there is only one
// handler, messages without a name are for it.
func nameOf(marshaler cqrs.CommandEventMarshaler, names []string) func(*message.Message) string {
	return func(msg *message.Message) string {
		name := marshaler.NameFromMessage(msg)
		if name == "" && len(names) == 1 {
			return names[0]
		}
		return name
	}
}

// decodes returns a function that returns an error for a message that its handler cannot decode.
func decodes(marshaler cqrs.CommandEventMarshaler, nameOf func(*message.Message) string, handlers []cqrs.CommandHandler) func(*message.Message) error {
	byName := map[string]cqrs.CommandHandler{}
	for _, handler := range handlers {
		byName[marshaler.Name(handler.NewCommand())] = handler
	}
	return func(msg *message.Message) error {
		handler, known := byName[nameOf(msg)]
		if !known {
			return nil
		}
		return marshaler.Unmarshal(msg, handler.NewCommand())
	}
}
