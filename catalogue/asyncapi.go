package catalogue

import "fmt"

// The types of this file are the parts of AsyncAPI 3.0 that a catalogue uses.

type asyncDocument struct {
	AsyncAPI           string                    `json:"asyncapi"`
	Info               asyncInfo                 `json:"info"`
	DefaultContentType string                    `json:"defaultContentType"`
	Channels           map[string]asyncChannel   `json:"channels"`
	Operations         map[string]asyncOperation `json:"operations"`
	Components         asyncComponents           `json:"components"`
}

type asyncInfo struct {
	Title       string `json:"title"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
}

type asyncChannel struct {
	Address     string                  `json:"address"`
	Title       string                  `json:"title,omitempty"`
	Description string                  `json:"description,omitempty"`
	Messages    map[string]asyncMessage `json:"messages"`
}

type asyncMessage struct {
	Name        string  `json:"name"`
	Title       string  `json:"title,omitempty"`
	Description string  `json:"description,omitempty"`
	ContentType string  `json:"contentType,omitempty"`
	Payload     *schema `json:"payload"`
}

type asyncOperation struct {
	Action  string         `json:"action"`
	Channel asyncReference `json:"channel"`
}

type asyncReference struct {
	Ref string `json:"$ref"`
}

type asyncComponents struct {
	Schemas map[string]*schema `json:"schemas"`
}

// asyncAPI returns the AsyncAPI document. All schemas are components, since a reference in it
// begins at the document.
func (c *Catalogue) asyncAPI() asyncDocument {
	d := asyncDocument{
		AsyncAPI: "3.0.0", Info: asyncInfo{c.config.Title, c.config.Version, c.config.Description},
		DefaultContentType: "application/json",
		Channels:           map[string]asyncChannel{}, Operations: map[string]asyncOperation{},
		Components: asyncComponents{map[string]*schema{}},
	}
	for _, e := range c.all() {
		for _, key := range c.reachable(e) {
			if e.Kind != upcaster {
				d.Components.Schemas["types."+c.names[key]] = c.inference.definitions[key].copied(c.referComponent)
			}
		}
	}
	keys := c.channelKeys()
	for _, a := range c.aggregates {
		channel := asyncChannel{
			Address: a.name, Title: a.name, Description: fmt.Sprintf("The events of the aggregates of type %s.", a.name),
			Messages: map[string]asyncMessage{},
		}
		c.addMessages(d, channel, keys[a.name], a.events, func(e *entry) string { return e.Event })
		d.addChannel(keys[a.name], channel, "send")
		schemaKey := keys[a.name] + ".state"
		d.Components.Schemas[unused(d.Components.Schemas, schemaKey)] = c.component(a.state)
	}
	for _, of := range c.channels {
		channel := asyncChannel{Address: of.Address, Title: of.Title, Description: of.Description, Messages: map[string]asyncMessage{}}
		c.addMessages(d, channel, keys[of.Name], of.messages, func(e *entry) string { return e.versioned() })
		action := "send"
		if of.Receives {
			action = "receive"
		}
		d.addChannel(keys[of.Name], channel, action)
	}
	return d
}

func (c *Catalogue) channelKeys() map[string]string {
	var names []string
	for _, a := range c.aggregates {
		names = append(names, a.name)
	}
	for _, channel := range c.channels {
		names = append(names, channel.Name)
	}
	return uniqueNames(names, plainKey)
}

// plainKey returns a key for any name.
func plainKey(name string) string {
	if key := plainName(name); key != "" {
		return key
	}
	return "_"
}

func (d asyncDocument) addChannel(key string, channel asyncChannel, action string) {
	d.Channels[key] = channel
	d.Operations[action+"."+key] = asyncOperation{action, asyncReference{"#/channels/" + key}}
}

func (c *Catalogue) addMessages(d asyncDocument, channel asyncChannel, channelKey string, entries []*entry, nameOf func(*entry) string) {
	var names []string
	for _, e := range entries {
		names = append(names, nameOf(e))
	}
	keys := uniqueNames(names, plainKey)
	for _, e := range entries {
		name := nameOf(e)
		schemaKey := unused(d.Components.Schemas, channelKey+"."+keys[name])
		d.Components.Schemas[schemaKey] = c.component(e)
		m := asyncMessage{Name: name, Title: e.title, Description: e.text, Payload: &schema{Ref: "#/components/schemas/" + schemaKey}}
		if m.Title == name {
			m.Title = ""
		}
		switch {
		case e.schema.Protobuf != nil:
			m.ContentType = "application/x-protobuf"
		case e.Codec != "json":
			m.ContentType = "application/octet-stream"
		}
		channel.Messages[keys[name]] = m
	}
}

// component returns the schema of an entry for the AsyncAPI document.
func (c *Catalogue) component(e *entry) *schema {
	s := e.schema.copied(c.referComponent)
	s.About = &e.about
	return s
}

func (c *Catalogue) referComponent(s *schema) {
	s.Ref = "#/components/schemas/types." + c.names[*s.refers]
}

// unused returns the key with a number if it is taken.
func unused(schemas map[string]*schema, key string) string {
	free := key
	for n := 2; schemas[free] != nil; n++ {
		free = fmt.Sprintf("%s-%d", key, n)
	}
	return free
}
