package protobuf

import (
	"fmt"
	"reflect"
	"sync"

	"google.golang.org/protobuf/proto"
)

// shape says how values of a Go type are encoded.
type shape struct {
	kind  kind
	fault string
}

type kind int

const (
	isOther kind = iota
	isMessage
	isWrapper
	isFaulty
)

// shapes caches shapes by reflect.Type.
var shapes sync.Map

func shapeOf(t reflect.Type) shape {
	if known, ok := shapes.Load(t); ok {
		return known.(shape)
	}
	s := findShape(t)
	shapes.Store(t, s)
	return s
}

var protoMessage = reflect.TypeFor[proto.Message]()

// findShape identifies messages by a method of generated messages. A struct that only embeds a
// message has the method too; its other fields would be lost silently, so findShape refuses it.
func findShape(t reflect.Type) shape {
	target := t
	if t.Kind() == reflect.Pointer {
		target = t.Elem()
	}
	if !reflect.PointerTo(target).Implements(protoMessage) {
		return shape{kind: isOther}
	}
	if target.Kind() != reflect.Struct {
		return faulty("it is not a struct although it has the methods of a message: use the generated type")
	}
	for i := range target.NumField() {
		if field := target.Field(i); field.Anonymous {
			return wrapperShape(target, field)
		}
	}
	if t.Kind() != reflect.Pointer {
		return faulty("it is a message by value, which must not be copied: " +
			"use a pointer to it, or a struct that embeds the pointer")
	}
	if !usableWhenZero(target) {
		return faulty("its zero value is not a message: use a generated type")
	}
	return shape{kind: isMessage}
}

// wrapperShape returns the shape of a struct with an embedded field that makes it a message.
func wrapperShape(target reflect.Type, field reflect.StructField) shape {
	switch {
	case target.NumField() > 1:
		return faulty("it embeds a message and has other fields, which would be lost: " +
			"embed the pointer alone, or name the field so that the struct is not a message")
	case field.Type.Kind() != reflect.Pointer:
		return faulty("it embeds %s, which is not a pointer to a message: embed a pointer to the generated type", field.Type)
	case !field.IsExported():
		return faulty("it embeds %s under an unexported name and cannot be read: embed the generated type itself", field.Type)
	}
	if s := shapeOf(field.Type); s.kind != isMessage {
		return faulty("it embeds %s, which is not a generated message: embed a pointer to the generated type", field.Type)
	}
	return shape{kind: isWrapper}
}

func faulty(format string, args ...any) shape {
	return shape{kind: isFaulty, fault: fmt.Sprintf(format, args...)}
}

// usableWhenZero reports whether a zero message knows its type. Dynamic messages, for example,
// learn their type only when they are made.
func usableWhenZero(target reflect.Type) (usable bool) {
	defer func() {
		if recover() != nil {
			usable = false
		}
	}()
	return reflect.New(target).Interface().(proto.Message).ProtoReflect().Descriptor() != nil
}
