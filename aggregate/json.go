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
)

// JSON is the default codec. It is encoding/json, except that it does not lose data silently. A
// type or a value that would change is refused. [Definition.Validate] reports types:
//
//   - Types with content that JSON drops or cannot decode, such as unexported fields.
//   - Types with a method that encodes them and none that decodes them.
//   - Structs that embed a type whose methods stand for all fields.
//   - Embedded pointers to structs of which JSON may write no field. They would become nil.
//
// Values are refused when they are written:
//
//   - A string that is not UTF-8. encoding/json would replace its bytes.
//   - A time whose offset from UTC has seconds. encoding/json would shift it.
//   - A pointer to a nil map, slice or pointer, also in an any. It would become a nil pointer.
//   - Map keys that would be read as other keys, and two keys with the same text.
//
// Two values are read in another way than by encoding/json:
//
//   - A null where the type needs an object, a text, a number or a boolean is an error.
//     encoding/json would leave a zero value. time.Time accepts null.
//   - A number in a field of type any becomes a json.Number instead of a float64, so integers
//     beyond 2^53 stay exact.
//
// Types with their own methods for JSON or text decide for themselves. These differences remain:
//
//   - A value in a field of type any has a type of JSON when it is read: map[string]any, []any,
//     string, json.Number, bool or nil.
//   - A time keeps its instant and its offset from UTC, not the name of its zone or its monotonic
//     clock reading.
//   - An empty json.Number becomes 0.
//   - Fields with omitempty or omitzero are left out as encoding/json describes, so an empty map or
//     slice becomes nil.
//
// JSON ignores fields that the Go type lacks, so that events of a newer program can be read.
var JSON Codec = jsonCodec{}

type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	value := reflect.ValueOf(v)
	if value.Kind() == reflect.Pointer {
		value = value.Elem() // it is decoded into a pointer, so it may be nil
	}
	// encoding/json writes this escape for bytes that are not UTF-8. A custom MarshalJSON or a
	// backslash in a text can produce it too. So the escape only means that a closer check is
	// needed.
	if value.IsValid() && jsonShapeOf(value.Type()).mayLose || bytes.Contains(data, []byte(`\ufffd`)) {
		if err := checkJSONValue(value); err != nil {
			return nil, err
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
	// mayLose reports that each value has to be checked before it is encoded.
	mayLose bool
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
	shape.mayLose = mayLose(t, map[reflect.Type]bool{})
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
