package catalogue_test

import (
	"bytes"
	"encoding/gob"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/protobuf"
	"github.com/millrace-dev/millrace/catalogue"
)

const newVersion = `give the changed type the name "order.placed.v2" and add ` +
	`aggregate.Upcast("order.placed.v1", func(old placedV1) placed { ... }) to Definition.WithUpcasters.`

func TestChangesOfFieldsThatAreIncompatible(t *testing.T) {
	t.Parallel()
	type line struct {
		Name string `json:"name"`
	}
	for name, test := range map[string]struct {
		before, after any
		want          []string
	}{
		"removed": {struct{ A, B string }{}, struct{ A string }{}, []string{
			`the field "B" was removed: stored events have it, and consumers that read it find nothing. To fix it, restore the field, accept the change if no program reads it, or ` + newVersion,
		}},
		"renamed": {struct{ A, B string }{}, struct{ A, C string }{}, []string{
			`the field "B" was removed, and "C" of the same type was added: stored events have "B", which is ignored, and lack "C". ` +
				`To fix it, restore the name by a tag (json:"B") if "C" is a new name of the same value; ` +
				`restore the field, and make "C" optional (json:"C,omitzero"), if it is another value; or ` + newVersion,
		}},
		"another case": {struct{ A, B string }{}, struct {
			A string
			B string `json:"b"`
		}{}, []string{
			`the field "B" is now written as "b": stored events have the former name: encoding/json reads both, but programs in other languages do not. ` +
				`To fix it, restore the name by a tag (json:"B"), or ` + newVersion,
		}},
		"anything": {struct{ A string }{}, struct{ A any }{}, []string{
			`the field "A" was string and is any JSON: stored events can be decoded, but consumers cannot rely on the former type any more. ` +
				`To fix it, restore the type, or ` + newVersion,
		}},
		"added": {struct{ A string }{}, struct {
			A string
			B int `json:"b"`
		}{}, []string{
			`the required field "b" was added: stored events lack it, and are read with its zero value. ` +
				`To fix it, make it optional by a tag if the zero value is right for them (json:"b,omitzero"), or ` + newVersion,
		}},
		"required": {struct {
			A string `json:",omitempty"`
		}{}, struct{ A string }{}, []string{
			`the field "A" is now required: stored events may lack it. To fix it, restore omitempty or omitzero in its tag, or ` + newVersion,
		}},
		"another type": {struct{ A string }{}, struct{ A int }{}, []string{
			`the field "A" was string and is integer (int64): stored events have the former type, which cannot be decoded or has another meaning. ` +
				`To fix it, restore the type, or ` + newVersion,
		}},
		"quoted": {struct{ A string }{}, struct {
			A int `json:",string"`
		}{}, []string{
			`the field "A" was string and is string (quoted int64): stored events have the former type, which cannot be decoded or has another meaning. ` +
				`To fix it, restore the type, or ` + newVersion,
		}},
		"not quoted": {struct {
			A int8 `json:",string"`
		}{}, struct{ A int }{}, []string{
			`the field "A" was string (quoted int8) and is integer (int64): stored events have the former type, which cannot be decoded or has another meaning. ` +
				`To fix it, restore the type, or ` + newVersion,
		}},
		"text": {struct{ A string }{}, struct{ A netip.Addr }{}, []string{
			`the field "A" was string and is string (text): stored events have the former type, which cannot be decoded or has another meaning. ` +
				`To fix it, restore the type, or ` + newVersion,
		}},
		"keys": {struct{ A map[string]int }{}, struct{ A map[netip.Addr]int }{}, []string{
			`the field "A" was map and is map with the keys text: stored events have the former type, which cannot be decoded or has another meaning. ` +
				`To fix it, restore the type, or ` + newVersion,
		}},
		"no null": {struct{ A *string }{}, struct{ A string }{}, []string{
			`the field "A" does not allow null any more: stored events may have null, which is refused or read as the zero value. To fix it, restore the pointer, or ` + newVersion,
		}},
		"nested": {struct{ Lines []line }{}, struct{ Lines []struct{} }{}, []string{
			`the field "Lines[].name" was removed: stored events have it, and consumers that read it find nothing. To fix it, restore the field, accept the change if no program reads it, or ` + newVersion,
		}},
		"whole": {struct{}{}, []int{}, []string{
			`the payload was object and is array: stored events have the former type, which cannot be decoded or has another meaning. To fix it, restore the type, or ` + newVersion,
		}},
		"two": {struct{ A, B string }{}, struct{}{}, []string{
			`the field "A" was removed: stored events have it, and consumers that read it find nothing. To fix it, restore the field, accept the change if no program reads it, or ` + newVersion,
			`the field "B" was removed: stored events have it, and consumers that read it find nothing. To fix it, restore the field, accept the change if no program reads it, or ` + newVersion,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := compare(t, placedAs(test.before), placedAs(test.after))
			for i := range test.want {
				test.want[i] = `event type "order.placed.v1" of aggregate type "order": ` + test.want[i]
			}
			assert.Equal(t, test.want, texts(d.Incompatible))
			for _, c := range d.Incompatible {
				assert.Equal(t, "aggregates/order/events/order.placed.v1.json", c.File)
			}
		})
	}
}

func TestTypesThatStoredValuesDoNotFit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before, after any
		want          []string // the differences; none if it is compatible
	}{
		"a larger integer":          {struct{ A int32 }{}, struct{ A int64 }{}, nil},
		"a larger signed integer":   {struct{ A uint32 }{}, struct{ A int64 }{}, nil},
		"a smaller integer":         {struct{ A int64 }{}, struct{ A int32 }{}, []string{`the field "A" was integer (int64) and is integer (int32)`}},
		"an unsigned integer":       {struct{ A int32 }{}, struct{ A uint64 }{}, []string{`the field "A" was integer (int32) and is integer (uint64)`}},
		"as large and signed":       {struct{ A uint64 }{}, struct{ A int64 }{}, []string{`the field "A" was integer (uint64) and is integer (int64)`}},
		"a larger float":            {struct{ A float32 }{}, struct{ A float64 }{}, nil},
		"a float":                   {struct{ A int }{}, struct{ A float64 }{}, []string{`the field "A" was integer (int64) and is number (double)`}},
		"a named type":              {struct{ A string }{}, struct{ A text }{}, nil},
		"a pointer":                 {struct{ A string }{}, struct{ A *string }{}, nil},
		"a time":                    {struct{ A string }{}, struct{ A time.Time }{}, []string{`the field "A" was string and is string (date-time)`}},
		"bytes":                     {struct{ A []byte }{}, struct{ A []uint16 }{}, []string{`the field "A" was string (base64) and is array`}},
		"anything":                  {struct{ A string }{}, struct{ A any }{}, []string{`the field "A" was string and is any JSON`}},
		"the elements of a list":    {struct{ A []string }{}, struct{ A []int }{}, []string{`the field "A[]" was string and is integer (int64)`}},
		"the values of a map":       {struct{ A map[string]string }{}, struct{ A map[string]int }{}, []string{`the field "A{}" was string and is integer (int64)`}},
		"the keys of a map":         {struct{ A map[string]int }{}, struct{ A map[int]int }{}, []string{`the field "A" was map and is map with the keys int64`}},
		"the length of an array":    {struct{ A [2]int }{}, struct{ A [3]int }{}, []string{`the field "A" was array of 2 and is array of 3`}},
		"an array":                  {struct{ A []int }{}, struct{ A [3]int }{}, []string{`the field "A" was array and is array of 3`}},
		"a struct instead of a map": {struct{ A map[string]int }{}, struct{ A struct{} }{}, []string{`the field "A" was map and is object`}},
		"a recursive type":          {chain{}, otherChain{}, []string{`the field "Next.Value" was string and is integer (int64)`}},
		"an optional field": {struct{ A string }{}, struct {
			A string
			B string `json:",omitzero"`
			C *int
			D []string
		}{}, nil},
		"a field that becomes optional": {struct{ A string }{}, struct {
			A string `json:",omitempty"`
		}{}, nil},
		"another order": {struct{ A, B string }{}, struct{ B, A string }{}, nil},
		"a value in place of a pointer that was written as null": {struct{ A *string }{}, struct {
			A string `json:",omitzero"`
		}{}, []string{`the field "A" does not allow null any more`}},
		"a value that reads null": {struct{ A *time.Time }{}, struct {
			A time.Time `json:",omitzero"`
		}{}, nil},
		"smaller keys": {struct{ A map[uint64]int }{}, struct{ A map[uint8]int }{}, []string{`the field "A" was map with the keys uint64 and is map with the keys uint8`}},
		"larger keys":  {struct{ A map[int8]int }{}, struct{ A map[int64]int }{}, nil},
		"elements without null": {struct{ A []*string }{}, struct {
			A []string `json:",omitzero"`
		}{}, []string{`the field "A[]" does not allow null any more`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := compare(t, placedAs(test.before), placedAs(test.after))
			var what []string
			for _, c := range d.Incompatible {
				what = append(what, c.What)
			}
			assert.Equal(t, test.want, what)
		})
	}
}

type (
	text  string
	chain struct {
		Next *link
	}
	link struct {
		Value string
		Next  *link
	}
	otherChain struct{ Next *otherLink }
	otherLink  struct {
		Value int
		Next  *otherLink
	}
)

func TestARemovedEventTypeNeedsAnUpcaster(t *testing.T) {
	t.Parallel()
	before := configOf(define(placed{}, paid{}))
	d := compare(t, before, configOf(define(paid{})))
	assert.Equal(t, []string{
		`event type "order.placed.v1" of aggregate type "order": the event type was removed, and no upcaster reads it: ` +
			`loads of aggregates with such events fail, and consumers do not handle them. To fix it, add an upcaster to Definition.WithUpcasters: ` +
			`aggregate.Upcast("order.placed.v1", func(old placedV1) NewEvent { ... }), or aggregate.Drop("order.placed.v1") if it has no meaning any more.`,
	}, texts(d.Incompatible))

	d = compare(t, before, configOf(define(placed{}, settled{})))
	assert.Equal(t, []string{
		`event type "order.paid.v1" of aggregate type "order": the event type was removed, and no upcaster reads it: ` +
			`loads of aggregates with such events fail, and consumers do not handle them. To fix it, ` +
			`add aggregate.Rename("order.paid.v1", "order.settled.v1") to Definition.WithUpcasters if that is its new name, or another upcaster for "order.paid.v1".`,
	}, texts(d.Incompatible))

	// The new type was there before.
	d = compare(t, configOf(define(placed{}, paid{}, settled{})), configOf(define(placed{}, settled{})))
	require.Len(t, d.Incompatible, 1)
	assert.Contains(t, d.Incompatible[0].Fix, `aggregate.Upcast("order.paid.v1", func(old paidV1) NewEvent { ... })`)

	type old struct{ Customer string }
	for name, u := range map[string]aggregate.Upcaster{
		"upcast": aggregate.Upcast("order.placed.v1", func(o old) placedV2 { return placedV2{o.Customer, "EUR"} }),
		"split":  aggregate.Split("order.placed.v1", func(old) (aggregate.Events[order], error) { return nil, nil }),
		"drop":   aggregate.Drop("order.placed.v1"),
		"raw":    aggregate.UpcastRaw("order.placed.v1", func([]byte) ([]aggregate.EncodedEvent, error) { return nil, nil }),
	} {
		after := configOf(define(placedV2{}, paid{}).WithUpcasters(u))
		d = compare(t, before, after)
		assert.Empty(t, d.Incompatible, name)
		assert.NotEmpty(t, d.Stale, name)

		d = compare(t, after, configOf(define(placedV2{}, paid{})))
		assert.Equal(t, []string{
			`event type "order.placed.v1" of aggregate type "order": its upcaster was removed: stored events of this type can no longer be read. ` +
				`To fix it, restore the upcaster, and keep it for as long as such events are stored.`,
		}, texts(d.Incompatible), name)
	}
}

func TestAnotherCodecIsIncompatible(t *testing.T) {
	t.Parallel()
	before, after := configOf(define(placed{})), configOf(define(placed{}).WithCodec(gobCodec{}))
	d := compare(t, before, after)
	assert.Equal(t, []string{
		`event type "order.placed.v1" of aggregate type "order": the codec was json and is catalogue_test.gobCodec: ` +
			`stored events can only be decoded by the codec that wrote them. To fix it, restore the codec, or give the changed type the name "order.placed.v2" and add ` +
			`aggregate.Upcast("order.placed.v1", func(old placedV1) placed { ... }) to Definition.WithUpcasters, with Upcaster.WithCodec and the former codec.`,
	}, texts(d.Incompatible))
	assert.Empty(t, compare(t, after, after).Incompatible)
	// JSON of types that are no messages.
	assert.Empty(t, compare(t, before, configOf(define(placed{}).WithCodec(protobuf.Codec{}))).Incompatible)
}

// gobCodec is a codec that a catalogue does not know.
type gobCodec struct{}

func (gobCodec) Marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	err := gob.NewEncoder(&out).Encode(v)
	return out.Bytes(), err
}

func (gobCodec) Unmarshal(data []byte, v any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(v)
}

func TestARemovedDefinitionIsReportedOnce(t *testing.T) {
	t.Parallel()
	d := compare(t, configOf(define(placed{}, paid{})), catalogue.Config{})
	assert.Equal(t, []string{
		`aggregate type "order": its definition was removed: stored events of its aggregates can no longer be read. To fix it, ` +
			`add the definition to Config.Definitions, or accept the change if all its aggregates were deleted.`,
	}, texts(d.Incompatible))
	assert.Equal(t, "aggregates/order", d.Incompatible[0].File)

	dir := write(t, configOf(define(placed{}, paid{})))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "aggregates", "order")))
	_, err := catalogue.Write(dir, catalogue.Config{})
	require.NoError(t, err, "the change was accepted")
}

func TestAChangedStateIsNoted(t *testing.T) {
	t.Parallel()
	type other struct{ Customer string }
	before, after := configOf(define(placed{})), configOf(define(placed{}))
	after.As = map[reflect.Type]reflect.Type{reflect.TypeFor[order](): reflect.TypeFor[other]()}
	d := compare(t, before, after)
	assert.Empty(t, d.Incompatible)
	assert.Equal(t, []string{
		`the state of aggregate type "order": the field "customer", the field "paid" changed: snapshots hold the former state. ` +
			`To fix it, increase repository.Config.SnapshotSchema, so that loads ignore these snapshots and replay the events; ` +
			`aggregates whose old events were truncated cannot be loaded then.`,
	}, texts(d.Notes))
	assert.Empty(t, compare(t, before, before).Notes)
}

func TestCompatibleChangesNeedOnlyNewFiles(t *testing.T) {
	t.Parallel()
	d := compare(t, configOf(define(placed{})), configOf(define(placed{}, paid{})))
	assert.Empty(t, d.Incompatible)
	assert.Equal(t, []string{"README.md", "aggregates/order.md", "aggregates/order/events/order.paid.v1.json", "asyncapi.json"}, d.Stale)
	assert.False(t, d.Missing)
}

func TestAnIncompatibleCatalogueIsNotWritten(t *testing.T) {
	t.Parallel()
	dir := write(t, placedAs(struct{ A, B string }{}))
	before := readFile(t, dir, "aggregates/order/events/order.placed.v1.json")
	after := placedAs(struct{ A string }{})
	_, err := catalogue.Write(dir, after)
	var incompatible *catalogue.IncompatibleError
	require.ErrorAs(t, err, &incompatible)
	assert.Len(t, incompatible.Changes, 1)
	assert.EqualError(t, err, "catalogue: incompatible with the catalogue in "+dir+", so no file was written:\n- "+incompatible.Changes[0].String()+
		"\nTo accept all changes of these files, for example because nothing of their types was ever stored or sent, delete them, and write the catalogue again: "+
		filepath.Join(dir, "aggregates", "order", "events", "order.placed.v1.json"))
	assert.Equal(t, before, readFile(t, dir, "aggregates/order/events/order.placed.v1.json"))

	require.NoError(t, os.Remove(filepath.Join(dir, filepath.FromSlash(incompatible.Changes[0].File))))
	_, err = catalogue.Write(dir, after)
	require.NoError(t, err, "the change was accepted")
	assert.NotEqual(t, before, readFile(t, dir, "aggregates/order/events/order.placed.v1.json"))
}

func TestAFileThatWasEditedIsReported(t *testing.T) {
	t.Parallel()
	c, err := catalogue.New(configOf(define(placed{})))
	require.NoError(t, err)
	for text, want := range map[string]string{
		`{"type": "object"}`:                  `it lacks the keyword x-millrace with a known kind`,
		`{`:                                   `unexpected end of JSON input`,
		`{"properties": [1]}`:                 `not an object`,
		`{"x-millrace": {"kind": "nothing"}}`: `it lacks the keyword x-millrace with a known kind`,
		`null`:                                `it lacks the keyword x-millrace with a known kind`,
	} {
		dir := write(t, configOf(define(placed{})))
		name := "aggregates/order/events/order.placed.v1.json"
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o600))
		_, err := c.Compare(dir)
		var file *catalogue.FileError
		require.ErrorAs(t, err, &file, text)
		assert.EqualError(t, err, "catalogue: "+name+" is not a file of a catalogue: restore it from version control, "+
			"or delete it and write the catalogue again: "+want)
		_, err = c.Write(dir)
		require.ErrorAs(t, err, &file)
	}
}

func TestWriteRemovesFilesOfRemovedEventsAlone(t *testing.T) {
	t.Parallel()
	dir := write(t, configOf(define(placed{}, paid{})))
	own := filepath.Join(dir, "aggregates", "notes.md")
	require.NoError(t, os.WriteFile(own, []byte("# Notes\n"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(dir, "aggregates", "order", "events", "order.paid.v1.json")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "aggregates", "old.md"), []byte(readFile(t, dir, "aggregates/order.md")), 0o600))

	c, err := catalogue.New(configOf(define(placed{})))
	require.NoError(t, err)
	_, err = c.Write(dir)
	require.NoError(t, err)
	assert.FileExists(t, own)
	assert.NoFileExists(t, filepath.Join(dir, "aggregates", "old.md"))
	d, err := c.Compare(dir)
	require.NoError(t, err)
	assert.Empty(t, d)
}

func TestPagesOfOthersAreNotOverwritten(t *testing.T) {
	t.Parallel()
	c, err := catalogue.New(configOf(define(placed{})))
	require.NoError(t, err)
	for _, name := range []string{"README.md", "aggregates/order.md"} {
		dir := write(t, configOf(define(placed{})))
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte("# Shop\n"), 0o600))
		_, err = c.Write(dir)
		assert.EqualError(t, err, "catalogue: "+name+" is not a file of a catalogue: restore it from version control, "+
			"or delete it and write the catalogue again: it lacks the mark of this package: use a folder that has only the catalogue")
		assert.Equal(t, "# Shop\n", readFile(t, dir, name))
	}
}

func TestLineEndsDoNotMatter(t *testing.T) {
	t.Parallel()
	dir := write(t, configOf(define(placed{})))
	name := filepath.Join(dir, "aggregates", "order.md")
	data := bytes.ReplaceAll([]byte(readFile(t, dir, "aggregates/order.md")), []byte("\n"), []byte("\r\n"))
	require.NoError(t, os.WriteFile(name, data, 0o600))
	c, err := catalogue.New(configOf(define(placed{})))
	require.NoError(t, err)
	d, err := c.Compare(dir)
	require.NoError(t, err)
	assert.Empty(t, d)
}
