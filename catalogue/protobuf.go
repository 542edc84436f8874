package catalogue

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/aggregate"
)

// messageDescriber is the codec of package protobuf.
type messageDescriber interface {
	Describe(t reflect.Type) (message protoreflect.MessageDescriptor, other aggregate.Codec)
}

// protobufMessages describes a message of Protocol Buffers, and the messages and enumerations of
// its fields.
type protobufMessages struct {
	Message  string            `json:"message"` // the full name of the message of the payload
	Messages []protobufMessage `json:"messages"`
	Enums    []protobufEnum    `json:"enums,omitempty"`
}

type protobufMessage struct {
	Name   string          `json:"name"`
	Fields []protobufField `json:"fields"`
}

type protobufField struct {
	Number   int32  `json:"number"`
	Name     string `json:"name"`
	Type     string `json:"type"` // as in a .proto file
	OneOf    string `json:"oneof,omitempty"`
	Required bool   `json:"required,omitempty"`
}

type protobufEnum struct {
	Name   string              `json:"name"`
	Values []protobufEnumValue `json:"values"`
}

type protobufEnumValue struct {
	Number int32  `json:"number"`
	Name   string `json:"name"`
}

func protobufSchema(descriptor protoreflect.MessageDescriptor) *schema {
	m := &protobufMessages{Message: string(descriptor.FullName())}
	seen := map[protoreflect.FullName]bool{}
	m.add(descriptor, seen)
	return &schema{
		Description: "The binary form of the Protocol Buffers message " + m.Message + ". It is not JSON.",
		Protobuf:    m,
	}
}

func (m *protobufMessages) add(descriptor protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) {
	if seen[descriptor.FullName()] {
		return
	}
	seen[descriptor.FullName()] = true
	at := len(m.Messages)
	of := protobufMessage{Name: string(descriptor.FullName()), Fields: []protobufField{}}
	m.Messages = append(m.Messages, of)
	for i := range descriptor.Fields().Len() {
		f := descriptor.Fields().Get(i)
		described := protobufField{
			Number: int32(f.Number()), Name: string(f.Name()), Type: m.typeOf(f, seen), Required: f.Cardinality() == protoreflect.Required,
		}
		if group := f.ContainingOneof(); group != nil && !group.IsSynthetic() {
			described.OneOf = string(group.Name())
		}
		of.Fields = append(of.Fields, described)
	}
	m.Messages[at] = of
}

func (m *protobufMessages) typeOf(f protoreflect.FieldDescriptor, seen map[protoreflect.FullName]bool) string {
	switch {
	case f.IsMap():
		return fmt.Sprintf("map<%s, %s>", m.typeOf(f.MapKey(), seen), m.typeOf(f.MapValue(), seen))
	case f.IsList():
		return "repeated " + m.elementOf(f, seen)
	}
	return m.elementOf(f, seen)
}

func (m *protobufMessages) elementOf(f protoreflect.FieldDescriptor, seen map[protoreflect.FullName]bool) string {
	switch {
	case f.Message() != nil:
		m.add(f.Message(), seen)
		return string(f.Message().FullName())
	case f.Enum() != nil:
		m.addEnum(f.Enum(), seen)
		return string(f.Enum().FullName())
	}
	return f.Kind().String()
}

func (m *protobufMessages) addEnum(descriptor protoreflect.EnumDescriptor, seen map[protoreflect.FullName]bool) {
	if seen[descriptor.FullName()] {
		return
	}
	seen[descriptor.FullName()] = true
	e := protobufEnum{Name: string(descriptor.FullName())}
	for i := range descriptor.Values().Len() {
		value := descriptor.Values().Get(i)
		e.Values = append(e.Values, protobufEnumValue{int32(value.Number()), string(value.Name())})
	}
	m.Enums = append(m.Enums, e)
}
