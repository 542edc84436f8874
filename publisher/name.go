package publisher

import (
	"fmt"
	"reflect"
	"strings"
)

type typed interface{ EventType() string }

// EventName names an event or a command for Watermill's cqrs component as the journal names it: by
// its method EventType. What has none is named as the component's marshalers do by themselves,
// "package.Type". It is the GenerateName of its marshalers:
//
//	marshaler := cqrs.JSONMarshaler{GenerateName: publisher.EventName}
//
// So buses publish what repositories read, and processors handle what repositories have written.
// The name of a value and that of a pointer to it are the same.
func EventName(v any) string {
	if named, ok := v.(typed); ok {
		return named.EventType()
	}
	if value := reflect.ValueOf(v); value.IsValid() && value.Kind() != reflect.Pointer {
		if named, ok := reflect.New(value.Type()).Interface().(typed); ok { // the method is the pointer's
			return named.EventType()
		}
	}
	return strings.TrimLeft(fmt.Sprintf("%T", v), "*")
}

// EventNames is [EventName] for events that wrap Protocol Buffers messages, as package
// aggregate/protobuf has them: a struct with nothing but an embedded pointer to a message. It gives
// the message the name of the wrapper, so that handlers take the message itself:
//
//	var names = publisher.EventNames(Deposited{}, &Withdrawn{}) // as they are defined, with all types of the aggregate
//	marshaler := cqrs.ProtoMarshaler{GenerateName: names}
//	cqrs.NewEventHandler("totals", func(ctx context.Context, e *bankpb.Deposited) error { ... })
//
// (The marshaler cannot read into a wrapper, whose message is nil.) A message that has an EventType
// itself, or that two of the wrappers embed, is named as EventName does.
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

// wrapped is the type of the message that a wrapper embeds, nil if it is none.
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
