package catalogue_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/catalogue"
)

func TestAnUpcasterReadsWhatIsStored(t *testing.T) {
	t.Parallel()
	before := configOf(define(placed{}))
	type (
		wrongName struct{ Client string }
		wrongType struct{ Customer int }
		otherCase struct {
			Customer string `json:"customer"`
		}
	)
	after := func(u aggregate.Upcaster) catalogue.Config {
		return configOf(define(placedV2{}, paid{}).WithUpcasters(u))
	}
	d := compare(t, before, after(aggregate.Upcast("order.placed.v1", func(wrongName) placedV2 { return placedV2{} })))
	assert.Equal(t, []string{
		`event type "order.placed.v1" of aggregate type "order": its upcaster reads the field "Client": stored events lack this field, so it has its zero value. ` +
			`To fix it, read the fields that stored events have; aggregates/order/events/order.placed.v1.json lists them.`,
	}, texts(d.Incompatible))
	d = compare(t, before, after(aggregate.Upcast("order.placed.v1", func(wrongType) placedV2 { return placedV2{} })))
	assert.Equal(t, []string{
		`event type "order.placed.v1" of aggregate type "order": its upcaster reads the field "Customer" as integer (int64): stored events have string. ` +
			`To fix it, read it with the type that stored events have.`,
	}, texts(d.Incompatible))
	d = compare(t, before, after(aggregate.Upcast("order.placed.v1", func(otherCase) placedV2 { return placedV2{} })))
	assert.Empty(t, d.Incompatible)

	type anything struct{ Customer any }
	for name, u := range map[string]aggregate.Upcaster{
		"any":        aggregate.Upcast("order.placed.v1", func(any) placedV2 { return placedV2{} }),
		"a map":      aggregate.Upcast("order.placed.v1", func(map[string]any) placedV2 { return placedV2{} }),
		"texts":      aggregate.Upcast("order.placed.v1", func(map[string]string) placedV2 { return placedV2{} }),
		"raw JSON":   aggregate.Upcast("order.placed.v1", func(json.RawMessage) placedV2 { return placedV2{} }),
		"any field":  aggregate.Upcast("order.placed.v1", func(anything) placedV2 { return placedV2{} }),
		"a pointer":  aggregate.Upcast("order.placed.v1", func(*otherCase) placedV2 { return placedV2{} }),
		"no content": aggregate.Upcast("order.placed.v1", func(struct{}) placedV2 { return placedV2{} }),
	} {
		assert.Empty(t, compare(t, before, after(u)).Incompatible, name)
	}
	d = compare(t, before, after(aggregate.Upcast("order.placed.v1", func(map[string]int) placedV2 { return placedV2{} })))
	require.Len(t, d.Incompatible, 1)
	assert.Equal(t, `its upcaster reads the field "Customer" as integer (int64)`, d.Incompatible[0].What)

	d = compare(t, before, after(aggregate.Rename("order.placed.v1", "order.placed.v2")))
	assert.Equal(t, []string{
		`event type "order.placed.v1" of aggregate type "order": the required field "Currency" was added: stored events lack it, and are read with its zero value. ` +
			`To fix it, make it optional by a tag if the zero value is right for them (json:"Currency,omitzero"), ` +
			`or use aggregate.Upcast("order.placed.v1", func(old placedV1) placedV2 { ... }) in place of aggregate.Rename.`,
	}, texts(d.Incompatible))
	d = compare(t, configOf(define(paid{})), configOf(define(settled{}).WithUpcasters(aggregate.Rename("order.paid.v1", "order.settled.v1"))))
	assert.Empty(t, d.Incompatible)
}

func TestAnUpcasterReturnsWhatIsReadNext(t *testing.T) {
	t.Parallel()
	before := configOf(define(placed{}))
	after := func(second ...aggregate.Upcaster) catalogue.Config {
		first := aggregate.Upcast("order.placed.v1", func(placed) put { return put{} })
		return configOf(define(paid{}, placedV2{}).WithUpcasters(append(second, first)...))
	}
	type wrong struct{ Customer int }
	next := func(of any) catalogue.Config {
		c := after(aggregate.Upcast("order.put.v1", func(stored) placedV2 { return placedV2{} }))
		c.As = map[reflect.Type]reflect.Type{reflect.TypeFor[put](): reflect.TypeFor[placed](), reflect.TypeFor[stored](): reflect.TypeOf(of)}
		return c
	}
	assert.Equal(t, []string{
		`event type "order.placed.v1" of aggregate type "order": its upcaster returns the field "Customer" as string, which is read as integer (int64): ` +
			`the events that it returns are read as catalogue_test.stored. To fix it, let it return catalogue_test.stored.`,
	}, texts(compare(t, before, next(wrong{})).Incompatible))
	assert.Empty(t, compare(t, before, next(struct{ Customer string }{})).Incompatible)
	assert.Empty(t, compare(t, before, next(struct{}{})).Incompatible, "upcasters may ignore fields")

	// The definition has another type for the name.
	c := configOf(define(put{}).WithUpcasters(aggregate.Upcast("order.placed.v1", func(placed) otherPut { return otherPut{} })))
	c.As = map[reflect.Type]reflect.Type{reflect.TypeFor[put](): reflect.TypeFor[struct{ Customer string }]()}
	assert.Equal(t, []string{
		`its upcaster returns the field "Client", which is not read`, `its upcaster returns events without the field "Customer"`,
	}, whats(compare(t, before, c).Incompatible))
}

type otherPut struct{ Client string }

func (otherPut) EventType() string { return "order.put.v1" }

func TestAnUpcasterMustAcceptAStoredNull(t *testing.T) {
	t.Parallel()
	before := placedAs(struct{ Customer *string }{})
	assert.Equal(t, []string{`its upcaster reads the field "Customer" as a type without null`},
		whats(compare(t, before, upcastOf(struct{ Customer string }{})).Incompatible))
	assert.Empty(t, compare(t, before, upcastOf(struct{ Customer *string }{})).Incompatible)
}

func TestAnotherResultOfAnUpcasterIsNoted(t *testing.T) {
	t.Parallel()
	dropped := compare(t, configOf(define(placed{}, paid{})), configOf(define(placed{}).WithUpcasters(aggregate.Drop("order.paid.v1"))))
	assert.Empty(t, dropped.Incompatible)
	assert.Equal(t, []string{
		`event type "order.paid.v1" of aggregate type "order": stored events of this type are ignored now: snapshots and read models were stored with their effect. ` +
			`To fix it, increase repository.Config.SnapshotSchema and rebuild the read models.`,
	}, texts(dropped.Notes))

	before := configOf(define(paid{}, settled{}).WithUpcasters(aggregate.Rename("order.done.v1", "order.paid.v1")))
	after := configOf(define(paid{}, settled{}).WithUpcasters(aggregate.Rename("order.done.v1", "order.settled.v1")))
	d := compare(t, before, after)
	assert.Empty(t, d.Incompatible)
	assert.Equal(t, []string{
		`event type "order.done.v1" of aggregate type "order": its upcaster returned order.paid.v1 and returns order.settled.v1: ` +
			`snapshots and read models were stored with the former result. To fix it, increase repository.Config.SnapshotSchema and rebuild the read models.`,
	}, texts(d.Notes))
}
