package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"
)

// Show returns a value as Go code, without fields that are zero. Times, and types without exported
// fields, are shown by their method String.
func Show(v any) string { return show(reflect.ValueOf(v)) }

// Count returns a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Any converts a list to one of any values.
func Any[T any](list []T) []any {
	all := make([]any, len(list))
	for i, v := range list {
		all[i] = v
	}
	return all
}

const deepest = 10 // number of levels of a value that are shown

func show(v reflect.Value) string {
	var text strings.Builder
	write(&text, v, "", deepest)
	return text.String()
}

// write writes a value. Known is the type name that follows from the place of the value, so it is
// left out.
func write(text *strings.Builder, v reflect.Value, known string, levels int) {
	if !v.IsValid() {
		text.WriteString("nil")
		return
	}
	if levels == 0 {
		text.WriteString("...")
		return
	}
	if s, ok := asText(v); ok {
		text.WriteString(s)
		return
	}
	name := v.Type().String()
	if name == known {
		name = ""
	}
	switch v.Kind() {
	case reflect.String:
		text.WriteString(strconv.Quote(v.String()))
	case reflect.Pointer:
		text.WriteString("&")
		write(text, v.Elem(), strings.TrimPrefix(known, "*"), levels-1)
	case reflect.Interface:
		write(text, v.Elem(), "", levels)
	case reflect.Struct:
		writeFields(text, name, addressable(v), levels)
	case reflect.Slice, reflect.Array:
		writeElements(text, name, v, levels)
	case reflect.Map:
		writeEntries(text, name, v, levels)
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		text.WriteString("a " + v.Type().String()) // not its address
	default:
		fmt.Fprint(text, v.Interface())
	}
}

// asText returns the text of a value that is not shown field by field, and whether it is such a
// value.
func asText(v reflect.Value) (string, bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		if v.IsNil() {
			return "nil", true
		}
	}
	if at, ok := v.Interface().(time.Time); ok {
		return at.Round(0).String(), true // without the monotonic clock reading
	}
	if isMessage(v.Type()) {
		return fmt.Sprintf("%s{%v}", v.Type(), v.Interface()), true
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return "", false
	case reflect.Struct:
		if !closed(v.Type()) {
			return "", false
		}
	}
	if s, ok := addressable(v).Addr().Interface().(fmt.Stringer); ok {
		return fmt.Sprint(s), true // it recovers a panic of String
	}
	return "", false
}

// closed reports whether a struct has fields but exports none.
func closed(t reflect.Type) bool {
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			return false
		}
	}
	return t.NumField() > 0
}

func writeFields(text *strings.Builder, name string, v reflect.Value, levels int) {
	text.WriteString(name + "{")
	first := true
	for i := range v.NumField() {
		f := field(v, i)
		if f.IsZero() {
			continue
		}
		if !first {
			text.WriteString(", ")
		}
		first = false
		text.WriteString(v.Type().Field(i).Name + ": ")
		write(text, f, "", levels-1)
	}
	text.WriteString("}")
}

func writeElements(text *strings.Builder, name string, v reflect.Value, levels int) {
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 && utf8.Valid(v.Bytes()) {
		fmt.Fprintf(text, "%s(%q)", v.Type(), v.Bytes())
		return
	}
	text.WriteString(name + "{")
	for i := range v.Len() {
		if i > 0 {
			text.WriteString(", ")
		}
		write(text, v.Index(i), v.Type().Elem().String(), levels-1)
	}
	text.WriteString("}")
}

func writeEntries(text *strings.Builder, name string, v reflect.Value, levels int) {
	var entries []string
	for _, key := range v.MapKeys() {
		var entry strings.Builder
		write(&entry, key, v.Type().Key().String(), levels-1)
		entry.WriteString(": ")
		write(&entry, v.MapIndex(key), v.Type().Elem().String(), levels-1)
		entries = append(entries, entry.String())
	}
	slices.Sort(entries)
	text.WriteString(name + "{" + strings.Join(entries, ", ") + "}")
}

func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	at := reflect.New(v.Type()).Elem()
	at.Set(v)
	return at
}

// field returns a field of an addressable struct so that its methods can be called. Reflection does
// not allow this for unexported fields, but a time.Time in one is shown by its method String.
func field(v reflect.Value, i int) reflect.Value {
	f := v.Field(i)
	if f.CanInterface() {
		return f
	}
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}
