package catalogue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// schema is a JSON Schema. It has the keywords that this package writes. In schemas of JSON, these
// mean the same in the drafts 2020-12 and 07, which AsyncAPI uses.
type schema struct {
	Dialect     string `json:"$schema,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	About       *about `json:"x-millrace,omitempty"`

	Ref   string    `json:"$ref,omitempty"`
	AnyOf []*schema `json:"anyOf,omitempty"`

	Type                 kinds      `json:"type,omitempty"`
	Format               string     `json:"format,omitempty"`
	ContentEncoding      string     `json:"contentEncoding,omitempty"`
	Minimum              *int       `json:"minimum,omitempty"`
	Pattern              string     `json:"pattern,omitempty"`
	Properties           properties `json:"properties,omitempty"`
	Required             []string   `json:"required,omitempty"`
	PropertyNames        *schema    `json:"propertyNames,omitempty"`
	AdditionalProperties *schema    `json:"additionalProperties,omitempty"`
	Items                *schema    `json:"items,omitempty"`
	MinItems             *int       `json:"minItems,omitempty"`
	MaxItems             *int       `json:"maxItems,omitempty"`

	// Protobuf describes the binary form of a message, which is not JSON. The other keywords are
	// empty then.
	Protobuf *protobufMessages `json:"x-protobuf,omitempty"`

	Defs properties `json:"$defs,omitempty"`

	// Stored describes the stored events that an upcaster reads. It is a document of its own, whose
	// references begin at it.
	Stored *schema `json:"x-stored,omitempty"`

	// refers is the type of Ref, while the schema is inferred.
	refers *structKey
}

const dialect = "https://json-schema.org/draft/2020-12/schema"

// kinds are the types of JSON that a schema allows. Empty means all.
type kinds []string

const null = "null"

// MarshalJSON writes a single type as a string.
func (k kinds) MarshalJSON() ([]byte, error) {
	if len(k) == 1 {
		return json.Marshal(k[0])
	}
	return json.Marshal([]string(k))
}

// UnmarshalJSON reads a string or a list.
func (k *kinds) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*k = kinds{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(k))
}

// properties are named schemas in an order: that of the fields of a Go struct.
type properties []property

type property struct {
	name   string
	schema *schema
}

func (p properties) get(name string) *schema {
	for _, one := range p {
		if one.name == name {
			return one.schema
		}
	}
	return nil
}

// MarshalJSON writes an object.
func (p properties) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, one := range p {
		if i > 0 {
			out.WriteByte(',')
		}
		name, err := plainJSON(one.name)
		if err != nil {
			return nil, err
		}
		value, err := plainJSON(one.schema)
		if err != nil {
			return nil, err
		}
		out.Write(name)
		out.WriteByte(':')
		out.Write(value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// UnmarshalJSON reads an object and keeps its order.
func (p *properties) UnmarshalJSON(data []byte) error {
	in := json.NewDecoder(bytes.NewReader(data))
	if start, err := in.Token(); err != nil || start != json.Delim('{') {
		return errors.Join(errors.New("not an object"), err)
	}
	*p = properties{}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return err
		}
		one := property{name: fmt.Sprint(name), schema: &schema{}}
		if err := in.Decode(one.schema); err != nil {
			return err
		}
		*p = append(*p, one)
	}
	return nil
}

// plainJSON encodes a value without the escapes for HTML.
func plainJSON(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// document encodes a value as a file.
func document(v any) ([]byte, error) {
	data, err := plainJSON(v)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// parts returns the schemas that a schema consists of, without its definitions.
func (s *schema) parts() []*schema {
	parts := append([]*schema(nil), s.AnyOf...)
	for _, p := range s.Properties {
		parts = append(parts, p.schema)
	}
	for _, part := range []*schema{s.PropertyNames, s.AdditionalProperties, s.Items} {
		if part != nil {
			parts = append(parts, part)
		}
	}
	return parts
}

// copied returns a copy in which each reference is changed by a function.
func (s *schema) copied(refer func(*schema)) *schema {
	if s == nil {
		return nil
	}
	c := *s
	c.AnyOf = nil
	for _, one := range s.AnyOf {
		c.AnyOf = append(c.AnyOf, one.copied(refer))
	}
	c.Properties = s.Properties.copied(refer)
	c.Defs = s.Defs.copied(refer)
	c.PropertyNames = s.PropertyNames.copied(refer)
	c.AdditionalProperties = s.AdditionalProperties.copied(refer)
	c.Items = s.Items.copied(refer)
	if c.Ref != "" || c.refers != nil {
		refer(&c)
	}
	return &c
}

func (p properties) copied(refer func(*schema)) (c properties) {
	for _, one := range p {
		c = append(c, property{one.name, one.schema.copied(refer)})
	}
	return c
}

// nullable returns a schema that also allows null.
func nullable(s *schema) *schema {
	switch {
	case s.allowsNull():
		return s
	case len(s.Type) > 0:
		s.Type = append(s.Type, null)
		return s
	}
	return &schema{AnyOf: []*schema{s, {Type: kinds{null}}}}
}

// allowsNull reports whether an inferred schema allows null.
func (s *schema) allowsNull() bool {
	if s.refers != nil {
		kind := s.refers.t.Kind()
		return kind == reflect.Slice || kind == reflect.Map
	}
	for _, one := range s.AnyOf {
		if one.allowsNull() {
			return true
		}
	}
	for _, one := range s.Type {
		if one == null {
			return true
		}
	}
	return len(s.Type) == 0 && len(s.AnyOf) == 0 && s.Ref == ""
}
