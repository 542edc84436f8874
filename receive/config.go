package receive

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/publisher"
)

// Config configures a [Receiver]. Publisher and Topic are required.
type Config struct {
	// Publisher stores the messages in the journal. With publisher.Config.Streams, messages without
	// a key are spread over several streams. The caller closes it, after the handlers have ended.
	Publisher *publisher.Publisher

	// Topic is the topic of the journal under which the messages are stored. Do not use the type of
	// an aggregate of a repository.
	Topic string

	// ID returns the id of a message in its topic, if the sender sets no UUID of Watermill, such as
	// the partition and offset in Kafka or a field of the payload. It must be the same for each
	// delivery of the message. The stored message has the UUID "{topic}/{id}". Default: the UUID of
	// the message. A UUID that is not UTF-8 or has more than 512 bytes is replaced by its SHA-256,
	// because it could not be the id of a command.
	ID func(msg *message.Message) string

	// Key returns the key of a message: messages with the same key are handled in the order in
	// which they were stored. It becomes the id of an aggregate; a key that cannot be one is
	// replaced by its SHA-256. Messages with an empty key have no order. Default: no keys.
	Key func(msg *message.Message) string

	// Name returns the name of a message, by which its handler is found. Default: the metadata
	// "name", as Watermill's cqrs component sets it.
	Name func(msg *message.Message) string

	// IgnoreUnknown acks messages whose names are not in Names, without storing them. Stats.Ignored
	// counts them, and the first message of each name is logged at level info, for up to 100 names.
	// Set it for a topic with messages that are for others. In a rolling deployment an old process
	// then ignores messages that only a new process knows. Default: all messages are stored.
	IgnoreUnknown bool
	// Names lists the names of messages that have a handler, for IgnoreUnknown. App.Receive sets
	// it.
	Names []string

	// DeadLetter is called for a message that can never be stored or handled: it has no id
	// ([ErrNoID]), Check refuses it or a function of the Config panics with it ([ErrUndecodable]),
	// the publisher refuses it (*publisher.MessageError), such as a message that is too large, or
	// the stream of its key was deleted or its encryption key destroyed. If DeadLetter returns nil,
	// the message is acked: publish it to a topic of the other Pub/Sub, or log what is needed to
	// find it. Default: a message that cannot be stored fails again and again, and with some
	// Pub/Subs it holds up all later ones. One that cannot be decoded is stored, and fails in its
	// group.
	DeadLetter func(msg *message.Message, reason error) error

	// Check returns an error for a message that its handler cannot decode, for DeadLetter.
	// App.Receive sets it.
	Check func(msg *message.Message) error

	// Pause and MaxPause are the times that Handle waits after a failure. The pause doubles with
	// each failure in a row. Defaults: 1 second and 1 minute.
	Pause, MaxPause time.Duration
}

func (c *Config) setDefaults() {
	if c.ID == nil {
		c.ID = func(msg *message.Message) string { return msg.UUID }
	}
	if c.Key == nil {
		c.Key = func(*message.Message) string { return "" }
	}
	if c.Name == nil {
		c.Name = func(msg *message.Message) string { return msg.Metadata.Get(publisher.NameKey) }
	}
	c.Pause = cmp.Or(c.Pause, time.Second)
	c.MaxPause = cmp.Or(c.MaxPause, max(time.Minute, c.Pause))
}

func (c *Config) validate() error {
	switch {
	case c.Publisher == nil:
		return &ConfigError{"Publisher", "is nil: pass a publisher of the journal"}
	case c.Topic == "":
		return &ConfigError{"Topic", "is empty: name the topic of the journal that stores the messages"}
	case c.Pause < 0 || c.MaxPause < c.Pause:
		return &ConfigError{"Pause", "is negative or longer than MaxPause; leave both 0 for the defaults"}
	}
	return nil
}

// ConfigError reports a setting that cannot work. Field names it, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("receive: Config.%s %s", e.Field, e.Reason) }
