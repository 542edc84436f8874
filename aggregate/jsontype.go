package aggregate

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
)

// CheckType finds content that encoding/json would drop silently, or refuse only for certain
// values. It ignores fields that are excluded on purpose (json:"-").
func (jsonCodec) CheckType(t reflect.Type) error {
	check := jsonCheck{seen: map[jsonVisit]bool{}}
	check.visit(t, "", false)
	if len(check.faults) == 0 {
		return nil
	}
	return errors.New(strings.Join(check.faults, ", "))
}

type jsonCheck struct {
	seen   map[jsonVisit]bool
	faults []string
}

// jsonVisit distinguishes addressable values, because encoding/json calls pointer methods on those
// only. It writes a big.Int in a struct that is passed by value as {}.
type jsonVisit struct {
	t           reflect.Type
	addressable bool
}

func (c *jsonCheck) fault(path, format string, args ...any) {
	what := "it"
	if path != "" {
		what = "field " + path
	}
	c.faults = append(c.faults, what+" "+fmt.Sprintf(format, args...))
}

func (c *jsonCheck) visit(t reflect.Type, path string, addressable bool) {
	if t.Kind() == reflect.Interface {
		if t.NumMethod() > 0 {
			c.fault(path, "is the interface %s, which JSON cannot decode: use a concrete type", t)
		}
		return
	}
	if embedded, lost := standsForAll(t, false); lost {
		c.fault(path, "embeds %s, whose methods stand for all of it, so JSON loses the other fields: name the embedded field, "+
			"or add the methods MarshalJSON and UnmarshalJSON to %s", embedded, t)
		return
	}
	if decodesACopy(t) {
		c.fault(path, "is a %s, whose unmarshalling method has a value receiver or is that of an embedded pointer, so JSON cannot decode it: "+
			"add the methods MarshalJSON and UnmarshalJSON to *%s", t, t)
		return
	}
	pointer := reflect.PointerTo(t)
	if !addressable && (pointer.Implements(jsonMarshaler) && !t.Implements(jsonMarshaler) || encodesItself(t, true) && !encodesItself(t, false)) {
		c.fault(path, "is a %s, whose marshalling method has a pointer receiver and is not called on a value: use a pointer to it", t)
		return
	}
	if encodesItself(t, addressable) {
		if !decodesItself(t) && (t.Kind() != reflect.Pointer || !decodesItself(t.Elem())) {
			c.fault(path, "is a %s, which has a method that encodes it and none that decodes it: add UnmarshalJSON or UnmarshalText", t)
		}
		return
	}
	if c.seen[jsonVisit{t, addressable}] {
		return
	}
	c.seen[jsonVisit{t, addressable}] = true
	switch t.Kind() {
	case reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		c.fault(path, "is a %s, which JSON cannot hold: leave it out", t)
	case reflect.Pointer, reflect.Slice:
		c.visit(t.Elem(), path, true)
	case reflect.Array:
		c.visit(t.Elem(), path, addressable)
	case reflect.Map:
		if !jsonKey(t.Key()) {
			c.fault(path, "has keys of type %s, which JSON cannot hold: use strings, integers or a type with MarshalText and UnmarshalText", t.Key())
		}
		if embedded, lost := standsForAll(t.Key(), true); lost {
			c.fault(path, "has keys that embed %s, whose methods stand for all of a key: name the embedded field, "+
				"or add the methods MarshalText and UnmarshalText to %s", embedded, t.Key())
		}
		c.visit(t.Elem(), path, false)
	case reflect.Struct:
		c.fields(t, path, addressable, map[string]string{})
	}
}

// standsForAll finds the embedded field of a struct whose methods encode or decode the struct as if
// it had no other fields. Lost reports whether it has other fields. Only methods for text count for
// a key of a map.
func standsForAll(t reflect.Type, key bool) (embedded reflect.Type, lost bool) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	fields := 0
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous && (encodesItself(field.Type, true) || decodesItself(field.Type)) {
			embedded = field.Type
			fields++
		} else if field.Name != "_" && field.Tag.Get("json") != "-" && (field.IsExported() || field.Type.Size() > 0) {
			fields++
		}
	}
	return embedded, embedded != nil && fields > 1 && (encodesByPromotion(t, key) || decodesByPromotion(t, key))
}

// decodesACopy reports whether encoding/json calls the unmarshalling method of a type, or of the
// type that a pointer points to, on a copy of the value.
func decodesACopy(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(jsonUnmarshaler) {
		return t.Kind() != reflect.Interface && t.Implements(jsonUnmarshaler)
	}
	return t.Kind() != reflect.Interface && t.Implements(textUnmarshaler)
}

// The names are constants. Otherwise the linker would keep all methods of all types.

func encodesByPromotion(t reflect.Type, key bool) bool {
	pointer := reflect.PointerTo(t)
	onPointer, there := pointer.MethodByName("MarshalJSON")
	onValue, byValue := t.MethodByName("MarshalJSON")
	if key || !there {
		onPointer, there = pointer.MethodByName("MarshalText")
		onValue, byValue = t.MethodByName("MarshalText")
	}
	return there && isPromoted(onPointer, onValue, byValue)
}

func decodesByPromotion(t reflect.Type, key bool) bool {
	pointer := reflect.PointerTo(t)
	onPointer, there := pointer.MethodByName("UnmarshalJSON")
	onValue, byValue := t.MethodByName("UnmarshalJSON")
	if key || !there {
		onPointer, there = pointer.MethodByName("UnmarshalText")
		onValue, byValue = t.MethodByName("UnmarshalText")
	}
	return there && isPromoted(onPointer, onValue, byValue)
}

// isPromoted reports whether a method was promoted from an embedded field. The compiler generates
// such a method, so it has no source file. The same is true of a pointer method if the value type
// has the method itself.
func isPromoted(onPointer, onValue reflect.Method, byValue bool) bool {
	method := onPointer
	if byValue {
		method = onValue
	}
	code := runtime.FuncForPC(method.Func.Pointer())
	if code == nil {
		return false
	}
	file, _ := code.FileLine(code.Entry())
	return file == "<autogenerated>"
}

// fields checks a struct and its embedded structs, which share one set of JSON names.
func (c *jsonCheck) fields(t reflect.Type, path string, addressable bool, names map[string]string) {
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Tag.Get("json") == "-" {
			continue
		}
		name, options := jsonName(field)
		where := field.Name
		if path != "" {
			where = path + "." + field.Name
		}
		target, byPointer := field.Type, field.Type.Kind() == reflect.Pointer
		if byPointer {
			target = target.Elem()
		}
		embedded := field.Anonymous && target.Kind() == reflect.Struct

		switch {
		case field.Name == "_" || !field.IsExported() && field.Type.Size() == 0:
			continue // holds nothing
		case !field.IsExported() && !embedded:
			c.fault(where, "is unexported, so JSON loses it: export it, or add the methods MarshalJSON and UnmarshalJSON to %s", t)
			continue
		case !field.IsExported() && byPointer:
			c.fault(where, "is an embedded pointer to an unexported type, which JSON cannot decode: embed it by value")
			continue
		case embedded && name == "" && byPointer && !alwaysWritten(target):
			c.fault(where, "is an embedded pointer to %s, of which JSON may write no field, so that it becomes nil: "+
				"embed it by value, add a JSON name, or remove omitempty and omitzero from one of its fields", target)
			continue
		case embedded && name == "":
			// encoding/json does not call its methods.
			visit := jsonVisit{target, addressable || byPointer}
			if !c.seen[visit] {
				c.seen[visit] = true
				c.fields(target, where, addressable || byPointer, names)
				// Elsewhere the same type has its own set of names.
				delete(c.seen, visit)
			}
			continue
		}

		if name == "" {
			name = field.Name
		}
		if other, taken := names[name]; taken {
			c.fault(where, "has the same JSON name %q as %s, so JSON loses one of them: rename one", name, other)
		}
		names[name] = where
		if hasOption(options, "string") && !canBeNil(target) && target.Kind() != reflect.Struct &&
			(encodesItself(target, true) || decodesItself(target)) {
			c.fault(where, "has the option string and is a %s, which encodes itself, so JSON cannot decode it: remove the option", field.Type)
			continue
		}
		c.visit(field.Type, where, addressable)
	}
}

// jsonKey reports whether JSON can hold keys of a type. encoding/json calls MarshalText of a value
// only, and UnmarshalText of a pointer. It never calls MarshalText of a string; see [checkJSONKey].
func jsonKey(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	decodes := pointer.Implements(textUnmarshaler) && !t.Implements(textUnmarshaler)
	switch t.Kind() {
	case reflect.String:
		return decodes || !pointer.Implements(textUnmarshaler)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if !pointer.Implements(textMarshaler) && !pointer.Implements(textUnmarshaler) {
			return true
		}
	}
	return decodes && t.Implements(textMarshaler)
}
