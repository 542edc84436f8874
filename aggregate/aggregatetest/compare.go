package aggregatetest

import (
	"fmt"
	"reflect"
	"strconv"
	"unsafe"
)

// difference is the first place at which two values are not the same.
type difference struct {
	path, want, got string
}

// compare looks for a difference; see the package documentation for what counts as equal.
func compare(want, got any) (difference, bool) {
	c := comparison{seen: map[pointers]bool{}}
	equal := c.equal("", reflect.ValueOf(want), reflect.ValueOf(got))
	if c.found.path == "" {
		c.found.path = "the value itself"
	}
	return c.found, !equal
}

type comparison struct {
	found difference
	seen  map[pointers]bool // pairs under comparison: a cycle that comes back to one is equal so far
}

type pointers struct {
	want, got unsafe.Pointer
	of        reflect.Type
}

func (c *comparison) differ(path, want, got string) bool {
	c.found = difference{path: path, want: want, got: got}
	return false
}

func (c *comparison) equal(path string, want, got reflect.Value) bool {
	if !want.IsValid() || !got.IsValid() {
		if want.IsValid() == got.IsValid() {
			return true
		}
		return c.differ(path, show(want), show(got))
	}
	if want.Type() != got.Type() {
		return c.differ(path, "a "+want.Type().String(), "a "+got.Type().String())
	}
	if isMessage(want.Type()) && want.IsNil() != got.IsNil() {
		if want.IsNil() {
			want = reflect.New(want.Type().Elem())
		} else {
			got = reflect.New(got.Type().Elem())
		}
	}
	if equal, decided := c.nils(path, want, got); decided {
		return equal
	}
	if equal, ok := equalMethod(want); ok {
		if equal.Call([]reflect.Value{got})[0].Bool() {
			return true
		}
		return c.differ(path, show(want), show(got))
	}

	switch want.Kind() {
	case reflect.Pointer:
		pair := pointers{want.UnsafePointer(), got.UnsafePointer(), want.Type()}
		if pair.want == pair.got || c.seen[pair] {
			return true
		}
		c.seen[pair] = true
		return c.equal(path, want.Elem(), got.Elem())
	case reflect.Interface:
		return c.equal(path, want.Elem(), got.Elem())
	case reflect.Struct:
		want, got = addressable(want), addressable(got)
		message := isMessage(reflect.PointerTo(want.Type()))
		for i := range want.NumField() {
			if name := want.Type().Field(i).Name; message && (name == "state" || name == "sizeCache") {
				continue // what the Protocol Buffers runtime notes on a message once it is used
			}
			if !c.equal(join(path, want.Type().Field(i).Name), field(want, i), field(got, i)) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array:
		for i := range min(want.Len(), got.Len()) {
			if !c.equal(fmt.Sprintf("%s[%d]", path, i), want.Index(i), got.Index(i)) {
				return false
			}
		}
		if want.Len() != got.Len() {
			return c.differ(path, count(want.Len(), "element"), count(got.Len(), "element"))
		}
		return true
	case reflect.Map:
		return c.equalMaps(path, want, got)
	case reflect.Float32, reflect.Float64:
		if want.Float() == got.Float() || want.Float() != want.Float() && got.Float() != got.Float() {
			return true
		}
	default:
		if want.Equal(got) {
			return true
		}
	}
	return c.differ(path, show(want), show(got))
}

// isMessage reports whether a type is a pointer to a generated Protocol Buffers message, by name so
// that no test has to import that module. Nil and empty are the same to their getters, and a codec
// cannot keep them apart.
func isMessage(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer {
		return false
	}
	_, ok := t.MethodByName("ProtoReflect")
	return ok
}

// nils decides where one of the two is nil. Functions and channels cannot be looked into; two that
// are not nil count as equal.
func (c *comparison) nils(path string, want, got reflect.Value) (equal, decided bool) {
	switch want.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer:
		opaque := want.Kind() != reflect.Pointer && want.Kind() != reflect.Interface
		switch {
		case want.IsNil() == got.IsNil():
			return true, want.IsNil() || opaque
		case opaque && want.IsNil():
			return c.differ(path, "nil", "not nil"), true
		case opaque:
			return c.differ(path, "not nil", "nil"), true
		}
		return c.differ(path, show(want), show(got)), true
	}
	return false, false
}

func (c *comparison) equalMaps(path string, want, got reflect.Value) bool {
	for entries := want.MapRange(); entries.Next(); {
		at := fmt.Sprintf("%s[%s]", path, show(entries.Key()))
		other := got.MapIndex(entries.Key())
		if !other.IsValid() {
			return c.differ(at, show(entries.Value()), "no entry")
		}
		if !c.equal(at, entries.Value(), other) {
			return false
		}
	}
	for entries := got.MapRange(); entries.Next(); {
		if !want.MapIndex(entries.Key()).IsValid() {
			return c.differ(fmt.Sprintf("%s[%s]", path, show(entries.Key())), "no entry", show(entries.Value()))
		}
	}
	return true
}

// equalMethod finds the method Equal(T) bool of a value of type T.
func equalMethod(v reflect.Value) (reflect.Value, bool) {
	method := v.MethodByName("Equal")
	if !method.IsValid() {
		return method, false
	}
	t := method.Type()
	fits := t.NumIn() == 1 && t.In(0) == v.Type() && !t.IsVariadic() && t.NumOut() == 1 && t.Out(0).Kind() == reflect.Bool
	return method, fits
}

func addressable(v reflect.Value) reflect.Value {
	if v.CanAddr() {
		return v
	}
	at := reflect.New(v.Type()).Elem()
	at.Set(v)
	return at
}

// field is a field of an addressable struct with leave to call methods on it. Reflection denies
// that for unexported fields, and without it a time.Time in one would be compared by its clock
// readings.
func field(v reflect.Value, i int) reflect.Value {
	f := v.Field(i)
	if f.CanInterface() {
		return f
	}
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func show(v reflect.Value) string {
	if !v.IsValid() {
		return "nil"
	}
	switch v.Kind() {
	case reflect.String:
		return strconv.Quote(v.String())
	case reflect.Pointer:
		if !v.IsNil() {
			return "&" + show(v.Elem())
		}
	}
	return fmt.Sprintf("%+v", v.Interface())
}
