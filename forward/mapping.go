package forward

import (
	"context"
	"fmt"
	"reflect"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/reaction"
	"github.com/millrace-dev/millrace/journal"
)

// Mapping turns the events of one type into public messages of one type. [On] makes one.
type Mapping struct {
	topic     string
	eventType string
	version   int
	of        reflect.Type // of the messages
	messages  func(context.Context, aggregate.Codec, *journal.Record) ([]any, error)
}

// On returns a [Mapping] of the events of the type E to messages of the type M, which are published
// to a topic of the broker. E is the event as the aggregate defines it, or a type of your own with
// the fields that the function needs. The zero value of E must return its EventType, so E is not a
// pointer.
//
// The function returns the messages of an event, in the order in which they are published. It may
// return none. It must return the same messages each time, because an event can be delivered more
// than once. If it returns an error, the event is delivered again; only its aggregate waits.
//
// An event type may have several mappings. Their messages are published in the order of the
// mappings.
func On[E interface{ EventType() string }, M any](topic string, messages func(ctx context.Context, event E, record *journal.Record) ([]M, error)) Mapping {
	if messages == nil {
		return Mapping{topic: topic} // New refuses it
	}
	return Mapping{
		topic: topic, eventType: reaction.EventType[E](), version: 1, of: reflect.TypeFor[M](),
		messages: func(ctx context.Context, codec aggregate.Codec, r *journal.Record) ([]any, error) {
			event, err := reaction.Decode[E](codec, r)
			if err != nil {
				return nil, err
			}
			typed, err := messages(ctx, event, r)
			all := make([]any, len(typed))
			for i, m := range typed {
				all[i] = m
			}
			return all, err
		},
	}
}

// WithVersion returns a copy of the mapping with another version of the schema of its messages. The
// first version is 1, which is the default. Change it when receivers must know that the messages
// have changed.
func (m Mapping) WithVersion(version int) Mapping {
	m.version = version
	return m
}

// Describe describes the messages of the mapping.
func (m Mapping) Describe() Description {
	return Description{Topic: m.topic, EventType: m.eventType, Version: m.version, Type: m.of}
}

func (m Mapping) validate(place int) error {
	field := fmt.Sprintf("mapping %d", place)
	switch {
	case m.messages == nil || m.eventType == "":
		return &ConfigError{field, "has no function or no event type: pass On, with a function of an event struct whose zero value returns its EventType"}
	case m.topic == "":
		return &ConfigError{field, "has no topic: name the topic of the broker"}
	case m.version < 1:
		return &ConfigError{field, fmt.Sprintf("has the version %d: the first version is 1", m.version)}
	}
	return nil
}
