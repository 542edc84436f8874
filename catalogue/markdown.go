package catalogue

import (
	"fmt"
	"path"
	"strings"
	"unicode"
)

// page is a Markdown page.
type page struct {
	*Catalogue
	out    strings.Builder
	links  map[structKey]string // the types that the page describes, with the links to them
	folder string               // of the page, for links to files
}

func newPage(c *Catalogue, file, title string) *page {
	p := &page{Catalogue: c, links: map[structKey]string{}, folder: path.Dir(file)}
	p.line("# %s\n", inline(title))
	p.line("%s\n", generatedMark)
	return p
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// row writes a row of a table. Its cells are Markdown.
func (p *page) row(cells ...string) { p.line("| %s |", strings.Join(cells, " | ")) }

func (p *page) header(cells ...string) {
	p.row(cells...)
	p.line("|%s", strings.Repeat("---|", len(cells)))
}

// index returns the page that lists all others.
func (c *Catalogue) index() []byte {
	p := newPage(c, indexFile, c.config.Title)
	if c.config.Description != "" {
		p.line("%s\n", c.config.Description)
	}
	p.line("The [AsyncAPI document](%s) describes the same channels and messages for programs.", asyncAPIFile)
	if len(c.aggregates) > 0 {
		p.line("\n## Aggregates\n")
		p.header("aggregate type", "event types")
		for _, a := range c.aggregates {
			var events []string
			for _, e := range a.events {
				events = append(events, code(e.Event))
			}
			p.row(fmt.Sprintf("[%s](%s)", inline(a.name), target(a.page)), strings.Join(events, ", "))
		}
	}
	if len(c.channels) > 0 {
		p.line("\n## Channels\n")
		p.header("channel", "address", "direction", "messages")
		for _, channel := range c.channels {
			var messages []string
			for _, e := range channel.messages {
				messages = append(messages, code(e.versioned()))
			}
			p.row(fmt.Sprintf("[%s](%s)", inline(channel.Name), target(channel.page)), code(channel.Address), channel.direction(), strings.Join(messages, ", "))
		}
	}
	return []byte(p.out.String())
}

func (c *channelEntry) direction() string {
	if c.Receives {
		return "received"
	}
	return "sent"
}

func (c *Catalogue) aggregatePage(a *aggregateEntry) []byte {
	p := newPage(c, a.page, a.name)
	p.line("The events of the aggregates of type %s.", code(a.name))
	all := append([]*entry{a.state}, a.events...)
	p.link(append(all, a.upcasters...))
	for _, e := range a.events {
		p.line("\n## %s\n", inline(e.Event))
		p.payload(e)
	}
	if len(a.upcasters) > 0 {
		p.line("\n## Event types that are upcast\n")
		p.line("Programs no longer write these event types. The tables list the fields that programs read.")
		for _, e := range a.upcasters {
			p.line("\n### %s\n", inline(e.Event))
			p.line("%s", inline(e.text))
			p.line("")
			if e.GoType != "" {
				p.payload(e)
			} else {
				p.line("[Schema](%s).", p.linkTo(e))
			}
		}
	}
	p.line("\n## State\n")
	p.payload(a.state)
	p.types()
	return []byte(p.out.String())
}

func (c *Catalogue) channelPage(channel *channelEntry) []byte {
	p := newPage(c, channel.page, channel.Name)
	if channel.Title != "" {
		p.line("%s\n", inline(channel.Title))
	}
	if channel.Description != "" {
		p.line("%s\n", channel.Description)
	}
	p.line("The messages are %s. Address: %s.", channel.direction(), code(channel.Address))
	p.link(channel.messages)
	for _, e := range channel.messages {
		p.line("\n## %s version %d\n", inline(e.Message), e.Version)
		if e.title != e.Message {
			p.line("%s\n", inline(e.title))
		}
		if e.text != "" {
			p.line("%s\n", e.text)
		}
		p.payload(e)
	}
	p.types()
	return []byte(p.out.String())
}

// link finds the types that the page must describe.
func (p *page) link(entries []*entry) {
	for _, e := range entries {
		for _, key := range p.reachable(e) {
			p.links[key] = "#" + slug(p.names[key])
		}
	}
}

// linkTo returns the target of a link to the schema of an entry.
func (p *page) linkTo(e *entry) string { return target(strings.TrimPrefix(e.file, p.folder+"/")) }

// payload writes the Go type, the link to the schema and the fields of an entry.
func (p *page) payload(e *entry) {
	p.line("Go type %s, [schema](%s).", code(e.GoType), p.linkTo(e))
	if e.schema.Description != "" {
		p.line("\n%s", inline(e.schema.Description))
	}
	if e.schema.Protobuf != nil {
		p.protobuf(e.schema.Protobuf)
		return
	}
	if e.Codec == "json" {
		p.fields(e.schema, e.Kind != upcaster)
	}
}

// fields writes the table of the fields of a schema. Without presence, it does not say which fields
// each event has.
func (p *page) fields(s *schema, presence bool) {
	p.line("")
	if len(s.Properties) == 0 {
		if text := p.typeOf(s); text != "object" {
			p.line("The value is: %s", text)
			return
		}
		p.line("It has no fields.")
		return
	}
	columns := []string{"field", "type"}
	if presence {
		columns = append(columns, "present")
	}
	described := p.describes(s)
	if described {
		columns = append(columns, "description")
	}
	p.header(columns...)
	p.rows(s, "", presence, described)
}

// describes reports whether a field of a schema has a description.
func (p *page) describes(s *schema) bool {
	for _, part := range s.parts() {
		if part.Description != "" || p.describes(part) {
			return true
		}
	}
	return false
}

func (p *page) rows(s *schema, path string, presence, described bool) {
	required := map[string]bool{}
	for _, name := range s.Required {
		required[name] = true
	}
	for _, of := range s.Properties {
		cells := []string{code(path + of.name), p.typeOf(of.schema)}
		if presence {
			when := "optional"
			if required[of.name] {
				when = "always"
			}
			cells = append(cells, when)
		}
		if described {
			cells = append(cells, cell(of.schema.Description))
		}
		p.row(cells...)
		// Structs without a name have no table of their own.
		inner, suffix := of.schema, "."
		for inner.Items != nil || inner.AdditionalProperties != nil {
			if inner.Items != nil {
				inner, suffix = inner.Items, "[]"+suffix
			} else {
				inner, suffix = inner.AdditionalProperties, "{}"+suffix
			}
		}
		p.rows(inner, path+of.name+suffix, presence, described)
	}
}

// typeOf returns the type of a value for readers, as Markdown.
func (p *page) typeOf(s *schema) string {
	if s.refers != nil {
		return fmt.Sprintf("[%s](%s)", inline(p.names[*s.refers]), p.links[*s.refers])
	}
	var texts []string
	for _, one := range s.AnyOf {
		texts = append(texts, p.typeOf(one))
	}
	for _, one := range s.Type {
		texts = append(texts, p.kindOf(s, one))
	}
	if len(texts) == 0 {
		return anyJSON
	}
	return strings.Join(texts, " or ")
}

func (p *page) kindOf(s *schema, one string) string {
	switch {
	case one == "array" && s.MinItems != nil:
		return fmt.Sprintf("list of %d: %s", *s.MinItems, p.typeOf(s.Items))
	case one == "array":
		return "list of " + p.typeOf(s.Items)
	case one == "object" && s.AdditionalProperties != nil:
		return "map of " + p.typeOf(s.AdditionalProperties)
	case one == "string" && s.ContentEncoding != "":
		return "string (" + s.ContentEncoding + ")"
	case one != null && s.Format != "":
		return one + " (" + s.Format + ")"
	}
	return one
}

// types writes the types that the fields refer to.
func (p *page) types() {
	var keys []structKey
	written := map[structKey]bool{} // false for types that only upcasters read
	for _, e := range p.all() {
		for _, key := range p.reachable(e) {
			if p.links[key] == "" {
				continue
			}
			if _, seen := written[key]; !seen {
				keys = append(keys, key)
			}
			written[key] = written[key] || e.Kind != upcaster
		}
	}
	if len(keys) == 0 {
		return
	}
	p.line("\n## Types")
	for _, key := range keys {
		p.line("\n### %s", inline(p.names[key]))
		p.fields(p.inference.definitions[key], written[key])
	}
}

func (p *page) protobuf(m *protobufMessages) {
	for _, of := range m.Messages {
		p.line("\nMessage %s:\n", code(of.Name))
		if len(of.Fields) == 0 {
			p.line("It has no fields.")
			continue
		}
		p.header("number", "field", "type")
		for _, f := range of.Fields {
			text := code(f.Type)
			if f.OneOf != "" {
				text += ", one of " + code(f.OneOf)
			}
			p.row(fmt.Sprint(f.Number), code(f.Name), text)
		}
	}
	for _, of := range m.Enums {
		p.line("\nEnumeration %s:\n", code(of.Name))
		p.header("number", "value")
		for _, value := range of.Values {
			p.row(fmt.Sprint(value.Number), code(value.Name))
		}
	}
}

// code returns text as Markdown code, also in a table.
func code(text string) string {
	text = cell(text)
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}

// cell returns text without what would end a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

var escapes = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, "&", `\&`, "|", `\|`, "\n", " ", "\r", " ",
)

// inline returns text that Markdown shows as it is.
func inline(text string) string { return escapes.Replace(text) }

// target returns a path as the target of a link.
func target(file string) string {
	return strings.NewReplacer("%", "%25", "(", "%28", ")", "%29").Replace(file)
}

// slug returns the anchor of a heading, as GitHub and others make it.
func slug(heading string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			out.WriteRune(r)
		case r == ' ':
			out.WriteByte('-')
		}
	}
	return out.String()
}
