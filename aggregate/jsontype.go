package aggregate

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// CheckType finds what encoding/json would drop without a word, or refuse only once a value comes
// along. Fields that are left out on purpose (json:"-") are not its business.
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

// jsonVisit distinguishes addressable values because the pointer methods of others are not called:
// a big.Int in a struct that is passed by value is written as {}.
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
	if encodesItself(t, addressable) || c.seen[jsonVisit{t, addressable}] {
		return
	}
	c.seen[jsonVisit{t, addressable}] = true
	if encodesItself(t, true) {
		c.fault(path, "is a %s, whose marshalling method has a pointer receiver and is not called on a value: use a pointer to it", t)
		return
	}
	switch t.Kind() {
	case reflect.Func, reflect.Chan, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		c.fault(path, "is a %s, which JSON cannot hold: leave it out", t)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			c.fault(path, "is the interface %s, which JSON cannot decode: use a concrete type", t)
		}
	case reflect.Pointer, reflect.Slice:
		c.visit(t.Elem(), path, true)
	case reflect.Array:
		c.visit(t.Elem(), path, addressable)
	case reflect.Map:
		if !jsonKey(t.Key()) {
			c.fault(path, "has keys of type %s, which JSON cannot hold: use strings, integers or a type with MarshalText and UnmarshalText", t.Key())
		}
		c.visit(t.Elem(), path, false)
	case reflect.Struct:
		c.fields(t, path, addressable, map[string]string{})
	}
}

// fields goes through a struct and the structs embedded in it, which share one set of JSON names.
func (c *jsonCheck) fields(t reflect.Type, path string, addressable bool, names map[string]string) {
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, _, _ := strings.Cut(tag, ",")
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
			c.fault(where, "is unexported, so JSON loses it: export it, or give %s the methods MarshalJSON and UnmarshalJSON", t)
			continue
		case !field.IsExported() && byPointer:
			c.fault(where, "is an embedded pointer to an unexported type, which JSON cannot decode: embed it by value")
			continue
		case embedded && name == "" && !encodesItself(field.Type, addressable):
			visit := jsonVisit{target, addressable || byPointer}
			if !c.seen[visit] {
				c.seen[visit] = true
				c.fields(target, where, addressable || byPointer, names)
				delete(c.seen, visit) // the same type elsewhere has a set of names of its own
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
		c.visit(field.Type, where, addressable)
	}
}

func jsonKey(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return true
	}
	return t.Implements(textMarshaler) && reflect.PointerTo(t).Implements(textUnmarshaler)
}
