package catalogue

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
)

// Types that encoding/json treats in special ways.
type (
	node struct {
		Value int     `json:"value"`
		Left  *node   `json:"left"`
		Rest  []*node `json:"rest,omitempty"`
	}
	tree    []tree
	forest  map[string]forest
	either  struct{ Or *neither }
	neither struct {
		Nor either `json:"nor,omitzero"`
		All map[int]*either
	}
	base struct {
		ID   string `json:"id"`
		Note *string
	}
	other struct {
		ID   string `json:"id"`
		More []string
	}
	colour   string
	level    int8
	money    struct{ cents int64 }
	byValue  struct{ text string }
	byAddres struct{ text string }
	holder   struct{ Value byAddres }
	left     struct{ base }
	right    struct{ base }
	twice    struct {
		left
		right
		Last bool
	}
	raw          []byte
	texts        [2]colour
	batch[T any] struct {
		Items []T  `json:"items"`
		Next  uint `json:"next,string"`
	}
)

func (m money) MarshalJSON() ([]byte, error)      { return json.Marshal(m.cents) }
func (b byValue) MarshalText() ([]byte, error)    { return []byte("v" + b.text), nil }
func (b *byAddres) MarshalText() ([]byte, error)  { return []byte("a" + b.text), nil }
func (b *byAddres) UnmarshalText(in []byte) error { b.text = string(in[1:]); return nil }

// pool holds types that can be parts of generated types.
var pool = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](),
	reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](),
	reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[any](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[[3]byte](), reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](),
	reflect.TypeFor[json.Number](), reflect.TypeFor[json.RawMessage](), reflect.TypeFor[big.Int](), reflect.TypeFor[uuid.UUID](),
	reflect.TypeFor[netip.Addr](), reflect.TypeFor[node](), reflect.TypeFor[tree](), reflect.TypeFor[forest](), reflect.TypeFor[either](),
	reflect.TypeFor[base](), reflect.TypeFor[colour](), reflect.TypeFor[level](), reflect.TypeFor[money](), reflect.TypeFor[byValue](),
	reflect.TypeFor[byAddres](), reflect.TypeFor[raw](), reflect.TypeFor[texts](), reflect.TypeFor[batch[node]](), reflect.TypeFor[batch[colour]](),
	reflect.TypeFor[struct{}](), reflect.TypeFor[holder](), reflect.TypeFor[twice](),
}

var mapKeys = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[int16](), reflect.TypeFor[uint](), reflect.TypeFor[colour](), reflect.TypeFor[byValue](),
}

// drawType returns a random type.
func drawType(r *rand.Rand, depth int) reflect.Type {
	if depth == 0 {
		return pool[r.IntN(len(pool))]
	}
	switch r.IntN(6) {
	case 0:
		return reflect.PointerTo(drawType(r, depth-1))
	case 1:
		return reflect.SliceOf(drawType(r, depth-1))
	case 2:
		return reflect.ArrayOf(r.IntN(3), drawType(r, depth-1))
	case 3:
		return reflect.MapOf(mapKeys[r.IntN(len(mapKeys))], drawType(r, depth-1))
	case 4:
		return drawStruct(r, depth-1)
	}
	return pool[r.IntN(len(pool))]
}

func drawStruct(r *rand.Rand, depth int) reflect.Type {
	var fields []reflect.StructField
	tag := func(name string) reflect.StructTag {
		var options []string
		for _, option := range []string{"omitempty", "omitzero", "string"} {
			if r.IntN(4) == 0 {
				options = append(options, option)
			}
		}
		if len(options) == 0 && name == "" {
			return ""
		}
		return reflect.StructTag(fmt.Sprintf(`json:"%s"`, strings.Join(append([]string{name}, options...), ",")))
	}
	if r.IntN(3) == 0 {
		embedded := []reflect.Type{reflect.TypeFor[Base](), reflect.TypeFor[Other](), reflect.TypeFor[*Base]()}[r.IntN(3)]
		name := embedded.Name()
		if embedded.Kind() == reflect.Pointer {
			name = embedded.Elem().Name()
		}
		named := []string{"", "base"}[r.IntN(2)]
		field := reflect.StructField{Name: name, Type: embedded, Anonymous: true}
		if named != "" {
			field.Tag = tag(named)
		}
		fields = append(fields, field)
	}
	for i := range r.IntN(5) {
		name := []string{"", fmt.Sprintf("f%d", i), "id", "bad\\name", "-", "Ünï"}[r.IntN(6)]
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: drawType(r, depth), Tag: tag(name)})
	}
	return reflect.StructOf(fields)
}

// Base and Other are embedded: reflect.StructOf embeds exported types alone.
type (
	Base struct {
		base
		Note *string `json:"note"`
	}
	Other struct{ other }
)

// drawValue sets a value at random.
func drawValue(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(r.Int64N(1e10), r.Int64N(1e9)).UTC()))
		return
	case json.Number:
		v.SetString([]string{"", "12", "-1.5e3"}[r.IntN(3)])
		return
	case json.RawMessage:
		v.SetBytes([][]byte{nil, []byte(`{"a":[1]}`), []byte(`7`)}[r.IntN(3)])
		return
	case big.Int:
		v.Set(reflect.ValueOf(*big.NewInt(r.Int64())))
		return
	case netip.Addr:
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{1, 2, 3, byte(r.IntN(200))})))
		return
	case money:
		v.Set(reflect.ValueOf(money{r.Int64N(100)}))
		return
	case byValue, byAddres:
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(r.Int64N(3) * (r.Int64() >> (65 - v.Type().Bits())))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64N(2) * (r.Uint64() >> (64 - v.Type().Bits())))
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(r.IntN(3)) * r.NormFloat64())
	case reflect.String:
		v.SetString([]string{"", "text", `"<&`}[r.IntN(3)])
	case reflect.Interface:
		if of := []any{nil, 1, "a", []int{1}, map[string]any{"a": nil}}[r.IntN(5)]; of != nil {
			v.Set(reflect.ValueOf(of))
		}
	case reflect.Pointer:
		if depth > 0 && r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			drawValue(r, v.Elem(), depth-1)
		}
	case reflect.Slice:
		if depth > 0 && r.IntN(3) > 0 {
			v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
			for i := range v.Len() {
				drawValue(r, v.Index(i), depth-1)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			drawValue(r, v.Index(i), depth-1)
		}
	case reflect.Map:
		if depth > 0 && r.IntN(3) > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range r.IntN(3) {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				drawValue(r, key, depth-1)
				drawValue(r, value, depth-1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				drawValue(r, v.Field(i), depth-1)
			}
		}
	}
}

// schemaOf returns the schema of a type as a catalogue writes it, and as a validator.
func schemaOf(t *testing.T, of reflect.Type) (string, *jsonschema.Resolved) {
	t.Helper()
	c := &Catalogue{inference: newInference(nil)}
	e := &entry{about: about{Kind: event}}
	var err error
	e.schema, e.root, err = c.inference.root(of)
	require.NoError(t, err, "%s", of)
	c.names = definitionNames(c.reachable(e))
	data, err := document(c.standalone(e))
	require.NoError(t, err)
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(data, &s))
	closeObjects(&s)
	resolved, err := s.Resolve(nil)
	require.NoError(t, err, "%s\n%s", of, data)
	return string(data), resolved
}

// closeObjects refuses fields that a schema does not have.
func closeObjects(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if (s.Type == "object" || slices.Contains(s.Types, "object")) && s.AdditionalProperties == nil {
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
	for _, part := range slices.Concat(slices.Collect(maps.Values(s.Properties)), slices.Collect(maps.Values(s.Defs)), s.AnyOf) {
		closeObjects(part)
	}
	closeObjects(s.Items)
	if s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil {
		closeObjects(s.AdditionalProperties)
	}
}

func validates(t *testing.T, s *jsonschema.Resolved, data []byte) error {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal(data, &value))
	return s.Validate(value)
}

func TestTheJSONOfEachValueIsValid(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 0))
		of := drawStruct(r, 3)
		if r.IntN(4) == 0 {
			of = drawType(r, 2)
		}
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		text, byValue := schemaOf(t, of)
		_, byPointer := schemaOf(t, reflect.PointerTo(of))
		for range 10 {
			value := reflect.New(of)
			drawValue(r, value.Elem(), 4)
			data, err := json.Marshal(value.Elem().Interface())
			require.NoError(t, err, "seed %d: %s", seed, of)
			require.NoError(t, validates(t, byValue, data), "seed %d: %s\n%s\n%s", seed, of, data, text)
			data, err = json.Marshal(value.Interface())
			require.NoError(t, err, "seed %d: %s", seed, of)
			require.NoError(t, validates(t, byPointer, data), "seed %d: a pointer to %s\n%s", seed, of, data)
		}
	}
}

func TestSchemasDescribeTypes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		of   any
		want string
	}{
		{"", `{"type":"string"}`},
		{struct{ N int32 }{}, `{"type":"object","properties":{"N":{"type":"integer","format":"int32"}},"required":["N"]}`},
		{struct{ N uint8 }{}, `{"type":"object","properties":{"N":{"type":"integer","format":"uint8","minimum":0}},"required":["N"]}`},
		{struct {
			N int `json:"n,string"`
		}{}, `{"type":"object","properties":{"n":{"type":"string","format":"int64"}},"required":["n"]}`},
		{struct {
			Text string `json:",omitempty" description:"A text."`
		}{}, `{"type":"object","properties":{"Text":{"description":"A text.","type":"string"}}}`},
		{struct{ At time.Time }{}, `{"type":"object","properties":{"At":{"type":"string","format":"date-time"}},"required":["At"]}`},
		{struct{ D time.Duration }{}, `{"type":"object","properties":{"D":{"description":"A duration in nanoseconds.","type":"integer","format":"int64"}},"required":["D"]}`},
		{struct{ B []byte }{}, `{"type":"object","properties":{"B":{"type":["string","null"],"contentEncoding":"base64"}}}`},
		{struct{ M map[int]bool }{}, `{"type":"object","properties":{"M":{"type":["object","null"],"propertyNames":{"format":"int64","pattern":"^-?[0-9]+$"},"additionalProperties":{"type":"boolean"}}}}`},
		{struct {
			P *bool `json:",string"`
		}{}, `{"type":"object","properties":{"P":{"type":["string","null"],"format":"boolean"}}}`},
		{struct{ A netip.Addr }{}, `{"type":"object","properties":{"A":{"type":"string","format":"text"}},"required":["A"]}`},
		{struct{ M map[netip.Addr]bool }{}, `{"type":"object","properties":{"M":{"type":["object","null"],"propertyNames":{"format":"text"},"additionalProperties":{"type":"boolean"}}}}`},
		{struct{ P *string }{}, `{"type":"object","properties":{"P":{"type":["string","null"]}}}`},
		{struct{ A [2]any }{}, `{"type":"object","properties":{"A":{"type":"array","items":{},"minItems":2,"maxItems":2}},"required":["A"]}`},
		{struct{ M money }{}, `{"type":"object","properties":{"M":{"description":"Encoded by the method MarshalJSON of catalogue.money."}}}`},
		{struct{ L *level }{}, `{"type":"object","properties":{"L":{"type":["integer","null"],"format":"int8"}}}`},
		{node{}, `{"type":"object","properties":{"value":{"type":"integer","format":"int64"},"left":{"anyOf":[{"$ref":"#"},{"type":"null"}]},` +
			`"rest":{"type":["array","null"],"items":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}},"required":["value"]}`},
		{struct{ N batch[colour] }{}, `{"type":"object","properties":{"N":{"$ref":"#/$defs/batch_catalogue.colour"}},"required":["N"],"$defs":{"batch_catalogue.colour":` +
			`{"type":"object","properties":{"items":{"type":["array","null"],"items":{"type":"string"}},"next":{"type":"string","format":"uint64"}},"required":["next"]}}}`},
		{struct{ T tree }{}, `{"type":"object","properties":{"T":{"$ref":"#/$defs/tree"}},"$defs":{"tree":{"type":["array","null"],"items":{"$ref":"#/$defs/tree"}}}}`},
		{Base{}, `{"type":"object","properties":{"id":{"type":"string"},"Note":{"type":["string","null"]},"note":{"type":["string","null"]}},"required":["id"]}`},
	} {
		text, _ := schemaOf(t, reflect.TypeOf(test.of))
		var got map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		delete(got, "$schema")
		delete(got, "x-millrace")
		plain, err := json.Marshal(got)
		require.NoError(t, err)
		assert.JSONEq(t, test.want, string(plain), "%T", test.of)
	}
}

func TestFieldsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	text, _ := schemaOf(t, reflect.TypeFor[struct{ Z, A, M int }]())
	assert.Less(t, strings.Index(text, `"Z"`), strings.Index(text, `"A"`))
	assert.Less(t, strings.Index(text, `"A"`), strings.Index(text, `"M"`))
}

func TestATypeThatEncodesItselfIsDescribedAsAnother(t *testing.T) {
	t.Parallel()
	in := newInference(map[reflect.Type]reflect.Type{reflect.TypeFor[money](): reflect.TypeFor[int64]()})
	s, _, err := in.root(reflect.TypeFor[struct{ M *money }]())
	require.NoError(t, err)
	assert.Equal(t, &schema{Type: kinds{"integer", "null"}, Format: "int64"}, s.Properties.get("M"))
}

func TestATypeWithoutJSONIsRefused(t *testing.T) {
	t.Parallel()
	type endless *endless
	type line struct {
		Done chan bool `json:"done"`
	}
	for _, test := range []struct {
		of   any
		want TypeError
	}{
		{struct {
			Lines []line `json:"lines"`
		}{}, TypeError{Field: "lines[].done", GoType: reflect.TypeFor[chan bool](), Reason: "JSON cannot hold it: leave it out with json:\"-\", or use another type"}},
		{struct{ F map[string]func() }{}, TypeError{Field: "F{}", GoType: reflect.TypeFor[func()](), Reason: "JSON cannot hold it: leave it out with json:\"-\", or use another type"}},
		{struct{ C complex64 }{}, TypeError{Field: "C", GoType: reflect.TypeFor[complex64](), Reason: "JSON cannot hold it: leave it out with json:\"-\", or use another type"}},
		{struct{ M map[bool]int }{}, TypeError{Field: "M", GoType: reflect.TypeFor[map[bool]int](), Reason: "JSON cannot hold its keys: use strings, integers, or a type with the method MarshalText"}},
		{struct{ E endless }{}, TypeError{Field: "E", GoType: reflect.TypeFor[endless](), Reason: "it is nested too deeply: use a struct for values that contain themselves"}},
	} {
		_, _, err := newInference(nil).root(reflect.TypeOf(test.of))
		var got *TypeError
		require.ErrorAs(t, err, &got)
		assert.Equal(t, test.want, *got)
	}
}

// changed returns a struct with some of the fields of another one, and some that are new.
func changed(r *rand.Rand, of reflect.Type) reflect.Type {
	var fields []reflect.StructField
	for i := range of.NumField() {
		f := of.Field(i)
		switch r.IntN(8) {
		case 0:
			continue
		case 1:
			if !f.Anonymous {
				f.Type = drawType(r, 1)
			}
		case 2:
			f.Type = reflect.PointerTo(f.Type)
			if f.Anonymous {
				f = of.Field(i)
			}
		case 3:
			if f.Type.Kind() == reflect.Struct && f.Type.Name() == "" {
				f.Type = changed(r, f.Type)
			}
		case 4:
			if !f.Anonymous {
				f.Tag = ""
			}
		case 5:
			switch {
			case f.Anonymous:
			case f.Type.Kind() == reflect.Pointer:
				f.Type = f.Type.Elem()
			case f.Type.Kind() == reflect.Array:
				f.Type = reflect.ArrayOf(f.Type.Len()+1, f.Type.Elem())
			case f.Type.Kind() == reflect.Map:
				f.Type = reflect.MapOf(mapKeys[r.IntN(len(mapKeys))], f.Type.Elem())
			}
		}
		fields = append(fields, f)
	}
	if r.IntN(4) == 0 {
		fields = append(fields, reflect.StructField{Name: "New", Type: drawType(r, 1), Tag: `json:",omitzero"`})
	}
	return reflect.StructOf(fields)
}

// A change without differences, other than those that are allowed for events, keeps stored payloads
// valid and readable.
func TestStoredPayloadsStayValidAfterCompatibleChanges(t *testing.T) {
	t.Parallel()
	checker := aggregate.JSON.(aggregate.TypeChecker)
	compatible, read := 0, 0
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 1))
		before := drawStruct(r, 2)
		after := changed(r, before)
		from, _ := schemaOf(t, before)
		to, valid := schemaOf(t, after)
		var old, current schema
		require.NoError(t, json.Unmarshal([]byte(from), &old))
		require.NoError(t, json.Unmarshal([]byte(to), &current))
		if slices.ContainsFunc(differences(&old, &current), func(d diff) bool {
			return d.kind != addedOptional && d.kind != nowNull && d.kind != nowOptional
		}) {
			continue
		}
		compatible++
		decodes := checker.CheckType(before) == nil && checker.CheckType(after) == nil
		for range 5 {
			value := reflect.New(before)
			drawValue(r, value.Elem(), 4)
			data, err := json.Marshal(value.Elem().Interface())
			require.NoError(t, err)
			require.NoError(t, validates(t, valid, data), "seed %d: %s\n%s\n%s\n%s", seed, before, after, data, to)
			if decodes {
				read++
				require.NoError(t, aggregate.JSON.Unmarshal(data, reflect.New(after).Interface()), "seed %d: %s\n%s\n%s", seed, before, after, data)
			}
		}
	}
	t.Logf("%d of 1500 changes were compatible, %d payloads were decoded", compatible, read)
	assert.Greater(t, compatible, 200)
	assert.Greater(t, read, 200)
}
