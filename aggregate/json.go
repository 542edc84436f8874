package aggregate

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"unicode/utf8"
)

// JSON is the default codec, encoding/json with its silent losses closed:
//
//   - a number in a field of type any becomes a json.Number instead of a float64, so integers
//     beyond 2^53 stay exact,
//   - null where an object, a text, a number or a boolean must stand is an error, not a zero value;
//     types with UnmarshalJSON or UnmarshalText decide for themselves (time.Time takes it),
//   - a string that is not UTF-8 is an error when it is written; encoding/json would replace its
//     bytes,
//   - a type with fields that JSON drops is reported by [Definition.Validate].
//
// Fields that the Go type lacks are ignored, so that events of a newer program can be read.
var JSON Codec = jsonCodec{}

type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	// encoding/json writes this escape for bytes that are not UTF-8, and for nothing else of its
	// own; a custom MarshalJSON or a backslash in a text can produce it too. So it only says where
	// to look closer.
	if bytes.Contains(data, []byte(`\ufffd`)) {
		if s, found := brokenText(reflect.ValueOf(v)); found {
			return nil, fmt.Errorf("the string %s is not valid UTF-8 and JSON would replace its bytes: use []byte for binary data", quote(s))
		}
	}
	return data, nil
}

func (jsonCodec) Unmarshal(data []byte, v any) error {
	target := reflect.TypeOf(v)
	if target == nil || target.Kind() != reflect.Pointer {
		return json.Unmarshal(data, v) // which says what is wrong with v
	}
	shape := jsonShapeOf(target.Elem())
	if shape.neverNull && isNull(data) {
		return fmt.Errorf("null cannot be a %s", target.Elem())
	}
	if err := shape.decode(data, v); err != nil {
		return err
	}
	if !bytes.Contains(data, []byte("null")) {
		return nil
	}
	return checkNulls(data, target.Elem())
}

func (s jsonShape) decode(data []byte, v any) error {
	if !s.dynamic {
		return json.Unmarshal(data, v)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(v); err != nil {
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF // EOF would read as an orderly end to a caller that loops
		}
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("data after the end of the JSON value, at byte %d", decoder.InputOffset())
	}
	return nil
}

func isNull(data []byte) bool {
	data = bytes.TrimLeft(data, " \t\r\n")
	return len(data) > 0 && data[0] == 'n' && string(bytes.TrimRight(data, " \t\r\n")) == "null"
}

// jsonShape is what Unmarshal must know of a type beforehand.
type jsonShape struct {
	dynamic   bool // holds an any somewhere, and so needs a decoder that keeps numbers as they are
	neverNull bool // json.Unmarshal would take null for "leave the zero value"
}

// jsonShapes remembers shapes by reflect.Type; the plain json.Unmarshal is about twice as fast as a
// decoder.
var jsonShapes sync.Map

func jsonShapeOf(t reflect.Type) jsonShape {
	if known, ok := jsonShapes.Load(t); ok {
		return known.(jsonShape)
	}
	shape := jsonShape{dynamic: holdsAny(t, map[reflect.Type]bool{})}
	shape.neverNull = neverNull(t)
	jsonShapes.Store(t, shape)
	return shape
}

func neverNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return false
	}
	return !decodesItself(t)
}

func holdsAny(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] || decodesItself(t) {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsAny(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsAny(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

var (
	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func decodesItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(jsonUnmarshaler) || pointer.Implements(textUnmarshaler)
}

// brokenText finds a string that is not UTF-8 among those that encoding/json writes by itself. It
// runs on values that have just been encoded, so there are no cycles among what it follows.
func brokenText(v reflect.Value) (string, bool) {
	if !v.IsValid() || encodesItself(v.Type(), v.CanAddr()) {
		return "", false
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), !utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return brokenText(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if s, found := brokenText(v.Index(i)); found {
				return s, true
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if s, found := brokenText(entries.Key()); found {
				return s, true
			}
			if s, found := brokenText(entries.Value()); found {
				return s, true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if field.Tag.Get("json") == "-" || !field.IsExported() && !field.Anonymous {
				continue
			}
			if s, found := brokenText(v.Field(i)); found {
				return s, true
			}
		}
	}
	return "", false
}

// encodesItself follows encoding/json: methods of the pointer count only where it can take an
// address.
func encodesItself(t reflect.Type, addressable bool) bool {
	if t.Implements(jsonMarshaler) || t.Implements(textMarshaler) {
		return true
	}
	if !addressable {
		return false
	}
	pointer := reflect.PointerTo(t)
	return pointer.Implements(jsonMarshaler) || pointer.Implements(textMarshaler)
}
