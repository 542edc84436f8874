package catalogue_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/protobuf"
	"github.com/millrace-dev/millrace/catalogue"
)

// stored is what an upcaster reads. Config.As replaces it.
type stored struct{}

func upcasts(upcasters ...aggregate.Upcaster) catalogue.Config {
	return configOf(define(placedV2{}, settled{}).WithUpcasters(upcasters...))
}

// upcastOf is a configuration in which an upcaster reads order.placed.v1 as the JSON of a Go type.
func upcastOf(reads any) catalogue.Config {
	c := upcasts(aggregate.Upcast("order.placed.v1", func(stored) placedV2 { return placedV2{} }))
	c.As = map[reflect.Type]reflect.Type{reflect.TypeFor[stored](): reflect.TypeOf(reads)}
	return c
}

// history writes catalogues into one folder, each after the one before.
func history(t *testing.T, configs ...catalogue.Config) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "events")
	for _, c := range configs {
		_, err := catalogue.Write(dir, c)
		require.NoError(t, err)
		assert.Empty(t, comparedWith(t, dir, c), "the files are up to date once they are written")
	}
	return dir
}

func comparedWith(t *testing.T, dir string, c catalogue.Config) catalogue.Difference {
	t.Helper()
	of, err := catalogue.New(c)
	require.NoError(t, err)
	d, err := of.Compare(dir)
	require.NoError(t, err)
	return d
}

// changes returns what is incompatible with a folder.
func changes(t *testing.T, dir string, c catalogue.Config) []string {
	t.Helper()
	return whats(comparedWith(t, dir, c).Incompatible)
}

func whats(changes []catalogue.Change) (what []string) {
	for _, c := range changes {
		what = append(what, c.What)
	}
	return what
}

func TestACommittedUpcasterMustReadWhatIsStored(t *testing.T) {
	t.Parallel()
	type (
		event    struct{ Receipt, Note string }
		receipt  struct{ Receipt string }
		number   struct{ Receipt int }
		tag      struct{ Number string }
		both     struct{ Receipt, Note string }
		wrong    struct{ Note int }
		optional struct{ Receipt *string }
	)
	dir := history(t, placedAs(event{}), upcastOf(receipt{}))
	for name, test := range map[string]struct {
		reads       any
		want, notes []string
	}{
		"the same":     {receipt{}, nil, nil},
		"another type": {number{}, []string{`its upcaster reads the field "Receipt" as integer (int64)`}, nil},
		"another name": {tag{}, []string{`its upcaster reads the field "Number"`}, []string{`its upcaster no longer reads the field "Receipt"`}},
		"more fields":  {both{}, nil, nil},
		"more fields with another type": {
			wrong{}, []string{`its upcaster reads the field "Note" as integer (int64)`}, []string{`its upcaster no longer reads the field "Receipt"`},
		},
		"no field":  {struct{}{}, nil, []string{`its upcaster no longer reads the field "Receipt"`}},
		"anything":  {map[string]any{}, nil, nil},
		"a pointer": {optional{}, nil, nil},
	} {
		d := comparedWith(t, dir, upcastOf(test.reads))
		assert.Equal(t, test.want, whats(d.Incompatible), name)
		assert.Equal(t, test.notes, whats(d.Notes), name)
	}
	d := comparedWith(t, dir, upcastOf(tag{}))
	assert.Equal(t, []string{
		`event type "order.placed.v1" of aggregate type "order": its upcaster reads the field "Number": stored events lack this field, so it has its zero value. ` +
			`To fix it, read the fields that stored events have; x-stored in aggregates/order/events/order.placed.v1.json lists them.`,
	}, texts(d.Incompatible))
	assert.Equal(t, []string{
		`event type "order.placed.v1" of aggregate type "order": its upcaster no longer reads the field "Receipt": the events that it returns lack the value of this field. ` +
			`To fix it, read the field again if it was removed by mistake; otherwise increase repository.Config.SnapshotSchema and rebuild the read models.`,
	}, texts(d.Notes))
}

func TestTheStoredFormOutlivesItsReaders(t *testing.T) {
	t.Parallel()
	type (
		receipt struct{ Receipt string }
		number  struct{ Receipt int }
		more    struct{ Receipt, Other string }
	)
	want := []string{`its upcaster reads the field "Receipt" as integer (int64)`}
	drop := upcasts(aggregate.Drop("order.placed.v1"))
	raw := upcasts(aggregate.UpcastRaw("order.placed.v1", func([]byte) ([]aggregate.EncodedEvent, error) { return nil, nil }))
	few := upcastOf(struct{}{})
	rename := configOf(define(put{}).WithUpcasters(aggregate.Rename("order.placed.v1", "order.put.v1")))
	rename.As = map[reflect.Type]reflect.Type{reflect.TypeFor[put](): reflect.TypeFor[receipt]()}
	for name, between := range map[string][]catalogue.Config{
		"drop": {drop}, "raw": {raw}, "few fields": {few}, "drop, then few fields": {drop, few},
		"not in the catalogue before": {upcastOf(receipt{}), drop, few, drop},
		"rename":                      {rename},
		"a rename that was the first in the catalogue": {rename},
	} {
		begin := []catalogue.Config{placedAs(receipt{})}
		if len(between) == 4 || name == "a rename that was the first in the catalogue" {
			begin = nil
		}
		dir := history(t, append(begin, between...)...)
		changed := upcastOf(number{})
		if between[0].As[reflect.TypeFor[put]()] != nil {
			changed = configOf(define(placedV2{}, put{}).WithUpcasters(aggregate.Upcast("order.placed.v1", func(stored) placedV2 { return placedV2{} })))
			changed.As = map[reflect.Type]reflect.Type{reflect.TypeFor[stored](): reflect.TypeFor[number](), reflect.TypeFor[put](): reflect.TypeFor[receipt]()}
		}
		assert.Equal(t, want, changes(t, dir, changed), name)
		if begin != nil && between[0].As[reflect.TypeFor[put]()] == nil {
			assert.Equal(t, []string{`its upcaster reads the field "Other"`}, changes(t, dir, upcastOf(more{})), name)
			assert.Empty(t, changes(t, dir, upcastOf(receipt{})), name)
		}
	}
}

type put struct{}

func (put) EventType() string { return "order.put.v1" }
func (put) Apply(*order)      {}

func TestANestedTypeOfAnOldEventMustNotChange(t *testing.T) {
	t.Parallel()
	type (
		address  struct{ City string }
		changed  struct{ City struct{ Name string } }
		event    struct{ To address }
		reads    struct{ To address }
		readsNow struct{ To changed }
	)
	dir := history(t, placedAs(event{}), upcastOf(reads{}))
	assert.Equal(t, []string{`its upcaster reads the field "To.City" as object`}, changes(t, dir, upcastOf(readsNow{})))
}

func TestARenamedEventIsReadByItsNewType(t *testing.T) {
	t.Parallel()
	type receipt struct{ Receipt string }
	type number struct{ Receipt int }
	renamed := func(of any) catalogue.Config {
		c := configOf(define(put{}).WithUpcasters(aggregate.Rename("order.placed.v1", "order.put.v1")))
		c.As = map[reflect.Type]reflect.Type{reflect.TypeFor[put](): reflect.TypeOf(of)}
		return c
	}
	dir := history(t, placedAs(receipt{}), renamed(receipt{}))
	assert.Equal(t, []string{
		`the field "Receipt" was string and is integer (int64)`, `the field "Receipt" was string and is integer (int64)`,
	}, changes(t, dir, renamed(number{})), "of both stored names")

	// A renamed event is read by the upcaster of its new name.
	c := configOf(define(placedV2{}).WithUpcasters(aggregate.Rename("order.placed.v1", "order.put.v1"),
		aggregate.Upcast("order.put.v1", func(stored) placedV2 { return placedV2{} })))
	c.As = map[reflect.Type]reflect.Type{reflect.TypeFor[stored](): reflect.TypeFor[number]()}
	assert.Equal(t, []string{
		`its upcaster reads the field "Receipt" as integer (int64)`, `its upcaster reads the field "Receipt" as integer (int64)`,
	}, changes(t, dir, c))
	c.As = map[reflect.Type]reflect.Type{reflect.TypeFor[stored](): reflect.TypeFor[receipt]()}
	assert.Empty(t, changes(t, dir, c))
}

func TestAnEventTypeThatIsUsedAgainReadsWhatIsStored(t *testing.T) {
	t.Parallel()
	type number struct{ Customer int }
	dir := history(t, configOf(define(placed{})), upcasts(aggregate.Drop("order.placed.v1")))
	assert.Equal(t, []string{`the field "Customer" was string and is integer (int64)`}, changes(t, dir, placedWith(number{})))
	assert.Empty(t, changes(t, dir, placedWith(struct{ Customer string }{})))
}

func placedWith(of any) catalogue.Config {
	c := placedAs(of)
	c.Definitions = configOf(define(placed{}, placedV2{}, settled{})).Definitions
	return c
}

// A catalogue that is written when the upcaster exists already knows only what the upcaster reads.
func TestAnUpcasterWithoutAKnownStoredForm(t *testing.T) {
	t.Parallel()
	type (
		receipt struct{ Receipt string }
		number  struct{ Receipt int }
		tag     struct{ Number string }
		both    struct{ Receipt, Note string }
	)
	dir := history(t, upcastOf(receipt{}))
	assert.NotContains(t, readFile(t, dir, "aggregates/order/events/order.placed.v1.json"), "x-stored")
	assert.Equal(t, []string{`its upcaster reads the field "Receipt" as integer (int64)`}, changes(t, dir, upcastOf(number{})))
	assert.Equal(t, []string{`its upcaster reads the field "Number" in place of the field "Receipt"`}, changes(t, dir, upcastOf(tag{})))
	d := comparedWith(t, dir, upcastOf(both{}))
	assert.Empty(t, d.Incompatible)
	assert.Equal(t, []string{
		`event type "order.placed.v1" of aggregate type "order": its upcaster now reads the field "Note": the catalogue does not know whether stored events have this field. ` +
			`To fix it, compare it with stored events.`,
	}, texts(d.Notes))

	// All fields that upcasters have read are known.
	drop := upcasts(aggregate.Drop("order.placed.v1"))
	dir = history(t, upcastOf(receipt{}), upcastOf(both{}), upcastOf(receipt{}), drop, upcastOf(receipt{}))
	d = comparedWith(t, dir, upcastOf(both{}))
	assert.Empty(t, d.Incompatible)
	assert.Empty(t, d.Notes)
	assert.Equal(t, []string{`its upcaster reads the field "Note" as integer (int64)`}, changes(t, dir, upcastOf(struct{ Note int }{})))
}

func TestAnUpcasterDecodesByTheCodecOfStoredEvents(t *testing.T) {
	t.Parallel()
	old := aggregate.Upcast("order.placed.v1", func(stored) placedV2 { return placedV2{} })
	now := func(u aggregate.Upcaster) catalogue.Config {
		return configOf(define(placedV2{}, settled{}).WithCodec(gobCodec{}).WithUpcasters(u))
	}
	dir := history(t, configOf(define(placed{})), upcasts(old))
	d := comparedWith(t, dir, now(old))
	require.NotEmpty(t, d.Incompatible)
	assert.Equal(t, `event type "order.placed.v1" of aggregate type "order": its upcaster decodes by the codec catalogue_test.gobCodec: `+
		`stored events can only be decoded by the codec that wrote them: json. To fix it, pass the former codec to Upcaster.WithCodec.`, d.Incompatible[0].String())
	for _, change := range comparedWith(t, dir, now(old.WithCodec(aggregate.JSON))).Incompatible {
		assert.NotContains(t, change.Subject, "order.placed.v1")
	}
}

func TestTheStoredFormIsInTheFile(t *testing.T) {
	t.Parallel()
	dir := history(t, configOf(define(placed{})), upcasts(aggregate.Drop("order.placed.v1")))
	data, err := os.ReadFile(filepath.Join(dir, "aggregates", "order", "events", "order.placed.v1.json"))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"x-millrace": map[string]any{"kind": "event", "aggregate": "order", "event": "order.placed.v1", "codec": "json", "goType": "catalogue_test.placed"},
		"type":       "object", "required": []any{"Customer"}, "properties": map[string]any{"Customer": map[string]any{"type": "string"}},
	}, readJSON(t, data)["x-stored"])
}

func TestASharedTypeMayGetOptionalFields(t *testing.T) {
	t.Parallel()
	type (
		money    struct{ Amount int }
		optional struct {
			Amount int
			Note   string `json:",omitzero"`
		}
		required struct {
			Amount int
			Note   string
		}
		event         struct{ Price money }
		withOptional  struct{ Price optional }
		withRequired  struct{ Price required }
		otherOptional struct {
			Price money
			Other string `json:",omitzero"`
		}
	)
	dir := history(t, placedAs(event{}), upcastOf(event{}))
	d := comparedWith(t, dir, upcastOf(withOptional{}))
	assert.Empty(t, d.Incompatible)
	assert.Equal(t, []string{
		`event type "order.placed.v1" of aggregate type "order": its upcaster now reads the field "Price.Note": stored events lack this field, so it has its zero value. ` +
			`To fix it, read them as a type of their own if this value is not right.`,
	}, texts(d.Notes))
	assert.Equal(t, []string{`its upcaster reads the field "Price.Note"`}, changes(t, dir, upcastOf(withRequired{})))
	assert.Equal(t, []string{`its upcaster reads the field "Other"`}, changes(t, dir, upcastOf(otherOptional{})))
	history(t, placedAs(event{}), upcastOf(event{}), upcastOf(withOptional{})) // it is noted once
}

func TestAnUpcasterMayReadTheCurrentType(t *testing.T) {
	t.Parallel()
	type (
		before  struct{ Customer string }
		current struct {
			Customer string
			Note     string `json:",omitzero"`
		}
	)
	c := upcasts(aggregate.Upcast("order.placed.v1", func(old placedV2) placedV2 { return old }))
	c.As = map[reflect.Type]reflect.Type{reflect.TypeFor[placedV2](): reflect.TypeFor[current]()}
	d := comparedWith(t, history(t, placedAs(before{})), c)
	assert.Empty(t, d.Incompatible)
	assert.Equal(t, []string{`its upcaster now reads the field "Note"`}, whats(d.Notes))
}

// The fields of a struct without a name are not added to what is known, and still noted once.
func TestANestedFieldIsNotedOnce(t *testing.T) {
	t.Parallel()
	type (
		one struct{ To struct{ City string } }
		two struct{ To struct{ City, Zip string } }
	)
	dir := history(t, upcastOf(one{}))
	assert.Equal(t, []string{`its upcaster now reads the field "To.Zip"`}, whats(comparedWith(t, dir, upcastOf(two{})).Notes))
	history(t, upcastOf(one{}), upcastOf(two{}))
}

func TestAnUpcasterOfMessagesReadsTheFieldsThatAreStored(t *testing.T) {
	t.Parallel()
	config := func(definition aggregate.Definition[note]) catalogue.Config {
		return configOf(definition.WithCodec(protobuf.Codec{}))
	}
	dir := history(t, config(aggregate.Define[note]("note", noted{})),
		config(aggregate.Define[note]("note", notedV2{}).WithUpcasters(aggregate.Upcast("noted", func(*structpb.Struct) notedV2 { return notedV2{} }))))
	got := changes(t, dir, config(aggregate.Define[note]("note", notedV2{}).WithUpcasters(
		aggregate.Upcast("noted", func(*durationpb.Duration) notedV2 { return notedV2{} }))))
	assert.Equal(t, []string{`its upcaster reads the field "fields" as int64`}, got)
}

type notedV2 struct{ *structpb.Struct }

func (notedV2) EventType() string { return "noted.v2" }
func (notedV2) Apply(*note)       {}
