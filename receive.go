package millrace

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/receive"
)

// Inbox configures [App.Receive]. Subscriber and Topics are required.
type Inbox struct {
	// Subscriber receives the messages of the other Pub/Sub. The App does not close it: close it
	// after [App.Run].
	Subscriber message.Subscriber
	// Topics are those of the other Pub/Sub.
	Topics []string
	// Marshaler decodes the messages, and names the commands. Default: cqrs.JSONMarshaler with the
	// names of publisher.EventName.
	Marshaler cqrs.CommandEventMarshaler
	// Receive says how messages are stored. The App sets Publisher and Names, and these if they are
	// left out: Topic, to the name of the group and "-inbox"; Name, to the metadata "name", or if
	// there is one handler, its command; Check, which decodes messages as their handlers do.
	Receive receive.Config
}

// Receive handles messages of another Pub/Sub as commands, each once. The App stores each message
// in the journal (package receive), and acks it. The handlers then get the stored messages in the
// consumer group, with its failure policies: Group.Subscriber configures it, and Group.Topics is
// empty. Package command makes such handlers.
//
// Messages that were handled are removed after Config.CommandRetention. A message without a handler
// is stored, and delivered again until a process handles it, unless Inbox.Receive.IgnoreUnknown is
// set. [App.CatchUp] handles stored messages, and receives none.
//
// Errors: those of [App.HandleCommands] and of receive.New.
func (a *App) Receive(g Group, in Inbox, handlers ...cqrs.CommandHandler) (*receive.Receiver, error) {
	if err := in.validate(g); err != nil {
		return nil, err
	}
	if in.Marshaler == nil {
		in.Marshaler = cqrs.JSONMarshaler{GenerateName: publisher.EventName}
	}
	names, err := commandNames(g, in.Marshaler, handlers)
	config := in.Receive
	if config.Topic == "" {
		config.Topic = g.Name + "-inbox"
	}
	g.Topics = []string{config.Topic}
	if err := errors.Join(a.checkNotStarted(), g.validate(), err); err != nil {
		return nil, err
	}
	if other := a.usesTopic(config.Topic); other != "" {
		return nil, &ConfigError{"Inbox.Receive.Topic", fmt.Sprintf("is %q, %s; give the messages of each group a topic of their own", config.Topic, other)}
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
	if err := a.dispatch(g, byStoredName{in.Marshaler}, handlers); err != nil {
		return nil, err
	}
	for _, topic := range in.Topics {
		a.router.AddConsumerHandler("receive "+g.handlerName(topic), topic, kept{in.Subscriber}, inbox.Handle)
	}
	a.publishers, a.inboxes = append(a.publishers, p), append(a.inboxes, config.Topic)
	a.addComponent(g.Name, inbox)
	return inbox, nil
}

func (in Inbox) validate(g Group) error {
	switch {
	case in.Subscriber == nil:
		return &ConfigError{"Inbox.Subscriber", fmt.Sprintf("of group %q is nil; pass the subscriber of the other Pub/Sub", g.Name)}
	case len(in.Topics) == 0 || slices.Contains(in.Topics, ""):
		return &ConfigError{"Inbox.Topics", fmt.Sprintf("of group %q is empty or has an empty one; name the topics of the other Pub/Sub", g.Name)}
	case len(g.Topics) > 0:
		return &ConfigError{"Group.Topics", fmt.Sprintf("of group %q are set; name the topics of the other Pub/Sub in Inbox.Topics", g.Name)}
	}
	for i, topic := range in.Topics {
		if slices.Contains(in.Topics[:i], topic) {
			return &ConfigError{"Inbox.Topics", fmt.Sprintf("of group %q has %q twice; name it once", g.Name, topic)}
		}
	}
	return nil
}

// usesTopic says what else uses a topic of the journal. It is empty if nothing does.
func (a *App) usesTopic(topic string) string {
	switch {
	case topic == a.config.CommandTopic:
		return "Config.CommandTopic"
	case slices.Contains(a.inboxes, topic):
		return "the topic of another inbox"
	case slices.ContainsFunc(a.definitions, func(d aggregate.AnyDefinition) bool { return d.Type() == topic }):
		return "the type of a definition"
	}
	return ""
}

// inboxStreams is the number of streams for messages without a key, so that as many of them are
// handled at a time.
const inboxStreams = 16

// byStoredName reads the name that a message was stored with, which Config.Name has found. The
// marshaler may read another key of the other Pub/Sub.
type byStoredName struct{ cqrs.CommandEventMarshaler }

// NameFromMessage implements cqrs.CommandEventMarshaler.
func (byStoredName) NameFromMessage(msg *message.Message) string {
	return msg.Metadata.Get(publisher.NameKey)
}

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
