package protobuf

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/millrace-dev/millrace/aggregate"
)

// Codec is an [aggregate.Codec] that writes messages in their binary form and passes other types to
// another codec. The package documentation says which Go types are messages. The zero value is
// ready to use.
type Codec struct {
	// Other is the codec of types that are not messages. Default: [aggregate.JSON].
	Other aggregate.Codec
}

var (
	_ aggregate.Codec       = Codec{}
	_ aggregate.TypeChecker = Codec{}
)

func (c Codec) other() aggregate.Codec {
	if c.Other == nil {
		return aggregate.JSON
	}
	return c.Other
}

// Describe returns the message as which values of a Go type are encoded, or the codec to which they
// are passed. Both are nil for a type that [Codec.CheckType] refuses.
func (c Codec) Describe(t reflect.Type) (message protoreflect.MessageDescriptor, other aggregate.Codec) {
	target := t
	if t.Kind() == reflect.Pointer {
		target = t.Elem()
	}
	switch shapeOf(t).kind {
	case isOther:
		return nil, c.other()
	case isMessage:
		return reflect.New(target).Interface().(proto.Message).ProtoReflect().Descriptor(), nil
	case isWrapper:
		return c.Describe(target.Field(0).Type)
	}
	return nil, nil
}

// Marshal encodes a message, a wrapper or a value of another type. Errors: a string that is not
// UTF-8, a required field that is missing, a type that [Codec.CheckType] refuses, and the errors of
// Other.
func (c Codec) Marshal(v any) ([]byte, error) {
	if v == nil {
		return c.other().Marshal(v)
	}
	value := reflect.ValueOf(v)
	s := shapeOf(value.Type())
	switch s.kind {
	case isOther:
		return c.other().Marshal(v)
	case isFaulty:
		return nil, fmt.Errorf("%s: %s", value.Type(), s.fault)
	case isWrapper:
		if value.Kind() == reflect.Pointer {
			if value.IsNil() {
				return nil, fmt.Errorf("%s is nil", value.Type())
			}
			value = value.Elem()
		}
		value = value.Field(0)
	}
	// Deterministic, so that equal events have equal bytes and can be compared.
	return proto.MarshalOptions{Deterministic: true}.Marshal(value.Interface().(proto.Message))
}

// Unmarshal decodes data that Marshal has written into a pointer to a zero value. It does not keep
// data. Errors: data that is not in the binary form, a string that is not UTF-8, a required field
// that is missing, a type that [Codec.CheckType] refuses, and the errors of Other.
func (c Codec) Unmarshal(data []byte, v any) error {
	value := reflect.ValueOf(v)
	if value.Kind() != reflect.Pointer || value.IsNil() {
		return c.other().Unmarshal(data, v) // it returns an error that says what is wrong with v
	}
	s := shapeOf(value.Type())
	switch s.kind {
	case isOther:
		return c.other().Unmarshal(data, v)
	case isFaulty:
		return fmt.Errorf("%s: %s", value.Type(), s.fault)
	case isWrapper:
		field := value.Elem().Field(0)
		message := reflect.New(field.Type().Elem())
		if err := proto.Unmarshal(data, message.Interface().(proto.Message)); err != nil {
			return err
		}
		field.Set(message)
		return nil
	}
	return proto.Unmarshal(data, v.(proto.Message))
}

// CheckType reports Go types that look like messages and would lose data: a message by value, and a
// struct that embeds a message in another way than a wrapper does. Other checks the remaining
// types, if it is an [aggregate.TypeChecker].
func (c Codec) CheckType(t reflect.Type) error {
	switch s := shapeOf(t); s.kind {
	case isFaulty:
		return fmt.Errorf("%s", s.fault)
	case isOther:
		if checker, ok := c.other().(aggregate.TypeChecker); ok {
			return checker.CheckType(t)
		}
	}
	return nil
}
