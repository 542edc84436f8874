package forward

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/internal/history"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// Metadata keys of messages.
const (
	NameKey           = "name"            // the name of the message
	SchemaVersionKey  = "schema_version"  // decimal, from 1
	KeyKey            = "key"             // for the broker: the id of the aggregate
	OccurredAtKey     = "occurred_at"     // RFC 3339 with milliseconds, UTC
	SequenceNumberKey = "sequence_number" // decimal, from 1
)

// ErrNoRecord reports a message that does not come from a subscriber of package subscriber.
var ErrNoRecord = errors.New("the message carries no event of a journal: it must come from a subscriber of package subscriber")

// Key returns the key of a message. It has the form that the Kafka Pub/Sub expects of a function
// that generates partition keys (kafka.NewWithPartitioningMarshaler). Its error is always nil.
func Key(_ string, msg *message.Message) (string, error) { return msg.Metadata.Get(KeyKey), nil }

// Forwarder publishes events as public messages. It is safe for concurrent use.
type Forwarder struct {
	config   Config
	history  history.History
	mappings map[string][]Mapping // by event type

	forwarded, ignored, failed atomic.Uint64
}

// Stats counts the work of a [Forwarder] since it was made.
type Stats struct {
	Messages uint64 // messages that the publisher has accepted, with repetitions
	Ignored  uint64 // events without messages
	Failed   uint64 // attempts at an event that have failed
}

// Description describes the messages of a [Mapping], for a catalogue.
type Description struct {
	Topic     string       // of the broker
	EventType string       // the event that leads to the messages
	Version   int          // of the schema
	Type      reflect.Type // the Go type; an interface if a function returns several types
}

// New returns a Forwarder. It makes no requests. Errors: [*ConfigError].
func New(config Config, mappings ...Mapping) (*Forwarder, error) {
	if config.Publisher == nil {
		return nil, &ConfigError{"Config.Publisher", "is nil: pass the publisher of the broker"}
	}
	if len(mappings) == 0 {
		return nil, &ConfigError{"mappings", "are missing: pass On, for each type of event that other systems receive"}
	}
	config.setDefaults()
	today, err := history.New(config.Codec, config.Definitions)
	if err != nil {
		return nil, &ConfigError{"Config.Definitions", "cannot be used: " + err.Error()}
	}
	f := &Forwarder{config: config, history: today, mappings: map[string][]Mapping{}}
	for i, m := range mappings {
		if err := m.validate(i + 1); err != nil {
			return nil, err
		}
		f.mappings[m.eventType] = append(f.mappings[m.eventType], m)
	}
	return f, nil
}

// EventTypes returns the names of the events that have a mapping, in alphabetical order.
func (f *Forwarder) EventTypes() []string { return slices.Sorted(maps.Keys(f.mappings)) }

// Stats returns the current counts.
func (f *Forwarder) Stats() Stats {
	return Stats{Messages: f.forwarded.Load(), Ignored: f.ignored.Load(), Failed: f.failed.Load()}
}

// Handle publishes the messages of an event, and returns when the broker has accepted them. It is a
// message.NoPublishHandlerFunc for messages of package subscriber. The context of the published
// messages is that of msg.
//
// Errors: [ErrNoRecord], and those of the codec, the functions, the marshaler and the publisher.
// After an error some messages of the event may have been published. Handle reports the error to
// the subscriber, see [subscriber.SetNackReason].
func (f *Forwarder) Handle(msg *message.Message) error {
	if msg == nil {
		return ErrNoRecord
	}
	err := f.handle(msg.Context())
	if err != nil {
		f.failed.Add(1)
	}
	subscriber.SetNackReason(msg.Context(), err)
	return err
}

func (f *Forwarder) handle(ctx context.Context) error {
	record, ok := subscriber.RecordFromContext(ctx)
	if !ok {
		return ErrNoRecord
	}
	out, err := f.messages(ctx, record)
	if err != nil {
		return err
	}
	if len(out) == 0 {
		f.ignored.Add(1)
		return nil
	}
	// Messages with the same topic that follow each other are published together.
	for begin := 0; begin < len(out); {
		end, topic := begin+1, out[begin].topic
		for end < len(out) && out[end].topic == topic {
			end++
		}
		run := make([]*message.Message, 0, end-begin)
		for _, m := range out[begin:end] {
			run = append(run, m.Message)
		}
		if err := f.config.Publisher.Publish(topic, run...); err != nil {
			return fmt.Errorf("publish event %d of %s (%s) to %s: %w", record.Number, record.Aggregate, record.EventType, printable.Quote(topic), err)
		}
		f.forwarded.Add(uint64(len(run)))
		begin = end
	}
	return nil
}

// addressed is a message with the topic to which it is published.
type addressed struct {
	*message.Message
	topic string
}

// messages returns the messages of an event. Upcasters may turn it into several events.
func (f *Forwarder) messages(ctx context.Context, stored *journal.Record) ([]addressed, error) {
	events, err := f.history.Today(stored)
	if err != nil {
		return nil, err
	}
	var out []addressed
	places := map[string]int{} // number of messages by topic and name
	for _, event := range events {
		for _, m := range f.mappings[event.EventType] {
			values, err := m.messages(ctx, f.history.Codec(event.Aggregate.Type), event)
			if err != nil {
				return nil, err
			}
			for _, value := range values {
				msg, err := f.message(ctx, event, m, value, places)
				if err != nil {
					return nil, fmt.Errorf("message %d of event %d of %s (%s): %w", len(out)+1, event.Number, event.Aggregate, event.EventType, err)
				}
				out = append(out, addressed{msg, m.topic})
			}
		}
	}
	return out, nil
}

// message returns the message of a value.
func (f *Forwarder) message(ctx context.Context, r *journal.Record, m Mapping, value any, places map[string]int) (*message.Message, error) {
	encoded, err := f.config.Marshaler.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("marshal %T: %w", value, err)
	}
	if encoded == nil {
		return nil, fmt.Errorf("marshal %T: Config.Marshaler has returned no message", value)
	}
	name := f.config.Marshaler.NameFromMessage(encoded)
	place := m.topic + "\x00" + name
	msg := message.NewMessage(id(r, place, places[place]), encoded.Payload)
	places[place]++
	msg.Metadata = encoded.Metadata
	if msg.Metadata == nil {
		msg.Metadata = message.Metadata{}
	}
	msg.Metadata[NameKey] = name
	msg.Metadata[SchemaVersionKey] = strconv.Itoa(m.version)
	msg.Metadata[KeyKey] = f.config.Key(r)
	envelope.SetOrigin(r, msg.Metadata)
	msg.SetContext(ctx)
	if f.config.Prepare != nil {
		if err := f.config.Prepare(msg, r); err != nil {
			return nil, fmt.Errorf("prepare it: %w", err)
		}
	}
	return msg, nil
}

// id returns the UUID of a message of an event. It depends on everything that distinguishes the
// message from others, since the ids of events need not be unique.
func id(r *journal.Record, place string, number int) string {
	name := fmt.Sprintf("%q %q %d %q %q %d", r.Aggregate.Type, r.Aggregate.Value, r.Number, r.EventID, place, number)
	return uuid.NewSHA1(namespace, []byte(name)).String()
}

// namespace is the namespace of the UUIDs of messages.
var namespace = uuid.MustParse("0d3f7c1e-7e0b-5c53-9a6c-7f2b1a9c4d21")
