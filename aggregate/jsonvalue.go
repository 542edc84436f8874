package aggregate

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/internal/printable"
)

var timeType = reflect.TypeFor[time.Time]()

// mayLose reports whether JSON loses some values of a type that CheckType accepts.
// Strings do not count: their loss shows in the encoded bytes.
func mayLose(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer:
		return canBeNil(t.Elem()) || mayLose(t.Elem(), seen)
	case reflect.Slice, reflect.Array:
		return mayLose(t.Elem(), seen)
	case reflect.Map:
		return reflect.PointerTo(t.Key()).Implements(textMarshaler) || mayLose(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if mayLose(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return t == timeType
}

func canBeNil(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return true
	}
	return false
}

// checkJSONValue returns an error if JSON would lose a part of a value. It follows what
// encoding/json encodes itself. The value has just been encoded, so that part has no cycles.
func checkJSONValue(v reflect.Value) error {
	if !v.IsValid() {
		return nil
	}
	if v.Kind() == reflect.Pointer {
		if !v.IsNil() && pointsToNil(v) && isEncodedAsNull(v) {
			return fmt.Errorf("a %s points to nil, and JSON would make it a nil pointer: use an empty value or a nil pointer", v.Type())
		}
		return checkJSONValue(v.Elem())
	}
	if encodesItself(v.Type(), v.CanAddr()) {
		return checkTime(v)
	}
	switch v.Kind() {
	case reflect.String:
		if s := v.String(); !utf8.ValidString(s) {
			return fmt.Errorf("the string %s is not valid UTF-8 and JSON would replace its bytes: use []byte for binary data", printable.Quote(s))
		}
	case reflect.Interface:
		if v.IsNil() {
			return nil
		}
		// The methods of a value do not matter, since it is read as a type of JSON.
		if err := checkDynamic(v.Elem().Type()); err != nil && !encodesItself(v.Elem().Type(), false) {
			return fmt.Errorf("a %s in an interface: %w", v.Elem().Type(), err)
		}
		return checkJSONValue(v.Elem())
	case reflect.Slice, reflect.Array:
		if !holdsValues(v.Type().Elem()) {
			return nil
		}
		for i := range v.Len() {
			if err := checkJSONValue(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		return checkJSONMap(v)
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if field.Tag.Get("json") == "-" || !field.IsExported() && !field.Anonymous {
				continue
			}
			if err := checkJSONValue(v.Field(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// pointsToNil reports whether a pointer points to nil, or to an interface that holds nil.
func pointsToNil(v reflect.Value) bool {
	v = v.Elem()
	for v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	return canBeNil(v.Type()) && v.IsNil()
}

// isEncodedAsNull reports whether JSON makes null of a pointer to nil. A type with its own method,
// such as net.IP, may encode nil as it likes.
func isEncodedAsNull(v reflect.Value) bool {
	if v.Type().Elem().Kind() != reflect.Interface && !encodesItself(v.Type(), false) || !v.CanInterface() {
		return true
	}
	data, err := json.Marshal(v.Interface())
	return err != nil || isNull(data)
}

// holdsValues reports false for types that checkJSONValue always accepts, such as the bytes of a
// slice.
func holdsValues(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Array, reflect.Map, reflect.Struct:
		return true
	}
	return false
}

// checkDynamic checks the type of a value in an interface, which Validate does not know.
func checkDynamic(t reflect.Type) error {
	known, ok := jsonDynamic.Load(t)
	if !ok {
		known, _ = jsonDynamic.LoadOrStore(t, dynamicType{jsonCodec{}.CheckType(t)})
	}
	return known.(dynamicType).fault
}

type dynamicType struct{ fault error }

var jsonDynamic sync.Map

// checkTime checks a time, or a struct that is encoded as the time that it embeds, directly or in
// another struct.
func checkTime(v reflect.Value) error {
	v = reflect.Indirect(v)
	if v.Kind() == reflect.Struct && v.Type() != timeType && encodesByPromotion(v.Type(), false) {
		for i := range v.NumField() {
			if !v.Type().Field(i).Anonymous {
				continue
			}
			if err := checkTime(v.Field(i)); err != nil {
				return err
			}
		}
	}
	if !v.IsValid() || v.Type() != timeType || !v.CanInterface() {
		return nil
	}
	at := v.Interface().(time.Time)
	if _, offset := at.Zone(); offset%60 != 0 {
		return fmt.Errorf("the time %s has an offset of %s from UTC, and JSON has whole minutes: use Time.UTC to keep the instant",
			at.Format(time.RFC3339), time.Duration(offset)*time.Second)
	}
	return nil
}

func checkJSONMap(v reflect.Value) error {
	texts := map[string]bool{}
	for entries := v.MapRange(); entries.Next(); {
		if err := checkJSONKey(entries.Key(), texts); err != nil {
			return err
		}
		if err := checkJSONValue(entries.Value()); err != nil {
			return err
		}
	}
	return nil
}

// checkJSONKey checks a key of a map. encoding/json writes the string of a string type, and reads
// it with UnmarshalText. Keys of other types with methods may have the same text.
func checkJSONKey(key reflect.Value, texts map[string]bool) error {
	t := key.Type()
	if t.Kind() == reflect.String && !utf8.ValidString(key.String()) {
		return checkJSONValue(reflect.ValueOf(key.String()))
	}
	if err := checkTime(key); err != nil {
		return err
	}
	if !reflect.PointerTo(t).Implements(textUnmarshaler) || !key.CanInterface() {
		return nil
	}
	own := reflect.New(t)
	own.Elem().Set(key)
	method, ok := own.Interface().(encoding.TextMarshaler)
	if !ok {
		return nil
	}
	text, err := method.MarshalText()
	switch {
	case err != nil:
		return err
	case t.Kind() == reflect.String && string(text) != key.String():
		return fmt.Errorf("the map key %s of type %s is written without its MarshalText and read with its UnmarshalText: use keys without methods",
			printable.Quote(key.String()), t)
	case texts[string(text)]:
		return fmt.Errorf("two map keys of type %s have the text %s, and JSON would lose one", t, printable.Quote(string(text)))
	}
	texts[string(text)] = true
	return nil
}
