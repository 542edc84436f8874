package catalogue

import (
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/aggregate"
)

// Config lists what a catalogue describes.
type Config struct {
	// Title is the name of the application. Default: "Events".
	Title string
	// Version is the version of the application's interface, for AsyncAPI. Default: "1.0.0".
	Version string
	// Description is a text about the application. Default: none.
	Description string

	// Definitions are the aggregates. The channel of an aggregate has the name of its type.
	Definitions []aggregate.AnyDefinition
	// Channels are other channels, such as topics of a broker to which the application forwards
	// public messages, or from which it receives commands.
	Channels []Channel

	// As describes types that encode themselves as another type. A key is a Go type with the method
	// MarshalJSON, and its value is a Go type with the same JSON. Without an entry, a type with
	// MarshalText is a string of the format "text", and a type with MarshalJSON can be any JSON. A
	// change from one such type to another is not noticed.
	As map[reflect.Type]reflect.Type
}

// Channel is a channel that the application declares itself.
type Channel struct {
	// Name identifies the channel in the catalogue.
	Name string
	// Address is the topic, queue or subject at the broker. Default: Name.
	Address string
	// Title and Description are texts for readers. Default: none.
	Title, Description string
	// Receives reports that the application receives the messages. Default: it sends them.
	Receives bool
	// Messages are the messages of the channel.
	Messages []Message
}

// Message is a version of a message of a [Channel].
type Message struct {
	// Name identifies the message in the channel.
	Name string
	// Version is the version of the schema. Messages of one name have different versions. Default:
	// 1.
	Version int
	// Title and Description are texts for readers. Default: none.
	Title, Description string
	// Type is the Go type of the payload, such as reflect.TypeFor[OrderPlaced]().
	Type reflect.Type
	// Codec encodes the payload. Default: aggregate.JSON.
	Codec aggregate.Codec
}

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("catalogue: Config.%s %s", e.Field, e.Reason)
}

// TypeError reports a Go type that has no JSON.
type TypeError struct {
	Owner  string       // the event, state or message
	Field  string       // the path of the field by its JSON names, empty for the whole value
	GoType reflect.Type // the type
	Reason string       // why, and what to do about it
}

func (e *TypeError) Error() string {
	where := ""
	if e.Field != "" {
		where = fmt.Sprintf(": field %q", e.Field)
	}
	return fmt.Sprintf("catalogue: %s%s has the type %s: %s", e.Owner, where, e.GoType, e.Reason)
}

func (c *Config) setDefaults() {
	if c.Title == "" {
		c.Title = "Events"
	}
	if c.Version == "" {
		c.Version = "1.0.0"
	}
	channels := make([]Channel, len(c.Channels))
	for i, channel := range c.Channels {
		if channel.Address == "" {
			channel.Address = channel.Name
		}
		messages := make([]Message, len(channel.Messages))
		for j, m := range channel.Messages {
			if m.Version == 0 {
				m.Version = 1
			}
			if m.Codec == nil {
				m.Codec = aggregate.JSON
			}
			messages[j] = m
		}
		channel.Messages = messages
		channels[i] = channel
	}
	c.Channels = channels
}

// describer is a definition whose types are known.
type describer interface {
	aggregate.AnyDefinition
	Describe() aggregate.Description
}

// validate returns a [*ConfigError] for the first setting that cannot work, or the error of a
// definition.
func (c Config) validate() error {
	types := map[string]bool{}
	for i, definition := range c.Definitions {
		field := fmt.Sprintf("Definitions[%d]", i)
		if definition == nil {
			return &ConfigError{field, "is nil: leave it out"}
		}
		if err := definition.Validate(); err != nil {
			return fmt.Errorf("catalogue: %w", err)
		}
		if _, ok := definition.(describer); !ok {
			return &ConfigError{field, fmt.Sprintf("is a %T without the method Describe: use an aggregate.Definition, or add the method", definition)}
		}
		if types[definition.Type()] {
			return &ConfigError{field, fmt.Sprintf("is the second definition of the aggregate type %q: pass the one that programs use", definition.Type())}
		}
		types[definition.Type()] = true
	}
	names := map[string]bool{}
	for i, channel := range c.Channels {
		field := fmt.Sprintf("Channels[%d]", i)
		switch {
		case channel.Name == "":
			return &ConfigError{field + ".Name", "is empty: set a name"}
		case !utf8.ValidString(channel.Name + channel.Address):
			return &ConfigError{field, "has a name or an address that is not valid UTF-8, which JSON cannot hold: use plain text"}
		case names[channel.Name]:
			return &ConfigError{field + ".Name", fmt.Sprintf("%q is taken by another channel: use different names", channel.Name)}
		case types[channel.Name]:
			return &ConfigError{field + ".Name", fmt.Sprintf("%q is the channel of an aggregate type: use another name, and set Address", channel.Name)}
		}
		names[channel.Name] = true
		if err := validateMessages(field, channel.Messages); err != nil {
			return err
		}
	}
	return nil
}

func validateMessages(field string, messages []Message) error {
	type version struct {
		name   string
		number int
	}
	seen := map[version]bool{}
	for i, m := range messages {
		field := fmt.Sprintf("%s.Messages[%d]", field, i)
		switch {
		case m.Name == "":
			return &ConfigError{field + ".Name", "is empty: set a name"}
		case !utf8.ValidString(m.Name):
			return &ConfigError{field + ".Name", "is not valid UTF-8, which JSON cannot hold: use plain text"}
		case m.Version < 0:
			return &ConfigError{field + ".Version", fmt.Sprintf("is %d: use a positive number", m.Version)}
		case m.Type == nil:
			return &ConfigError{field + ".Type", "is nil: pass the Go type, such as reflect.TypeFor[OrderPlaced]()"}
		case seen[version{m.Name, m.Version}]:
			return &ConfigError{field, fmt.Sprintf("is the second message %q of version %d: increase the version of one of them", m.Name, m.Version)}
		}
		seen[version{m.Name, m.Version}] = true
	}
	return nil
}
