package catalogue

import (
	"cmp"
	"encoding"
	"encoding/json"
	"math/big"
	"reflect"
	"slices"
	"time"
)

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// textFormat is the format of strings that the method UnmarshalText of a type decodes. It may
// refuse other strings.
const textFormat = "text"

// timeFormat is the format of time.Time.
const timeFormat = "date-time"

// known are types of the standard library that encode themselves.
var known = map[reflect.Type]schema{
	reflect.TypeFor[time.Time]():       {Type: kinds{"string"}, Format: timeFormat},
	reflect.TypeFor[json.RawMessage](): {},
	reflect.TypeFor[json.Number]():     {Type: kinds{"number"}},
	reflect.TypeFor[big.Int]():         {Type: kinds{"integer"}},
}

// structKey identifies a definition in a schema. encoding/json calls methods with a pointer
// receiver only for values that are addressable.
type structKey struct {
	t           reflect.Type
	addressable bool
}

// inference makes the schemas of Go types. Definitions are the types that schemas refer to.
type inference struct {
	as          map[reflect.Type]reflect.Type
	definitions map[structKey]*schema
	depth       int
}

// mostNested limits the nesting of types. It ends the inference of a pointer to itself.
const mostNested = 500

func newInference(as map[reflect.Type]reflect.Type) *inference {
	return &inference{as: as, definitions: map[structKey]*schema{}}
}

// root returns the schema of the values of a type, as encoding/json encodes them. It is not a
// reference. The key is that under which other schemas refer to it; nil if there is none.
func (in *inference) root(t reflect.Type) (*schema, *structKey, error) {
	addressable := false
	if t.Kind() == reflect.Pointer {
		t, addressable = t.Elem(), true
	}
	s, err := in.of(t, addressable, "")
	if err != nil || s.refers == nil {
		return s, nil, err
	}
	return in.definitions[*s.refers], s.refers, nil
}

// of returns the schema of a type. Path names the place of the type, for errors.
func (in *inference) of(t reflect.Type, addressable bool, path string) (*schema, error) {
	in.depth++
	defer func() { in.depth-- }()
	if in.depth > mostNested {
		return nil, &TypeError{Field: path, GoType: t, Reason: "it is nested too deeply: use a struct for values that contain themselves"}
	}
	if other, ok := in.as[t]; ok {
		return in.of(other, addressable, path)
	}
	if s, ok := known[t]; ok && (t.Kind() != reflect.Struct || addressable || t.Implements(jsonMarshaler)) {
		return s.copied(nil), nil
	}
	if t.Kind() == reflect.Pointer {
		s, err := in.of(t.Elem(), true, path)
		if err != nil {
			return nil, err
		}
		return nullable(s), nil
	}
	if calls(t, jsonMarshaler, addressable) {
		return &schema{Description: "Encoded by the method MarshalJSON of " + t.String() + "."}, nil
	}
	if calls(t, textMarshaler, addressable) {
		s := &schema{Type: kinds{"string"}, Format: textFormat}
		if t.Kind() == reflect.Interface {
			return nullable(s), nil
		}
		return s, nil
	}
	if t.Kind() == reflect.Struct && t.Name() != "" || t.Name() != "" && isRecursive(t) {
		return in.definition(t, addressable, path)
	}
	return in.content(t, addressable, path)
}

// definition returns a reference to the schema of a named type.
func (in *inference) definition(t reflect.Type, addressable bool, path string) (*schema, error) {
	key := structKey{t, addressable && needsAddress(t, map[reflect.Type]bool{})}
	if _, ok := in.definitions[key]; !ok {
		defined := &schema{}
		in.definitions[key] = defined
		s, err := in.content(t, addressable, path)
		if err != nil {
			return nil, err
		}
		*defined = *s
	}
	return &schema{refers: &key}, nil
}

func (in *inference) content(t reflect.Type, addressable bool, path string) (*schema, error) {
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: kinds{"boolean"}}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return integer(t), nil
	case reflect.Float32:
		return &schema{Type: kinds{"number"}, Format: "float"}, nil
	case reflect.Float64:
		return &schema{Type: kinds{"number"}, Format: "double"}, nil
	case reflect.String:
		return &schema{Type: kinds{"string"}}, nil
	case reflect.Interface:
		return &schema{}, nil
	case reflect.Slice, reflect.Array:
		return in.list(t, addressable, path)
	case reflect.Map:
		return in.object(t, path)
	case reflect.Struct:
		return in.fields(t, addressable, path)
	}
	return nil, &TypeError{Field: path, GoType: t, Reason: "JSON cannot hold it: leave it out with json:\"-\", or use another type"}
}

var formats = map[reflect.Kind]string{
	reflect.Int: "int64", reflect.Int8: "int8", reflect.Int16: "int16", reflect.Int32: "int32", reflect.Int64: "int64",
	reflect.Uint: "uint64", reflect.Uint8: "uint8", reflect.Uint16: "uint16", reflect.Uint32: "uint32", reflect.Uint64: "uint64",
	reflect.Uintptr: "uint64",
}

func integer(t reflect.Type) *schema {
	s := &schema{Type: kinds{"integer"}, Format: formats[t.Kind()]}
	if t.Kind() >= reflect.Uint && t.Kind() <= reflect.Uintptr {
		s.Minimum = new(int)
	}
	if t == reflect.TypeFor[time.Duration]() {
		s.Description = "A duration in nanoseconds."
	}
	return s
}

func (in *inference) list(t reflect.Type, addressable bool, path string) (*schema, error) {
	element := t.Elem()
	if t.Kind() == reflect.Slice && element.Kind() == reflect.Uint8 &&
		!calls(element, jsonMarshaler, true) && !calls(element, textMarshaler, true) {
		return &schema{Type: kinds{"string", null}, ContentEncoding: "base64"}, nil
	}
	items, err := in.of(element, addressable || t.Kind() == reflect.Slice, path+"[]")
	if err != nil {
		return nil, err
	}
	s := &schema{Type: kinds{"array"}, Items: items}
	if t.Kind() == reflect.Slice {
		return nullable(s), nil
	}
	length := t.Len()
	s.MinItems, s.MaxItems = &length, &length
	return s, nil
}

func (in *inference) object(t reflect.Type, path string) (*schema, error) {
	values, err := in.of(t.Elem(), false, path+"{}")
	if err != nil {
		return nil, err
	}
	s := &schema{Type: kinds{"object", null}, AdditionalProperties: values}
	switch key := t.Key(); {
	case key.Kind() == reflect.String:
	case key.Implements(textMarshaler):
		s.PropertyNames = &schema{Format: textFormat}
	case key.Kind() >= reflect.Int && key.Kind() <= reflect.Int64:
		s.PropertyNames = &schema{Pattern: "^-?[0-9]+$", Format: formats[key.Kind()]}
	case key.Kind() >= reflect.Uint && key.Kind() <= reflect.Uintptr:
		s.PropertyNames = &schema{Pattern: "^[0-9]+$", Format: formats[key.Kind()]}
	default:
		return nil, &TypeError{Field: path, GoType: t, Reason: "JSON cannot hold its keys: use strings, integers, or a type with the method MarshalText"}
	}
	return s, nil
}

// fields returns the schema of a struct. A field is required if each value has it and it is not
// null: decoding makes no difference between a missing field and null.
func (in *inference) fields(t reflect.Type, addressable bool, path string) (*schema, error) {
	s := &schema{Type: kinds{"object"}}
	for _, f := range fieldsOf(t) {
		where := f.name
		if path != "" {
			where = path + "." + f.name
		}
		of, err := in.field(f, addressable || f.addressable, where)
		if err != nil {
			return nil, err
		}
		if f.about != "" {
			if of.refers != nil {
				// In draft 07, a reference has no other keywords.
				of = &schema{AnyOf: []*schema{of}}
			}
			of.Description = f.about
		}
		s.Properties = append(s.Properties, property{f.name, of})
		if !f.optional && !of.allowsNull() {
			s.Required = append(s.Required, f.name)
		}
	}
	return s, nil
}

func (in *inference) field(f field, addressable bool, path string) (*schema, error) {
	of, err := in.of(f.t, addressable, path)
	if err != nil || !f.quoted || in.replaces(f.t) || calls(f.t, jsonMarshaler, addressable) || calls(f.t, textMarshaler, addressable) {
		return of, err
	}
	// The format is that of the value in the string, which is not any string.
	quoted := &schema{Type: kinds{"string"}, Format: cmp.Or(of.Format, of.Type[0]), Description: of.Description}
	if of.allowsNull() {
		return nullable(quoted), nil
	}
	return quoted, nil
}

// replaces reports whether another type describes a type or that to which it points.
func (in *inference) replaces(t reflect.Type) bool {
	_, ok := in.as[t]
	if !ok && t.Kind() == reflect.Pointer {
		_, ok = in.as[t.Elem()]
	}
	return ok
}

// calls reports whether encoding/json calls a method of a type.
func calls(t, method reflect.Type, addressable bool) bool {
	return t.Implements(method) || addressable && t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(method)
}

// needsAddress reports whether the encoding of a type depends on whether the value is addressable.
func needsAddress(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	for _, method := range []reflect.Type{jsonMarshaler, textMarshaler} {
		if t.Implements(method) {
			return false
		}
		if calls(t, method, true) {
			return true
		}
	}
	switch t.Kind() {
	case reflect.Array:
		return needsAddress(t.Elem(), seen)
	case reflect.Struct:
		return slices.ContainsFunc(fieldsOf(t), func(f field) bool { return needsAddress(f.t, seen) })
	}
	return false
}

// isRecursive reports whether a type that is no struct contains itself, other than in a named
// struct, which has a definition of its own.
func isRecursive(t reflect.Type) bool {
	seen := map[reflect.Type]bool{}
	var reaches func(of reflect.Type) bool
	reaches = func(of reflect.Type) bool {
		if of == t && len(seen) > 0 {
			return true
		}
		if seen[of] {
			return false
		}
		seen[of] = true
		switch of.Kind() {
		case reflect.Slice, reflect.Array, reflect.Map, reflect.Pointer:
			return reaches(of.Elem())
		case reflect.Struct:
			return of.Name() == "" && slices.ContainsFunc(fieldsOf(of), func(f field) bool { return reaches(f.t) })
		}
		return false
	}
	return reaches(t)
}
