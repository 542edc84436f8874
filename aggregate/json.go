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

// JSON is the default codec. It is encoding/json, except that it does not lose data silently:
//
//   - A number in a field of type any becomes a json.Number instead of a float64, so integers
//     beyond 2^53 stay exact.
//   - A null where the type needs an object, a text, a number or a boolean is an error.
//     encoding/json would leave a zero value. Types with UnmarshalJSON or UnmarshalText decide for
//     themselves; time.Time accepts null.
//   - A string that is not UTF-8 is an error when it is written. encoding/json would replace its
//     bytes.
//   - [Definition.Validate] reports types with fields that JSON drops.
//
// JSON ignores fields that the Go type lacks, so that events of a newer program can be read.
var JSON Codec = jsonCodec{}

type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	// encoding/json writes this escape for bytes that are not UTF-8. A custom MarshalJSON or a
	// backslash in a text can produce it too. So the escape only means that a closer check is
	// needed.
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
		return json.Unmarshal(data, v) // it returns an error that says what is wrong with v
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
			// A caller that loops would take EOF for the regular end.
			return io.ErrUnexpectedEOF
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

// jsonShape holds what Unmarshal has to know about a type.
type jsonShape struct {
	// dynamic reports that the type contains an any. Then the decoder must keep numbers exact.
	dynamic   bool
	neverNull bool // null is refused: json.Unmarshal would ignore it and leave the zero value
}

// jsonShapes caches shapes by reflect.Type, since a plain json.Unmarshal is about twice as fast as
// a decoder.
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

// brokenText finds a string that is not UTF-8 among those that encoding/json encodes itself. The
// value has just been encoded, so the part of it that brokenText follows has no cycles.
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

// encodesItself reports whether a type has its own marshalling method. As in encoding/json, a
// method of the pointer counts only if the value is addressable.
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
