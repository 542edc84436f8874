package forward

import (
	"fmt"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
)

// Config configures a [Forwarder]. Only Publisher is required.
type Config struct {
	// Publisher publishes the messages. It must return only when the broker has accepted them:
	// Kafka with acks of all replicas, NATS with JetStream. The caller closes it, after the
	// handlers have ended.
	Publisher message.Publisher

	// Marshaler names and encodes messages. The name must not change, so give each type of message
	// a method EventType, which the default uses. Default: cqrs.JSONMarshaler with the names of
	// publisher.EventName.
	Marshaler cqrs.CommandEventMarshaler

	// Key returns the key of the messages of an event, by which brokers partition. Default: the id
	// of the aggregate without its type. With another key, messages of different aggregates have
	// the same key, but no order among each other.
	Key func(record *journal.Record) string

	// Prepare, if set, changes a message before it is published, for example to add metadata of the
	// event. It must not change the UUID, and must do the same each time.
	Prepare func(msg *message.Message, record *journal.Record) error

	// Definitions upcast the events of their aggregates before the functions receive them, and
	// their codecs decode these events. Events of other aggregates keep their stored form. Default:
	// none.
	Definitions []aggregate.AnyDefinition

	// Codec decodes the events of aggregates without a definition. Default: aggregate.JSON.
	Codec aggregate.Codec
}

func (c *Config) setDefaults() {
	if c.Marshaler == nil {
		c.Marshaler = cqrs.JSONMarshaler{GenerateName: publisher.EventName}
	}
	if c.Key == nil {
		c.Key = func(r *journal.Record) string { return r.Aggregate.Value }
	}
	if c.Codec == nil {
		c.Codec = aggregate.JSON
	}
}

// ConfigError reports a setting or an argument that cannot work. Field names it, and Reason says
// why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("forward: %s %s", e.Field, e.Reason) }
