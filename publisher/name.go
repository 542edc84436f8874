package publisher

import (
	"fmt"
	"reflect"
	"strings"
)

type typed interface{ EventType() string }

// EventName returns the name of an event or a command for Watermill's cqrs component. It is the
// result of its method EventType, which is also its name in the journal. Without that method it is
// "package.Type", the default of the component. Set it as the GenerateName of a marshaler:
//
//	marshaler := cqrs.JSONMarshaler{GenerateName: publisher.EventName}
//
// Then repositories can read the events that buses publish, and processors can handle the events
// that repositories write. A value and a pointer to it have the same name.
func EventName(v any) string {
	if named, ok := v.(typed); ok {
		return named.EventType()
	}
	if value := reflect.ValueOf(v); value.IsValid() && value.Kind() != reflect.Pointer {
		if named, ok := reflect.New(value.Type()).Interface().(typed); ok { // pointer receiver
			return named.EventType()
		}
	}
	return strings.TrimLeft(fmt.Sprintf("%T", v), "*")
}

// EventNames returns a GenerateName function for events that wrap Protocol Buffers messages. Such a
// wrapper is a struct with one field, an embedded pointer to a message, as in package
// aggregate/protobuf. Pass all event types of the aggregate. The function returns the name of the
// wrapper also for the message, so that handlers can take the message:
//
//	names := publisher.EventNames(Deposited{}, &Withdrawn{})
//	marshaler := cqrs.ProtoMarshaler{GenerateName: names}
//	cqrs.NewEventHandler("totals", func(ctx context.Context, e *bankpb.Deposited) error { ... })
//
// Handlers cannot take the wrapper: the marshaler cannot decode into a wrapper whose message is
// nil. For a message that has an EventType method, or that two wrappers embed, the function returns
// the result of [EventName].
func EventNames(events ...any) func(v any) string {
	names := map[reflect.Type]string{}
	ambiguous := map[reflect.Type]bool{}
	for _, event := range events {
		if within := wrapped(reflect.TypeOf(event)); within != nil {
			name := EventName(event)
			ambiguous[within] = ambiguous[within] || names[within] != "" && names[within] != name
			names[within] = name
		}
	}
	return func(v any) string {
		of := reflect.TypeOf(v)
		if of != nil && of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		_, itself := v.(typed)
		if name := names[of]; name != "" && !ambiguous[of] && !itself {
			return name
		}
		return EventName(v)
	}
}

// wrapped returns the type of the message that a wrapper embeds, or nil if t is not a wrapper.
func wrapped(t reflect.Type) reflect.Type {
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || t.NumField() != 1 {
		return nil
	}
	if field := t.Field(0); field.Anonymous && field.Type.Kind() == reflect.Pointer {
		return field.Type.Elem()
	}
	return nil
}
