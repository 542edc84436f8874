package aggregate_test

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
)

func TestJSONKeepsLargeIntegersExact(t *testing.T) {
	t.Parallel()

	type event struct {
		Signed   int64
		Unsigned uint64
		Free     any
		Deep     map[string][]any
	}
	const beyondFloat = 9007199254740993 // 2^53 + 1, which a float64 cannot hold
	before := event{math.MinInt64, math.MaxUint64, beyondFloat, map[string][]any{"a": {beyondFloat}}}

	data, err := aggregate.JSON.Marshal(before)
	require.NoError(t, err)
	var after event
	require.NoError(t, aggregate.JSON.Unmarshal(data, &after))

	assert.Equal(t, before.Signed, after.Signed)
	assert.Equal(t, before.Unsigned, after.Unsigned)
	assert.Equal(t, json.Number("9007199254740993"), after.Free)
	assert.Equal(t, json.Number("9007199254740993"), after.Deep["a"][0])
}

func TestJSONRefusesWhatIsNotOneValue(t *testing.T) {
	t.Parallel()

	for _, data := range []string{"", " ", `{"Free":1`, `{} {}`, `{}}`, `{},`, "{}x", `{"Free":01}`} {
		assert.Error(t, aggregate.JSON.Unmarshal([]byte(data), &struct{ Free int }{}), "plain: %q", data)
		assert.Error(t, aggregate.JSON.Unmarshal([]byte(data), &struct{ Free any }{}), "with an any: %q", data)
	}
	for _, data := range []string{`{}`, " {} \n"} {
		assert.NoError(t, aggregate.JSON.Unmarshal([]byte(data), &struct{ Free int }{}), "plain: %q", data)
		assert.NoError(t, aggregate.JSON.Unmarshal([]byte(data), &struct{ Free any }{}), "with an any: %q", data)
	}
}

func TestJSONTakesNullOnlyWhereItIsAValue(t *testing.T) {
	t.Parallel()

	null := []byte("null")
	for _, target := range []any{new(struct{ A int }), new(struct{ A any }), new(int), new(string), new(bool), new([2]int)} {
		require.ErrorContains(t, aggregate.JSON.Unmarshal(null, target), "null cannot be a", "%T", target)
	}
	for _, target := range []any{new([]int), new(map[string]int), new(*Account), new(any), new(json.RawMessage), new(hexText), new(optional)} {
		assert.NoError(t, aggregate.JSON.Unmarshal(null, target), "%T", target)
	}
	assert.NoError(t, aggregate.JSON.Unmarshal([]byte(`{"A":null}`), new(struct{ A *int })))
}

func TestJSONTakesNullInsideOnlyWhereItIsAValue(t *testing.T) {
	t.Parallel()

	type Line struct {
		SKU   string `json:"sku"`
		Price int64  `json:"price,string"`
	}
	type Order struct {
		base
		*Line
		Amount   int
		Lines    []Line
		ByName   map[string]*Line
		Array    [2]bool
		At       time.Time
		Maybe    optional
		Pointer  *int
		Free     any
		Left     int `json:"-"`
		Odd      int `json:"it's"` //nolint:staticcheck // encoding/json does not take this name
		Deep     []map[string][]Line
		Embedded struct{ Named struct{ On bool } } `json:"deep_one"`
	}
	for data, says := range map[string]string{
		`{"Amount":null}`:                 "Amount: null cannot be a int",
		" { \"\\u0041mount\"\t:\nnull } ": "Amount: null cannot be a int",
		`{"Free":{"\"}":[{}, -1.5e3 , true,false,"\\"]}, "Amount":null}`: "Amount: null cannot be a int",
		`{"amount" : null}`:                          "amount: null cannot be a int",
		`{"Odd":null}`:                               "Odd: null cannot be a int",
		`{"ID":null}`:                                "ID: null cannot be a int",
		`{"sku":null}`:                               "sku: null cannot be a string",
		`{"price":null}`:                             "price: null cannot be a int64",
		`{"Lines":[{"sku":"a"},null]}`:               "Lines[1]: null cannot be a aggregate_test.Line",
		`{"Lines":[{"sku":"a"},{"price":null}]}`:     "Lines[1].price: null cannot be a int64",
		`{"ByName":{"a b":{"sku":null}}}`:            "ByName.a b.sku: null cannot be a string",
		`{"Array":[true,null]}`:                      "Array[1]: null cannot be a bool",
		`{"Deep":[{"a":[{"sku":null}]}]}`:            "Deep[0].a[0].sku: null cannot be a string",
		`{"deep_one":{"Named":{"On":null}}}`:         "deep_one.Named.On: null cannot be a bool",
		`{"deep_one":{"Named":null}}`:                "deep_one.Named: null cannot be a struct",
		`{"Left":1,"Free":{"a":null},"Amount":null}`: "Amount: null cannot be a int",
	} {
		err := aggregate.JSON.Unmarshal([]byte(data), new(Order))
		require.ErrorContains(t, err, says, data)
		assert.ErrorContains(t, err, "use a pointer", data)
	}
	for _, data := range []string{
		`{"Lines":null,"ByName":null,"Pointer":null,"Free":null,"Maybe":null,"At":null}`,
		`{"ByName":{"a":null},"Deep":[null,{"a":null}]}`,
		`{"Left":null,"unknown":null,"Unknown":{"Amount":null},"Free":[null,{"Amount":null}]}`,
		`{"sku":"null","Free":"Amount\":null"}`,
	} {
		assert.NoError(t, aggregate.JSON.Unmarshal([]byte(data), new(Order)), data)
	}
	assert.ErrorContains(t, aggregate.JSON.Unmarshal([]byte(`[1,null]`), new([]int)), "[1]: null cannot be a int")
	assert.NoError(t, aggregate.JSON.Unmarshal([]byte(`{"Name":"a","Children":[null],"ByName":null}`), new(tree)))
	assert.ErrorContains(t, aggregate.JSON.Unmarshal([]byte(`{"Name":"a","Children":[{"Children":[{"Name":null}]}]}`), new(tree)),
		"Children[0].Children[0].Name: null")
}

func TestJSONRefusesATargetThatIsNoPointer(t *testing.T) {
	t.Parallel()

	var invalid *json.InvalidUnmarshalError
	for _, target := range []any{nil, Account{}, (*Account)(nil)} {
		assert.ErrorAs(t, aggregate.JSON.Unmarshal([]byte(`{}`), target), &invalid, "%T", target)
	}
}

func TestJSONIgnoresFieldsOfNewerPrograms(t *testing.T) {
	t.Parallel()

	event, err := Accounts.Decode("account.deposited.v1", []byte(`{"Amount":1,"Branch":"north"}`))
	require.NoError(t, err)
	assert.Equal(t, Deposited{1}, event)
}

func TestJSONRefusesTextThatIsNotUTF8(t *testing.T) {
	t.Parallel()

	type inner struct{ Text string }
	type embedded struct{ Text string }
	const broken = "caf\xe9"
	for name, value := range map[string]any{
		"string":       broken,
		"field":        inner{broken},
		"pointer":      &inner{broken},
		"slice":        []inner{{"ok"}, {broken}},
		"array":        [1]string{broken},
		"map key":      map[string]int{broken: 1},
		"map value":    map[string]string{"a": broken},
		"any":          struct{ Free any }{broken},
		"embedded":     struct{ embedded }{embedded{broken}},
		"next to raw":  struct{ A, B any }{json.RawMessage(`"\ufffd"`), broken},
		"named string": renamed(broken),
	} {
		_, err := aggregate.JSON.Marshal(value)
		assert.ErrorContains(t, err, `"caf\xe9" is not valid UTF-8`, name)
	}
}

func TestJSONKeepsTextThatOnlyLooksReplaced(t *testing.T) {
	t.Parallel()

	for name, value := range map[string]any{
		"the replacement character itself": "\ufffd",
		"a backslash and letters":          `\ufffd`,
		"raw JSON with the escape":         json.RawMessage(`"\ufffd"`),
		"a field left out":                 struct{ Raw, Hidden any }{Raw: json.RawMessage(`"\ufffd"`)},
		"binary data":                      []byte("\xff"),
		"a type that encodes itself":       struct{ Raw, Hex any }{json.RawMessage(`"\ufffd"`), hexText("\xff")},
		"a field that is not encoded": struct {
			Raw    json.RawMessage
			Hidden string `json:"-"`
			inner  string
		}{json.RawMessage(`"\ufffd"`), "\xff", "\xff"},
	} {
		_, err := aggregate.JSON.Marshal(value)
		assert.NoError(t, err, name)
	}
}

func TestJSONRefusesNumbersItCannotWrite(t *testing.T) {
	t.Parallel()

	_, err := aggregate.JSON.Marshal(struct{ Rate float64 }{math.NaN()})
	var unsupported *json.UnsupportedValueError
	assert.ErrorAs(t, err, &unsupported)
}

// hexText can hold any bytes, since it encodes itself.
type hexText string

func (h hexText) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, []byte(h)), nil }
func (h *hexText) UnmarshalText(b []byte) error {
	text, err := hex.AppendDecode(nil, b)
	*h = hexText(text)
	return err
}

// optional decodes null as a value of its own.
type optional struct{ Set bool }

func (o *optional) UnmarshalJSON(data []byte) error {
	o.Set = string(data) != "null"
	return nil
}

// encoding/json encodes these types, but cannot decode them to the same values.
type (
	unexported     struct{ amount int }
	unexportedDeep struct{ Lines []struct{ price int } }
	hasFunc        struct{ F func() }
	hasChan        struct{ C map[string]chan int }
	hasComplex     struct{ C complex128 }
	hasInterface   struct{ Err error }
	structKeys     struct{ M map[struct{ A int }]int }
	bigByValue     struct{ N big.Int }
	bigInMap       struct{ M map[string]big.Int }
	sameName       struct {
		A int `json:"B"`
		B int
	}
	base     struct{ ID int }
	shadowed struct {
		base
		ID int
	}
	embedsPointer struct{ *base }
	embedsText    struct{ text }
	text          string
	pointerMethod struct{ amount int }
	embedsTime    struct {
		time.Time
		Owner string
	}
	embedsBig struct {
		*big.Int
		Owner string
	}
	embedsAddress struct {
		Port int
		netip.Addr
	}
	embedsGeneric[T any] struct {
		time.Time
		Owner T
	}
	hasEmbedsTime struct{ Lines []embedsTime }
	embedsLenient struct {
		Owner string
		lenient
	}
	embedsTwo struct {
		ownMethods[int]
		ownPointerMethods
	}
	embedsOnePointer struct{ *big.Int }
	ownEncoder       struct {
		time.Time
		Owner string
	}
	onlyEncodes        struct{ amount int }
	onlyEncodesPointer struct{ amount int }
	onlyEncodesText    struct{ amount int }
	decodesCopy        struct{ amount int }
	textKey            int
	copyKey            string
)

func (onlyEncodes) MarshalJSON() ([]byte, error)         { return []byte(`{"amount":1}`), nil }
func (*onlyEncodesPointer) MarshalJSON() ([]byte, error) { return []byte(`{"amount":1}`), nil }
func (onlyEncodesText) MarshalText() ([]byte, error)     { return []byte("1"), nil }
func (o ownEncoder) MarshalJSON() ([]byte, error)        { return json.Marshal(o.Owner) }
func (decodesCopy) MarshalJSON() ([]byte, error)         { return []byte("1"), nil }
func (decodesCopy) UnmarshalJSON([]byte) error           { return nil }
func (textKey) MarshalText() ([]byte, error)             { return []byte("1"), nil }
func (copyKey) UnmarshalText([]byte) error               { return nil }

// lenient reads more than it writes.
type lenient struct{ Amount int }

func (l *lenient) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &struct{ Amount *int }{&l.Amount})
}

// These types embed a type that encodes itself, and lose nothing.
type (
	onlyTime struct{ time.Time }
	markTime struct {
		time.Time
		Cached int `json:"-"`
	}
	ownMethods[T any] struct {
		time.Time
		Owner T
	}
	ownPointerMethods struct {
		time.Time
		Owner string
	}
	namedTime struct {
		Time  time.Time
		Owner string
	}
)

func (o ownMethods[T]) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"T": o.Time, "O": o.Owner})
}

func (o *ownMethods[T]) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &struct {
		T *time.Time
		O *T
	}{&o.Time, &o.Owner})
}

func (o *ownPointerMethods) MarshalJSON() ([]byte, error) {
	return ownMethods[string]{o.Time, o.Owner}.MarshalJSON()
}

func (o *ownPointerMethods) UnmarshalJSON(data []byte) error {
	var all ownMethods[string]
	err := all.UnmarshalJSON(data)
	o.Time, o.Owner = all.Time, all.Owner
	return err
}

func (e *pointerMethod) MarshalJSON() ([]byte, error)    { return json.Marshal(e.amount) }
func (e *pointerMethod) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &e.amount) }

func TestJSONReportsTypesThatWouldLoseSomething(t *testing.T) {
	t.Parallel()

	tests := []struct {
		value any
		says  string
	}{
		{unexported{}, "field amount is unexported, so JSON loses it: export it, or add the methods MarshalJSON and UnmarshalJSON to aggregate_test.unexported"},
		{&unexported{}, "field amount is unexported"},
		{unexportedDeep{}, "field Lines.price is unexported"},
		{map[string]*unexported{}, "field amount is unexported"},
		{hasFunc{}, "field F is a func(), which JSON cannot hold"},
		{hasChan{}, "field C is a chan int, which JSON cannot hold"},
		{hasComplex{}, "field C is a complex128, which JSON cannot hold"},
		{hasInterface{}, "field Err is the interface error, which JSON cannot decode: use a concrete type"},
		{structKeys{}, "field M has keys of type struct { A int }"},
		{bigByValue{}, "field N is a big.Int, whose marshalling method has a pointer receiver and is not called on a value: use a pointer to it"},
		{&bigInMap{}, "field M is a big.Int"},
		{struct {
			A int `json:"B"`
			B int `json:"it's"` //nolint:staticcheck // encoding/json does not take this name
		}{}, `field B has the same JSON name "B" as A`},
		{struct{ *Optional }{}, "field Optional is an embedded pointer to aggregate_test.Optional, of which JSON may write no field"},
		{struct{ *Ignored }{}, "field Ignored is an embedded pointer"},
		{struct{ Deep struct{ *Wrapped } }{}, "field Deep.Wrapped is an embedded pointer"},
		{sameName{}, `field B has the same JSON name "B" as A, so JSON loses one of them: rename one`},
		{shadowed{}, `field ID has the same JSON name "ID" as base.ID`},
		{embedsPointer{}, "field base is an embedded pointer to an unexported type"},
		{embedsText{}, "field text is unexported"},
		{pointerMethod{}, "it is a aggregate_test.pointerMethod, whose marshalling method has a pointer receiver"},
		{embedsTime{}, "it embeds time.Time, whose methods stand for all of it, so JSON loses the other fields: name the embedded field, " +
			"or add the methods MarshalJSON and UnmarshalJSON to aggregate_test.embedsTime"},
		{&embedsTime{}, "it embeds time.Time"},
		{struct {
			time.Time `json:"-"` // its methods stand for the struct nevertheless
			Owner     string
		}{}, "it embeds time.Time"},
		{embedsBig{}, "it embeds *big.Int"},
		{embedsAddress{}, "it embeds netip.Addr"},
		{embedsGeneric[int]{}, "it embeds time.Time"},
		{hasEmbedsTime{}, "field Lines embeds time.Time"},
		{func() {}, "it is a func(), which JSON cannot hold"},
		{embedsLenient{}, "it embeds aggregate_test.lenient, whose methods stand for all of it"},
		{&embedsLenient{}, "it embeds aggregate_test.lenient"},
		{embedsTwo{}, "field ownMethods.Time.wall is unexported"},
		{embedsOnePointer{}, "whose unmarshalling method has a value receiver or is that of an embedded pointer"},
		{ownEncoder{}, "it embeds time.Time"},
		{onlyEncodes{}, "it is a aggregate_test.onlyEncodes, which has a method that encodes it and none that decodes it: add UnmarshalJSON or UnmarshalText"},
		{&onlyEncodes{}, "has a method that encodes it and none that decodes it"},
		{&onlyEncodesPointer{}, "has a method that encodes it and none that decodes it"},
		{onlyEncodesText{}, "has a method that encodes it and none that decodes it"},
		{struct{ Deep []map[string]onlyEncodes }{}, "field Deep is a aggregate_test.onlyEncodes"},
		{decodesCopy{}, "whose unmarshalling method has a value receiver"},
		{&decodesCopy{}, "whose unmarshalling method has a value receiver"},
		{struct{ M json.Marshaler }{}, "field M is the interface json.Marshaler"},
		{map[textKey]int{}, "it has keys of type aggregate_test.textKey"},
		{map[copyKey]int{}, "it has keys of type aggregate_test.copyKey"},
		{map[bool]int{}, "it has keys of type bool"},
		{struct {
			A *level `json:",omitempty,string"`
		}{}, "field A has the option string"},
		{map[embedsTime]int{}, "it has keys that embed time.Time"},
		{map[ownMethods[int]]int{}, "it has keys that embed time.Time"},
		{ownPointerMethods{}, "whose marshalling method has a pointer receiver and is not called on a value"},
	}
	for _, test := range tests {
		t.Run(reflect.TypeOf(test.value).String(), func(t *testing.T) {
			t.Parallel()

			assert.ErrorContains(t, checkJSON(test.value), test.says)
		})
	}
}

type tree struct {
	Name     string
	Children []*tree
	ByName   map[string]tree
}

// Embedded pointers to Optional, Ignored and Wrapped may be encoded as nothing, and Written is not.
type (
	Optional struct {
		Max  int    `json:",omitempty"`
		Name string `json:"name,omitzero"`
	}
	Ignored struct {
		A int `json:"-"`
	}
	Wrapped struct{ Optional }
	Written struct {
		Optional
		At time.Time `json:",omitempty"` // a struct is never empty
	}
)

func TestJSONHasNothingAgainstTypesItKeeps(t *testing.T) {
	t.Parallel()

	type Line struct {
		SKU   string `json:"sku"`
		Price int64  `json:"price,string"`
	}
	for _, value := range []any{
		Account{},
		struct{ *Written }{},
		struct {
			*Optional `json:"optional"`
		}{},
		tree{},
		&bigByValue{}, &pointerMethod{}, "text", 1,
		onlyTime{},
		markTime{},
		ownMethods[int]{},
		&ownMethods[string]{}, &ownPointerMethods{},
		namedTime{},
		lenient{},
		[]string{},
		struct {
			base
			Line
			Nested   struct{ ID int }
			At       time.Time
			Big      *big.Int
			Bytes    []byte
			Raw      json.RawMessage
			Free     any
			ByNumber map[int]Line
			ByTime   map[time.Time]Line
			Array    [2]Line
			Left     func() `json:"-"`
			_        int
			marker   struct{}
		}{},
	} {
		assert.NoError(t, checkJSON(value), "%T", value)
	}
}

// The report must be true: types that it accepts survive, and types that it refuses do not.
func TestJSONReportAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()

	n, at := *big.NewInt(7), time.Unix(1, 0).UTC()
	for _, lossy := range []any{
		unexported{1},
		unexportedDeep{[]struct{ price int }{{1}}},
		bigByValue{n},
		bigInMap{map[string]big.Int{"a": n}},
		sameName{1, 2},
		shadowed{base{1}, 2},
		embedsPointer{&base{1}},
		embedsText{"a"},
		pointerMethod{1},
		embedsTime{at, "me"},
		embedsAddress{1, netip.IPv6Loopback()},
		embedsGeneric[int]{at, 1},
		hasEmbedsTime{[]embedsTime{{at, "me"}}},
		embedsLenient{"me", lenient{1}},
		&embedsLenient{"me", lenient{1}},
		embedsTwo{ownMethods[int]{at, 1}, ownPointerMethods{at, "me"}},
		ownEncoder{at, "me"},
		onlyEncodes{1},
		&onlyEncodes{1}, &onlyEncodesPointer{1},
		onlyEncodesText{1},
		decodesCopy{1},
		&decodesCopy{1},
		map[textKey]int{2: 1},
		map[copyKey]int{"a": 1},
		map[embedsTime]int{{at, "me"}: 1},
		map[ownMethods[int]]int{{at, 1}: 1},
		ownPointerMethods{at, "me"},
	} {
		assert.False(t, survivesJSON(lossy), "%T", lossy)
		assert.Error(t, checkJSON(lossy), "%T", lossy)
	}
	for _, kept := range []any{
		&bigByValue{n}, &pointerMethod{1},
		tree{"a", []*tree{{Name: "b"}}, map[string]tree{"c": {}}},
		struct{ base }{base{1}},
		onlyTime{at},
		ownMethods[int]{at, 1},
		&ownPointerMethods{at, "me"},
		namedTime{at, "me"},
		lenient{1},
		&lenient{1},
		struct{ lenient }{lenient{1}},
	} {
		assert.True(t, survivesJSON(kept), "%T", kept)
		assert.NoError(t, checkJSON(kept), "%T", kept)
	}
}

func TestDefinitionReportsWhatItsCodecWouldLose(t *testing.T) {
	t.Parallel()

	secrets := aggregate.Define[unexported]("secret", secretEvent{})
	err := secrets.Validate()
	require.ErrorContains(t, err, "state aggregate_test.unexported: field amount is unexported")
	require.ErrorContains(t, err, `event type "secret.kept.v1" (aggregate_test.secretEvent): field text is unexported`)

	assert.NoError(t, secrets.WithCodec(gobCodec{}).Validate(), "another codec may keep what JSON does not")
	assert.NoError(t, aggregate.Define[pointerMethod]("number", numberEvent{}).Validate(), "states are encoded through a pointer")
}

type secretEvent struct{ text string }

func (secretEvent) EventType() string   { return "secret.kept.v1" }
func (e secretEvent) Apply(*unexported) { _ = strings.Clone(e.text) }

type numberEvent struct{}

func (numberEvent) EventType() string      { return "number.v1" }
func (numberEvent) Apply(p *pointerMethod) { p.amount++ }

func checkJSON(value any) error {
	return aggregate.JSON.(aggregate.TypeChecker).CheckType(reflect.TypeOf(value))
}

func survivesJSON(value any) bool {
	data, err := json.Marshal(value)
	if err != nil {
		return false
	}
	target := reflect.New(reflect.TypeOf(value))
	return json.Unmarshal(data, target.Interface()) == nil && reflect.DeepEqual(value, target.Elem().Interface())
}
