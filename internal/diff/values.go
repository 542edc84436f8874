package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// Difference is a place at which two values differ.
type Difference struct {
	Path string // such as Lines[1].Name
	Want string
	Got  string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: expected %s, got %s", d.Path, d.Want, d.Got)
}

// First returns the first difference of two values, and whether there is one.
func First(want, got any) (Difference, bool) {
	found := differences(want, got, 1)
	if len(found) == 0 {
		return Difference{}, false
	}
	return found[0], true
}

// differences returns the first differences, up to limit.
func differences(want, got any, limit int) []Difference {
	c := comparison{limit: limit, seen: map[pointers]bool{}}
	c.compare("", reflect.ValueOf(want), reflect.ValueOf(got))
	return c.found
}

type comparison struct {
	found []Difference
	limit int
	seen  map[pointers]bool // pairs that were compared or are being compared, so that cycles end
}

type pointers struct {
	want, got unsafe.Pointer
	of        reflect.Type
}

func (c *comparison) differ(path, want, got string) {
	if path == "" {
		path = "the value itself"
	}
	if len(c.found) < c.limit {
		c.found = append(c.found, Difference{Path: path, Want: want, Got: got})
	}
}

func (c *comparison) full() bool { return len(c.found) == c.limit }

func (c *comparison) compare(path string, want, got reflect.Value) {
	if c.full() {
		return
	}
	if !want.IsValid() || !got.IsValid() {
		if want.IsValid() != got.IsValid() {
			c.differ(path, show(want), show(got))
		}
		return
	}
	if want.Type() != got.Type() {
		c.differ(path, "a "+want.Type().String(), "a "+got.Type().String())
		return
	}
	if isMessage(want.Type()) && want.IsNil() != got.IsNil() {
		if want.IsNil() {
			want = reflect.New(want.Type().Elem())
		} else {
			got = reflect.New(got.Type().Elem())
		}
	}
	if c.nils(path, want, got) {
		return
	}
	if equal, ok := equalMethod(want); ok {
		if !equal.Call([]reflect.Value{got})[0].Bool() {
			c.differ(path, show(want), show(got))
		}
		return
	}
	switch want.Kind() {
	case reflect.Pointer:
		pair := pointers{want.UnsafePointer(), got.UnsafePointer(), want.Type()}
		if pair.want != pair.got && !c.seen[pair] {
			c.seen[pair] = true
			c.compare(path, want.Elem(), got.Elem())
		}
	case reflect.Interface:
		c.compare(path, want.Elem(), got.Elem())
	case reflect.Struct:
		c.fields(path, addressable(want), addressable(got))
	case reflect.Slice, reflect.Array:
		c.elements(path, want, got)
	case reflect.Map:
		c.entries(path, want, got)
	case reflect.Float32, reflect.Float64:
		bothNaN := want.Float() != want.Float() && got.Float() != got.Float()
		if want.Float() != got.Float() && !bothNaN {
			c.differ(path, show(want), show(got))
		}
	default:
		if !want.Equal(got) {
			c.differ(path, show(want), show(got))
		}
	}
}

func (c *comparison) fields(path string, want, got reflect.Value) {
	message := isMessage(reflect.PointerTo(want.Type()))
	for i := range want.NumField() {
		name := want.Type().Field(i).Name
		if message && (name == "state" || name == "sizeCache") {
			// The Protocol Buffers runtime changes these fields when a message is used.
			continue
		}
		c.compare(join(path, name), field(want, i), field(got, i))
	}
}

func (c *comparison) elements(path string, want, got reflect.Value) {
	for i := 0; i < min(want.Len(), got.Len()) && !c.full(); i++ {
		c.compare(fmt.Sprintf("%s[%d]", path, i), want.Index(i), got.Index(i))
	}
	if want.Len() != got.Len() {
		c.differ(path, Count(want.Len(), "element"), Count(got.Len(), "element"))
	}
}

func (c *comparison) entries(path string, want, got reflect.Value) {
	keys := want.MapKeys()
	for _, key := range got.MapKeys() {
		if !want.MapIndex(key).IsValid() {
			keys = append(keys, key)
		}
	}
	slices.SortStableFunc(keys, func(a, b reflect.Value) int { return strings.Compare(show(a), show(b)) })
	for _, key := range keys {
		at := fmt.Sprintf("%s[%s]", path, show(key))
		expected, came := want.MapIndex(key), got.MapIndex(key)
		switch {
		case !expected.IsValid():
			c.differ(at, "no entry", show(came))
		case !came.IsValid():
			c.differ(at, show(expected), "no entry")
		default:
			c.compare(at, expected, came)
		}
	}
}

// isMessage reports whether a type is a pointer to a generated Protocol Buffers message. It looks
// for a method by name, so that tests need not import that module. For the getters nil and empty
// are the same, and a codec cannot distinguish them.
func isMessage(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer {
		return false
	}
	_, ok := t.MethodByName("ProtoReflect")
	return ok
}

// nils compares two values if one of them is nil, and reports whether the comparison is complete.
// Functions and channels have no contents to compare; two that are not nil count as equal.
func (c *comparison) nils(path string, want, got reflect.Value) bool {
	opaque := false
	switch want.Kind() {
	case reflect.Pointer, reflect.Interface:
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		opaque = true
	default:
		return false
	}
	if want.IsNil() == got.IsNil() {
		return want.IsNil() || opaque
	}
	c.differ(path, show(want), show(got))
	return true
}

// equalMethod returns the method Equal(T) bool of a value of type T.
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

// field returns a field of an addressable struct so that its methods can be called. Reflection does
// not allow this for unexported fields, but a time.Time in one must be compared by its method
// Equal.
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
