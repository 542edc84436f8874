package catalogue

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/aggregate"
)

// Catalogue describes the events, states and messages of an application. [New] makes it. It does
// not change, and is safe for concurrent use.
type Catalogue struct {
	config     Config
	aggregates []*aggregateEntry
	channels   []*channelEntry
	inference  *inference
	names      map[structKey]string // of the definitions in schemas
	found      map[subject]Entry    // the event types
}

// aggregateEntry describes an aggregate type.
type aggregateEntry struct {
	name      string
	state     *entry
	events    []*entry
	upcasters []*entry
	page      string // the path of the page
}

// channelEntry describes a channel that the application has declared.
type channelEntry struct {
	Channel
	messages []*entry
	page     string
}

// entry describes the payload of an event, a state, an event that is upcast, or a message.
type entry struct {
	about
	title, text string
	schema      *schema
	root        *structKey // the type that the schema describes
	file        string     // the path of the schema, in the folder of the catalogue
	document    []byte     // the schema as the content of the file
	codec       aggregate.Codec
	returns     reflect.Type // what an upcaster returns, nil if that is not one type
}

// about says in a file what a schema describes.
type about struct {
	Kind kind `json:"kind"`
	// Aggregate and Event are the names of an event, a state or an upcaster.
	Aggregate string `json:"aggregate,omitempty"`
	Event     string `json:"event,omitempty"`
	// UpcastTo holds the event types that an upcaster returns. Renames reports that the payload
	// does not change, and Open that it may return other event types.
	UpcastTo []string `json:"upcastTo,omitempty"`
	Renames  bool     `json:"renames,omitempty"`
	Open     bool     `json:"open,omitempty"`

	// Channel, Address, Message and Version are those of a message.
	Channel string `json:"channel,omitempty"`
	Address string `json:"address,omitempty"`
	Message string `json:"message,omitempty"`
	Version int    `json:"version,omitempty"`

	Codec  string `json:"codec"`
	GoType string `json:"goType,omitempty"`
}

type kind string

const (
	event    kind = "event"
	state    kind = "state"
	upcaster kind = "upcaster"
	message  kind = "message"
)

// String names what is described, for errors.
func (a about) String() string {
	switch a.Kind {
	case state:
		return fmt.Sprintf("the state of aggregate type %q", a.Aggregate)
	case message:
		return fmt.Sprintf("message %q version %d of channel %q", a.Message, a.Version, a.Channel)
	}
	return fmt.Sprintf("event type %q of aggregate type %q", a.Event, a.Aggregate)
}

// New returns the catalogue of an application.
//
// Errors: [*ConfigError]; [*aggregate.DefinitionError]; [*TypeError] for a type that JSON cannot
// hold.
func New(config Config) (*Catalogue, error) {
	config.setDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	c := &Catalogue{config: config, inference: newInference(config.As)}
	for _, definition := range config.Definitions {
		if err := c.addAggregate(definition.(describer)); err != nil {
			return nil, err
		}
	}
	for _, channel := range config.Channels {
		if err := c.addChannel(channel); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(c.aggregates, func(a, b *aggregateEntry) int { return strings.Compare(a.name, b.name) })
	slices.SortFunc(c.channels, func(a, b *channelEntry) int { return strings.Compare(a.Name, b.Name) })
	c.nameDefinitions()
	c.nameFiles()
	return c, c.encode()
}

// encode encodes the schemas.
func (c *Catalogue) encode() (err error) {
	c.found = map[subject]Entry{}
	for _, e := range c.all() {
		if e.document, err = document(c.standalone(e)); err != nil {
			return fmt.Errorf("catalogue: encode the schema of %s: %w", e.about, err)
		}
		if e.Kind == event || e.Kind == upcaster {
			c.found[e.subject()] = Entry{e.Aggregate, e.Event, e.Kind == upcaster, e.UpcastTo, e.document}
		}
	}
	return nil
}

func (c *Catalogue) addAggregate(definition describer) error {
	of, name := definition.Describe(), definition.Type()
	a := &aggregateEntry{name: name}
	add := func(what about, codec aggregate.Codec, t reflect.Type) (*entry, error) {
		what.Aggregate = name
		e := &entry{about: what, title: what.Event}
		return e, c.describe(e, codec, t)
	}
	var err error
	if a.state, err = add(about{Kind: state}, definition.Codec(), reflect.PointerTo(of.State)); err != nil {
		return err
	}
	a.state.title = "state of " + name
	for _, described := range of.Events {
		e, err := add(about{Kind: event, Event: described.Type}, definition.Codec(), described.GoType)
		if err != nil {
			return err
		}
		a.events = append(a.events, e)
	}
	for _, u := range of.Upcasters {
		what := about{Kind: upcaster, Event: u.From, UpcastTo: u.To, Open: u.Open}
		what.Renames = u.GoType == nil && !u.Splits && len(u.To) == 1
		old := u.GoType
		if old != nil && old.Kind() != reflect.Pointer {
			old = reflect.PointerTo(old)
		}
		e, err := add(what, u.Codec, old)
		if err != nil {
			return err
		}
		e.text, e.returns = what.reading(), u.Returns
		a.upcasters = append(a.upcasters, e)
	}
	c.aggregates = append(c.aggregates, a)
	return nil
}

// reading says how stored events of an old type are read.
func (a about) reading() string {
	to := strings.Join(a.UpcastTo, ", ")
	switch {
	case a.Renames:
		return "Stored events of this type are read as " + to + ", with the same payload."
	case a.Open && to == "":
		return "Stored events of this type are read as other events."
	case a.Open:
		return "Stored events of this type are read as " + to + " or other events."
	case to == "":
		return "Stored events of this type are ignored."
	}
	return "Stored events of this type are read as " + to + "."
}

func (c *Catalogue) addChannel(channel Channel) error {
	of := &channelEntry{Channel: channel}
	for _, m := range channel.Messages {
		e := &entry{
			about: about{Kind: message, Channel: channel.Name, Address: channel.Address, Message: m.Name, Version: m.Version},
			title: m.Title, text: m.Description,
		}
		if e.title == "" {
			e.title = m.Name
		}
		if err := c.describe(e, m.Codec, m.Type); err != nil {
			return err
		}
		of.messages = append(of.messages, e)
	}
	slices.SortStableFunc(of.messages, func(a, b *entry) int { return a.Version - b.Version })
	slices.SortStableFunc(of.messages, func(a, b *entry) int { return strings.Compare(a.Message, b.Message) })
	c.channels = append(c.channels, of)
	return nil
}

// describe sets the schema of an entry. A nil type is one that is not decoded.
func (c *Catalogue) describe(e *entry, codec aggregate.Codec, t reflect.Type) error {
	e.Codec, e.GoType, e.schema, e.codec = "json", typeName(t), &schema{}, codec
	if d, ok := codec.(messageDescriber); ok {
		e.Codec = "protobuf"
		if t == nil {
			return nil
		}
		descriptor, other := d.Describe(t)
		if descriptor != nil {
			e.schema = protobufSchema(descriptor)
			return nil
		}
		return c.describe(e, other, t)
	}
	if codec != aggregate.JSON {
		e.Codec = fmt.Sprintf("%T", codec)
		e.schema.Description = "Encoded by the codec " + e.Codec + ". This catalogue does not describe its format."
		return nil
	}
	if t == nil {
		return nil
	}
	var err error
	e.schema, e.root, err = c.inference.root(t)
	var failed *TypeError
	if errors.As(err, &failed) {
		failed.Owner = e.about.String()
	}
	return err
}

// all yields all entries: for each aggregate its state, events and upcasters, then the messages.
func (c *Catalogue) all() (entries []*entry) {
	for _, a := range c.aggregates {
		entries = append(entries, a.state)
		entries = append(entries, a.events...)
		entries = append(entries, a.upcasters...)
	}
	for _, channel := range c.channels {
		entries = append(entries, channel.messages...)
	}
	return entries
}

// nameDefinitions chooses the names of the types that schemas refer to.
func (c *Catalogue) nameDefinitions() {
	var keys []structKey
	seen := map[structKey]bool{}
	for _, e := range c.all() {
		for _, key := range c.reachable(e) {
			if !seen[key] {
				seen[key] = true
				keys = append(keys, key)
			}
		}
	}
	c.names = definitionNames(keys)
}

// reachable returns the types that the schema of an entry refers to, in the order in which they
// occur in it.
func (c *Catalogue) reachable(e *entry) (keys []structKey) {
	seen := map[structKey]bool{}
	var visit func(s *schema)
	visit = func(s *schema) {
		if s.refers != nil && !seen[*s.refers] {
			seen[*s.refers] = true
			keys = append(keys, *s.refers)
			visit(c.inference.definitions[*s.refers])
		}
		for _, part := range s.parts() {
			visit(part)
		}
	}
	visit(e.schema)
	return keys
}

// standalone returns the schema of an entry as a document of its own. Fields that an upcaster reads
// are not required, since it reads payloads that lack fields.
func (c *Catalogue) standalone(e *entry) *schema {
	s := c.withRequired(e)
	if e.Kind == upcaster {
		withoutRequired(s)
		for _, of := range s.Defs {
			withoutRequired(of.schema)
		}
	}
	return s
}

// withRequired is like standalone, and keeps the lists of required fields.
func (c *Catalogue) withRequired(e *entry) *schema {
	refer := func(s *schema) {
		s.Ref = "#/$defs/" + c.names[*s.refers]
		if e.root != nil && *s.refers == *e.root {
			s.Ref = "#"
		}
	}
	s := e.schema.copied(refer)
	s.Dialect, s.Title, s.About = dialect, e.title, &e.about
	s.Description = strings.TrimSpace(e.text + " " + s.Description)
	for _, key := range c.reachable(e) {
		if e.root == nil || key != *e.root {
			s.Defs = append(s.Defs, property{c.names[key], c.inference.definitions[key].copied(refer)})
		}
	}
	return s
}

// withoutRequired removes the lists of required fields from a copied schema.
func withoutRequired(s *schema) {
	s.Required = nil
	for _, part := range s.parts() {
		withoutRequired(part)
	}
}

// Entry is an event type in a catalogue.
type Entry struct {
	AggregateType string // the type of the aggregate
	EventType     string // the name under which the event is stored
	// Upcast reports that the definition lacks the event type, and that an upcaster reads it.
	// UpcastTo holds the event types that it is known to return.
	Upcast   bool
	UpcastTo []string
	// Schema is the JSON Schema of the event as a JSON document, or of what the upcaster reads.
	Schema []byte
}

// Event returns an event type of an aggregate type. It reports false if the catalogue lacks it. The
// caller must not change the result.
func (c *Catalogue) Event(aggregateType, eventType string) (Entry, bool) {
	e, ok := c.found[subject{event, aggregateType, eventType, 0}]
	return e, ok
}
