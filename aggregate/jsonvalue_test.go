package aggregate_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
)

func TestJSONRefusesValuesThatWouldComeBackDifferent(t *testing.T) {
	t.Parallel()

	odd := time.Date(1850, 1, 1, 0, 0, 0, 0, time.FixedZone("LMT", 3208))
	var noMap map[string]int
	var noSlice []int
	var noPointer *int
	var raw json.RawMessage
	noPointerInAny, noSliceInAny := any(noPointer), any(noSlice)
	for name, test := range map[string]struct {
		value any
		says  string
	}{
		"time":               {struct{ At time.Time }{odd}, "has an offset of 53m28s from UTC, and JSON has whole minutes: use Time.UTC"},
		"pointer to a time":  {struct{ At *time.Time }{&odd}, "use Time.UTC"},
		"embedded time":      {onlyTime{odd}, "use Time.UTC"},
		"time, deep inside":  {struct{ At onlyDeepTime }{onlyDeepTime{onlyTime{odd}}}, "use Time.UTC"},
		"pointer in an any":  {struct{ Free any }{struct{ *time.Time }{&odd}}, "use Time.UTC"},
		"time in an any":     {struct{ Free any }{[]any{odd}}, "use Time.UTC"},
		"time as a key":      {map[time.Time]int{odd: 1}, "use Time.UTC"},
		"pointer to no map":  {struct{ P *map[string]int }{&noMap}, "a *map[string]int points to nil"},
		"pointer to nothing": {struct{ P []**int }{[]**int{&noPointer}}, "a **int points to nil"},
		"pointer to no JSON": {struct{ P *json.RawMessage }{&raw}, "a *json.RawMessage points to nil"},
		"pointer in *any":    {struct{ P *any }{&noPointerInAny}, "a *interface {} points to nil"},
		"slice in *any":      {struct{ P *any }{&noSliceInAny}, "a *interface {} points to nil"},
		"deep pointer":       {map[string]*[]int{"a": &noSlice}, "a *[]int points to nil"},
		"fields in an any":   {struct{ Free any }{unexported{1}}, "a aggregate_test.unexported in an interface: field amount is unexported"},
		"key":                {map[hexText]int{"a": 1}, `the map key "a" of type aggregate_test.hexText is written without its MarshalText`},
		"two keys":           {map[time.Time]int{time.Unix(1, 0).UTC(): 1, time.Unix(1, 0).In(time.FixedZone("UTC", 0)): 2}, "two map keys"},
	} {
		_, err := aggregate.JSON.Marshal(test.value)
		assert.ErrorContains(t, err, test.says, name)
	}
}

func TestJSONKeepsAPointerToANilThatEncodesItself(t *testing.T) {
	t.Parallel()

	type event struct{ Address *net.IP }
	data, err := aggregate.JSON.Marshal(event{new(net.IP)})
	require.NoError(t, err)
	var after event
	require.NoError(t, aggregate.JSON.Unmarshal(data, &after))
	assert.Equal(t, event{new(net.IP)}, after)
}

func TestJSONWritesAStateThatIsANilMap(t *testing.T) {
	t.Parallel()

	var state map[string]int
	data, err := aggregate.JSON.Marshal(&state)
	require.NoError(t, err)
	after := map[string]int{}
	require.NoError(t, aggregate.JSON.Unmarshal(data, &after))
	assert.Nil(t, after)
}

func TestJSONWritesAnyValueWithMethodsInAnAny(t *testing.T) {
	t.Parallel()

	data, err := aggregate.JSON.Marshal(struct{ Free any }{onlyEncodesText{1}})
	require.NoError(t, err)
	assert.JSONEq(t, `{"Free":"1"}`, string(data))
}

// Random values of random types come back as they were, unless the type or the value is refused.
func TestJSONLosesNothingOfRandomValues(t *testing.T) {
	t.Parallel()

	seed := rand.Uint64()
	draw := jsonDraw{rand.New(rand.NewPCG(seed, 0))}
	kept, refused := 0, 0
	for range 8_000 {
		kind := draw.kind(3)
		for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Interface {
			kind = draw.kind(3) // no event and no state is of such a type
		}
		before := reflect.New(kind)
		draw.fill(before.Elem(), 3)
		value := before.Interface()
		if draw.IntN(2) == 0 {
			value = before.Elem().Interface()
		}
		if checkJSON(value) != nil {
			refused++
			continue
		}
		data, err := aggregate.JSON.Marshal(value)
		if err != nil {
			refused++
			continue
		}
		kept++
		after := reflect.New(kind)
		require.NoError(t, aggregate.JSON.Unmarshal(data, after.Interface()), "seed %d: %s: %s", seed, kind, data)
		require.True(t, sameJSON(before.Elem(), after.Elem()), "seed %d: %s\nwritten %s\nbefore  %+v\nafter   %+v",
			seed, kind, data, before.Elem(), after.Elem())
	}
	assert.Greater(t, kept, 500)
	assert.Greater(t, refused, 500)
}

type onlyDeepTime struct{ onlyTime }

// jsonDraw draws types and values.
type jsonDraw struct{ *rand.Rand }

type (
	flags   uint8
	number  float32
	octet   byte
	country string
	level   int
)

func (c country) MarshalText() ([]byte, error)  { return []byte(c), nil }
func (c *country) UnmarshalText(b []byte) error { *c = country(b); return nil }
func (l level) MarshalText() ([]byte, error)    { return fmt.Appendf(nil, "level %d", int(l)), nil }
func (l *level) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "level %d", (*int)(l))
	return err
}

var jsonLeaves = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int8](), reflect.TypeFor[int64](), reflect.TypeFor[uint64](), reflect.TypeFor[float32](),
	reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[time.Time](), reflect.TypeFor[*time.Time](),
	reflect.TypeFor[time.Duration](), reflect.TypeFor[big.Int](), reflect.TypeFor[*big.Int](), reflect.TypeFor[netip.Addr](),
	reflect.TypeFor[flags](), reflect.TypeFor[number](), reflect.TypeFor[octet](), reflect.TypeFor[[]octet](), reflect.TypeFor[country](),
	reflect.TypeFor[level](), reflect.TypeFor[any](), reflect.TypeFor[error](), reflect.TypeFor[hexText](), reflect.TypeFor[unexported](),
	reflect.TypeFor[onlyTime](), reflect.TypeFor[markTime](), reflect.TypeFor[namedTime](), reflect.TypeFor[embedsTime](),
	reflect.TypeFor[embedsLenient](), reflect.TypeFor[embedsTwo](), reflect.TypeFor[embedsOnePointer](), reflect.TypeFor[embedsBig](),
	reflect.TypeFor[ownMethods[int]](), reflect.TypeFor[ownPointerMethods](), reflect.TypeFor[ownEncoder](), reflect.TypeFor[onlyEncodes](),
	reflect.TypeFor[onlyEncodesPointer](), reflect.TypeFor[onlyEncodesText](), reflect.TypeFor[decodesCopy](), reflect.TypeFor[lenient](),
	reflect.TypeFor[pointerMethod](), reflect.TypeFor[tree](), reflect.TypeFor[shadowed](), reflect.TypeFor[struct{ base }](),
	reflect.TypeFor[textKey](), reflect.TypeFor[copyKey](), reflect.TypeFor[onlyDeepTime](),
}

func (d jsonDraw) kind(depth int) reflect.Type {
	if depth == 0 || d.IntN(4) == 0 {
		return jsonLeaves[d.IntN(len(jsonLeaves))]
	}
	switch d.IntN(5) {
	case 0:
		return reflect.PointerTo(d.kind(depth - 1))
	case 1:
		return reflect.SliceOf(d.kind(depth - 1))
	case 2:
		return reflect.ArrayOf(d.IntN(3), d.kind(depth-1))
	case 3:
		key := d.kind(0)
		for !key.Comparable() || key.Kind() == reflect.Interface {
			key = d.kind(0)
		}
		return reflect.MapOf(key, d.kind(depth-1))
	default:
		fields := make([]reflect.StructField, d.IntN(4))
		for i := range fields {
			fields[i] = reflect.StructField{Name: string(rune('A' + i)), Type: d.kind(depth - 1)}
			fields[i].Tag = reflect.StructTag([]string{"", `json:"B"`, `json:"a"`, `json:",string"`, `json:"x y"`}[d.IntN(5)])
		}
		return reflect.StructOf(fields)
	}
}

func (d jsonDraw) fill(v reflect.Value, depth int) {
	if !v.CanSet() || d.IntN(12) == 0 {
		return
	}
	switch v.Type() {
	case reflect.TypeFor[time.Time]():
		zone := time.FixedZone("zone", []int{0, 3600, -12600, 3208}[d.IntN(4)])
		v.Set(reflect.ValueOf(time.Unix(d.Int64N(1<<33)-1<<32, d.Int64N(1e9)).In(zone)))
		return
	case reflect.TypeFor[ownMethods[int]](), reflect.TypeFor[ownPointerMethods]():
		// Their methods lose an offset with seconds.
		v.Field(0).Set(reflect.ValueOf(time.Unix(d.Int64N(1<<33), 0).UTC()))
		return
	case reflect.TypeFor[big.Int]():
		v.Set(reflect.ValueOf(*new(big.Int).Lsh(big.NewInt(d.Int64()), 9)))
		return
	case reflect.TypeFor[netip.Addr]():
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{1, 2, 3, byte(d.IntN(256))})))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(d.Int64())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(d.Uint64())
	case reflect.Float32, reflect.Float64:
		v.SetFloat(d.NormFloat64() * 1e20)
	case reflect.String:
		if v.Type() == reflect.TypeFor[country]() {
			v.SetString("NZ") // its methods do not take all bytes
			return
		}
		v.SetString([]string{"", "null", "<a>&\u2028", "\ufffd", "\xff", `"\`, "\x00\u009b"}[d.IntN(7)])
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf([]any{json.Number("9007199254740993"), "text", true, map[string]any{"a": nil}, []any{}}[d.IntN(5)]))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.fill(v.Elem(), depth-1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), d.IntN(3), 4))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			if depth > -3 {
				d.fill(v.Index(i), depth-1)
			}
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range d.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			d.fill(key, depth-1)
			if depth > -3 {
				d.fill(value, depth-1)
			}
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if tag := v.Type().Field(i).Tag.Get("json"); !strings.HasPrefix(tag, "-") {
				d.fill(v.Field(i), depth-1)
			}
		}
	}
}

// sameJSON is reflect.DeepEqual, except that it ignores the name of a time zone.
func sameJSON(a, b reflect.Value) bool {
	return reflect.DeepEqual(withoutZones(a).Interface(), withoutZones(b).Interface())
}

// withoutZones returns a value in which all times have a zone without a name.
func withoutZones(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	if at, ok := c.Interface().(time.Time); ok {
		_, offset := at.Zone()
		c.Set(reflect.ValueOf(time.Unix(at.Unix(), int64(at.Nanosecond())).In(zones[offset])))
		return c
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.Set(reflect.New(v.Type().Elem()))
			c.Elem().Set(withoutZones(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			c.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			c.Index(i).Set(withoutZones(v.Index(i)))
		}
	case reflect.Map:
		if !v.IsNil() {
			c.Set(reflect.MakeMap(v.Type()))
			for entries := v.MapRange(); entries.Next(); {
				c.SetMapIndex(withoutZones(entries.Key()), withoutZones(entries.Value()))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if c.Field(i).CanSet() {
				c.Field(i).Set(withoutZones(v.Field(i)))
			}
		}
	}
	return c
}

// zones holds a zone for each offset that jsonDraw draws.
var zones = map[int]*time.Location{
	0: time.UTC, 3600: time.FixedZone("", 3600), -12600: time.FixedZone("", -12600), 3208: time.FixedZone("", 3208),
}
