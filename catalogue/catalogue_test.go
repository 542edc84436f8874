package catalogue_test

import (
	"encoding/json"
	"fmt"
	"image"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/protobuf"
	"github.com/millrace-dev/millrace/catalogue"
)

// shop is a configuration with everything that a catalogue can contain.
func shop() catalogue.Config {
	type (
		upcastOnly struct{ Name string }
		placedV0   struct {
			Client string
			Only   upcastOnly
		}
	)
	return catalogue.Config{
		Title: "Shop", Version: "2.1.0", Description: "An online shop.",
		Definitions: []aggregate.AnyDefinition{
			define(placed{}, &lined{}).WithUpcasters(
				aggregate.Upcast("order.placed.v0", func(old placedV0) placed { return placed{old.Client} }),
				aggregate.Rename("order.put.v1", "order.placed.v1"),
				aggregate.Drop("order.viewed.v1"),
			),
			aggregate.Define[note]("note|s", noted{}).WithCodec(protobuf.Codec{}),
			aggregate.Define[gobbed]("gobbed", gobbed{}).WithCodec(gobCodec{}),
			aggregate.Define[parcel]("parcel", moved{}),
		},
		Channels: []catalogue.Channel{
			{Name: "public", Address: "shop.public", Title: "Public messages", Description: "What others may read.", Messages: []catalogue.Message{
				{Name: "OrderPlaced", Type: reflect.TypeFor[publicPlaced](), Title: "An order was placed", Description: "Sent once."},
				{Name: "OrderPlaced", Version: 2, Type: reflect.TypeFor[*publicPlaced]()},
			}},
			{Name: "commands", Receives: true, Messages: []catalogue.Message{{Name: "Place", Type: reflect.TypeFor[placed]()}}},
		},
	}
}

type (
	// Point has the name of image.Point.
	Point struct {
		Name string `json:"name" description:"As printed on the map."`
	}
	lined struct {
		Lines []Point   `json:"lines"`
		Sub   *lined    `json:"sub,omitempty"`
		At    time.Time `json:"at"`
		Size  struct {
			Width int `json:"width"`
		} `json:"size"`
	}
	parcel       struct{}
	moved        struct{ To image.Point }
	note         struct{ *structpb.Struct }
	noted        struct{ *structpb.Struct }
	gobbed       struct{ N int }
	publicPlaced struct {
		Lines []Point `json:"lines"`
	}
)

// The event type is also that of another aggregate.
func (moved) EventType() string { return "order.placed.v1" }
func (moved) Apply(*parcel)     {}

func (*lined) EventType() string     { return "order.lined.v1" }
func (*lined) Apply(*order)          {}
func (noted) EventType() string      { return "noted" }
func (noted) Apply(*note)            {}
func (gobbed) EventType() string     { return "Gobbed" }
func (g gobbed) Apply(state *gobbed) { *state = g }

func filesOf(t *testing.T, c catalogue.Config) map[string]string {
	t.Helper()
	of, err := catalogue.New(c)
	require.NoError(t, err)
	files, err := of.Files()
	require.NoError(t, err)
	texts := map[string]string{}
	for name, data := range files {
		texts[name] = string(data)
	}
	return texts
}

func TestTheFilesOfACatalogue(t *testing.T) {
	t.Parallel()
	files := filesOf(t, shop())
	assert.Equal(t, []string{
		"README.md",
		"aggregates/gobbed.md", "aggregates/gobbed/events/Gobbed.json", "aggregates/gobbed/state.json",
		"aggregates/note%7Cs.md", "aggregates/note%7Cs/events/noted.json", "aggregates/note%7Cs/state.json",
		"aggregates/order.md", "aggregates/order/events/order.lined.v1.json", "aggregates/order/events/order.placed.v0.json",
		"aggregates/order/events/order.placed.v1.json", "aggregates/order/events/order.put.v1.json",
		"aggregates/order/events/order.viewed.v1.json", "aggregates/order/state.json",
		"aggregates/parcel.md", "aggregates/parcel/events/order.placed.v1.json", "aggregates/parcel/state.json",
		"asyncapi.json",
		"channels/commands.md", "channels/commands/Place.v1.json",
		"channels/public.md", "channels/public/OrderPlaced.v1.json", "channels/public/OrderPlaced.v2.json",
	}, slices.Sorted(maps.Keys(files)))
	for name, text := range files {
		if strings.HasSuffix(name, ".json") && name != "asyncapi.json" {
			var s jsonschema.Schema
			require.NoError(t, json.Unmarshal([]byte(text), &s), name)
			assert.Equal(t, "https://json-schema.org/draft/2020-12/schema", s.Schema, name)
			_, err := s.Resolve(nil)
			assert.NoError(t, err, name)
		}
	}
	for range 10 {
		require.Equal(t, files, filesOf(t, shop()), "the files do not depend on chance")
	}
}

func TestAPageDescribesAnAggregate(t *testing.T) {
	t.Parallel()
	page := filesOf(t, shop())["aggregates/order.md"]
	assert.Equal(t, `# order

<!-- Written by package catalogue of Millrace. Do not edit. -->

The events of the aggregates of type `+"`order`"+`.

## order.placed.v1

Go type `+"`catalogue_test.placed`"+`, [schema](order/events/order.placed.v1.json).

| field | type | present |
|---|---|---|
| `+"`Customer`"+` | string | always |

## order.lined.v1

Go type `+"`catalogue_test.lined`"+`, [schema](order/events/order.lined.v1.json).

| field | type | present |
|---|---|---|
| `+"`lines`"+` | list of [catalogue\_test.Point](#catalogue_testpoint) or null | optional |
| `+"`sub`"+` | [lined](#lined) or null | optional |
| `+"`at`"+` | string (date-time) | always |
| `+"`size`"+` | object | always |
| `+"`size.width`"+` | integer (int64) | always |

## Event types that are upcast

Programs no longer write these event types. The tables list the fields that programs read.

### order.placed.v0

Stored events of this type are read as order.placed.v1.

Go type `+"`catalogue_test.placedV0`"+`, [schema](order/events/order.placed.v0.json).

| field | type |
|---|---|
| `+"`Client`"+` | string |
| `+"`Only`"+` | [upcastOnly](#upcastonly) |

### order.put.v1

Stored events of this type are read as order.placed.v1, with the same payload.

[Schema](order/events/order.put.v1.json).

### order.viewed.v1

Stored events of this type are ignored.

[Schema](order/events/order.viewed.v1.json).

## State

Go type `+"`catalogue_test.order`"+`, [schema](order/state.json).

| field | type | present |
|---|---|---|
| `+"`customer`"+` | string | always |
| `+"`paid`"+` | boolean | always |

## Types

### catalogue\_test.Point

| field | type | present | description |
|---|---|---|---|
| `+"`name`"+` | string | always | As printed on the map. |

### lined

| field | type | present |
|---|---|---|
| `+"`lines`"+` | list of [catalogue\_test.Point](#catalogue_testpoint) or null | optional |
| `+"`sub`"+` | [lined](#lined) or null | optional |
| `+"`at`"+` | string (date-time) | always |
| `+"`size`"+` | object | always |
| `+"`size.width`"+` | integer (int64) | always |

### upcastOnly

| field | type |
|---|---|
| `+"`Name`"+` | string |
`, page)
}

func TestAPageDescribesAChannel(t *testing.T) {
	t.Parallel()
	page := filesOf(t, shop())["channels/public.md"]
	assert.Contains(t, page, "Public messages\n\nWhat others may read.\n\nThe messages are sent. Address: `shop.public`.\n")
	assert.Contains(t, page, "## OrderPlaced version 1\n\nAn order was placed\n\nSent once.\n\nGo type `catalogue_test.publicPlaced`, [schema](public/OrderPlaced.v1.json).\n")
	assert.Contains(t, filesOf(t, shop())["README.md"], "| [public](channels/public.md) | `shop.public` | sent | `OrderPlaced.v1`, `OrderPlaced.v2` |\n")
	assert.Contains(t, filesOf(t, shop())["README.md"], "| [commands](channels/commands.md) | `commands` | received | `Place.v1` |\n")
	assert.Contains(t, filesOf(t, shop())["README.md"], "| [note\\|s](aggregates/note%257Cs.md) | `noted` |\n")
}

// Types with the same name are told apart by their packages.
func TestTypesOfTheSameNameHaveTheirPackages(t *testing.T) {
	t.Parallel()
	files := filesOf(t, shop())
	assert.Contains(t, files["aggregates/order/events/order.lined.v1.json"], `"$ref": "#/$defs/catalogue_test.Point"`)
	assert.Contains(t, files["aggregates/parcel/events/order.placed.v1.json"], `"$ref": "#/$defs/image.Point"`)
	schemas := readJSON(t, []byte(files["asyncapi.json"]))["components"].(map[string]any)["schemas"].(map[string]any)
	assert.Contains(t, schemas, "types.catalogue_test.Point")
	assert.Contains(t, schemas, "types.image.Point")
	assert.NotContains(t, schemas, "types.upcastOnly", "no channel has it")
	assert.NotContains(t, files["aggregates/order/events/order.placed.v0.json"], `"required"`, "an upcaster reads what there is")
}

func TestProtocolBuffersAreDescribedByTheirFields(t *testing.T) {
	t.Parallel()
	files := filesOf(t, shop())
	s := readJSON(t, []byte(files["aggregates/note%7Cs/events/noted.json"]))
	assert.Equal(t, "The binary form of the Protocol Buffers message google.protobuf.Struct. It is not JSON.", s["description"])
	assert.NotContains(t, s, "type")
	p := s["x-protobuf"].(map[string]any)
	assert.Equal(t, "google.protobuf.Struct", p["message"])
	messages := p["messages"].([]any)
	require.Len(t, messages, 3, "recursive messages are described once")
	assert.Equal(t, map[string]any{"name": "google.protobuf.Struct", "fields": []any{
		map[string]any{"number": 1.0, "name": "fields", "type": "map<string, google.protobuf.Value>"},
	}}, messages[0])
	assert.Contains(t, messages[1].(map[string]any)["fields"], map[string]any{
		"number": 1.0, "name": "null_value", "type": "google.protobuf.NullValue", "oneof": "kind",
	})
	assert.Equal(t, []any{map[string]any{"name": "google.protobuf.NullValue", "values": []any{map[string]any{"number": 0.0, "name": "NULL_VALUE"}}}}, p["enums"])
	page := files["aggregates/note%7Cs.md"]
	assert.Contains(t, page, "Message `google.protobuf.ListValue`:\n\n| number | field | type |\n|---|---|---|\n| 1 | `values` | `repeated google.protobuf.Value` |\n")
	assert.Contains(t, page, "| 2 | `number_value` | `double`, one of `kind` |\n")
	assert.Contains(t, page, "Enumeration `google.protobuf.NullValue`:\n\n| number | value |\n|---|---|\n| 0 | `NULL_VALUE` |\n")
}

func TestAnotherCodecIsNamed(t *testing.T) {
	t.Parallel()
	files := filesOf(t, shop())
	s := readJSON(t, []byte(files["aggregates/gobbed/events/Gobbed.json"]))
	assert.Equal(t, "Encoded by the codec catalogue_test.gobCodec. This catalogue does not describe its format.", s["description"])
	assert.NotContains(t, s, "properties")
	assert.Contains(t, files["aggregates/gobbed.md"], "Encoded by the codec catalogue\\_test.gobCodec. This catalogue does not describe its format.\n")
}

func TestTheAsyncAPIDocument(t *testing.T) {
	t.Parallel()
	text := filesOf(t, shop())["asyncapi.json"]
	d := readJSON(t, []byte(text))
	assert.Equal(t, "3.0.0", d["asyncapi"])
	assert.Equal(t, map[string]any{"title": "Shop", "version": "2.1.0", "description": "An online shop."}, d["info"])
	channels := d["channels"].(map[string]any)
	assert.Equal(t, []string{"commands", "gobbed", "note_s", "order", "parcel", "public"}, slices.Sorted(maps.Keys(channels)))
	assert.Equal(t, map[string]any{
		"address": "shop.public", "title": "Public messages", "description": "What others may read.",
		"messages": map[string]any{
			"OrderPlaced.v1": map[string]any{
				"name": "OrderPlaced.v1", "title": "An order was placed", "description": "Sent once.",
				"payload": map[string]any{"$ref": "#/components/schemas/public.OrderPlaced.v1"},
			},
			"OrderPlaced.v2": map[string]any{
				"name": "OrderPlaced.v2", "title": "OrderPlaced", "payload": map[string]any{"$ref": "#/components/schemas/public.OrderPlaced.v2"},
			},
		},
	}, channels["public"])
	assert.Equal(t, map[string]any{"action": "receive", "channel": map[string]any{"$ref": "#/channels/commands"}}, d["operations"].(map[string]any)["receive.commands"])
	assert.Equal(t, map[string]any{"action": "send", "channel": map[string]any{"$ref": "#/channels/order"}}, d["operations"].(map[string]any)["send.order"])
	assert.Equal(t, "application/x-protobuf", channels["note_s"].(map[string]any)["messages"].(map[string]any)["noted"].(map[string]any)["contentType"])
	assert.Equal(t, "application/octet-stream", channels["gobbed"].(map[string]any)["messages"].(map[string]any)["Gobbed"].(map[string]any)["contentType"])

	references := 0
	var check func(value any)
	check = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			if ref, ok := value["$ref"].(string); ok {
				references++
				var at any = d
				for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
					at = at.(map[string]any)[part]
				}
				assert.NotNil(t, at, ref)
				assert.Len(t, value, 1, "draft 07 ignores what stands beside a reference")
			}
			for _, part := range value {
				check(part)
			}
		case []any:
			for _, part := range value {
				check(part)
			}
		}
	}
	check(d)
	assert.Greater(t, references, 20)
}

func TestFaultsOfAConfigurationAreRefused(t *testing.T) {
	t.Parallel()
	message := catalogue.Message{Name: "m", Type: reflect.TypeFor[int]()}
	channel := func(name string, m ...catalogue.Message) catalogue.Config {
		return catalogue.Config{Channels: []catalogue.Channel{{Name: name, Messages: m}}}
	}
	for want, c := range map[string]catalogue.Config{
		`Definitions[0] is nil: leave it out`: configOf(nil),
		`Definitions[1] is the second definition of the aggregate type "order": pass the one that programs use`:                 configOf(define(placed{}), define(paid{})),
		`Definitions[0] is a catalogue_test.opaque without the method Describe: use an aggregate.Definition, or add the method`: configOf(opaque{define(placed{})}),
		`Channels[0].Name is empty: set a name`:                                                                channel(""),
		`Channels[0].Messages[0].Name is empty: set a name`:                                                    channel("c", catalogue.Message{Type: reflect.TypeFor[int]()}),
		`Channels[0] has a name or an address that is not valid UTF-8, which JSON cannot hold: use plain text`: channel("\xff"),
		`Channels[0].Messages[0].Name is not valid UTF-8, which JSON cannot hold: use plain text`:              channel("c", catalogue.Message{Name: "\xff", Type: reflect.TypeFor[int]()}),
		`Channels[0].Messages[0].Type is nil: pass the Go type, such as reflect.TypeFor[OrderPlaced]()`:        channel("c", catalogue.Message{Name: "m"}),
		`Channels[0].Messages[0].Version is -1: use a positive number`:                                         channel("c", catalogue.Message{Name: "m", Type: reflect.TypeFor[int](), Version: -1}),
		`Channels[0].Messages[1] is the second message "m" of version 1: increase the version of one of them`:  channel("c", message, message),
		`Channels[1].Name "c" is taken by another channel: use different names`:                                {Channels: []catalogue.Channel{{Name: "c"}, {Name: "c"}}},
		`Channels[0].Name "order" is the channel of an aggregate type: use another name, and set Address`: {
			Definitions: []aggregate.AnyDefinition{define(placed{})}, Channels: []catalogue.Channel{{Name: "order"}},
		},
	} {
		_, err := catalogue.New(c)
		require.EqualError(t, err, "catalogue: Config."+want)
		require.ErrorAs(t, err, new(*catalogue.ConfigError))
		_, err = catalogue.Write(t.TempDir(), c)
		require.ErrorAs(t, err, new(*catalogue.ConfigError))
	}
}

// opaque hides the methods of a definition that AnyDefinition lacks.
type opaque struct{ aggregate.AnyDefinition }

type broken struct {
	Lines []struct{ Done chan bool }
}

func (broken) EventType() string { return "order.broken.v1" }
func (broken) Apply(*order)      {}

func TestATypeThatJSONCannotEncodeIsNamed(t *testing.T) {
	t.Parallel()
	_, err := catalogue.New(configOf(define(broken{})))
	require.ErrorAs(t, err, new(*aggregate.DefinitionError))
	assert.EqualError(t, err, `catalogue: invalid aggregate definition "order": event type "order.broken.v1" (catalogue_test.broken): `+
		`field Lines.Done is a chan bool, which JSON cannot hold: leave it out`)

	_, err = catalogue.New(catalogue.Config{Channels: []catalogue.Channel{{Name: "c", Messages: []catalogue.Message{{Name: "m", Type: reflect.TypeFor[broken]()}}}}})
	var failed *catalogue.TypeError
	require.ErrorAs(t, err, &failed)
	assert.EqualError(t, err, `catalogue: message "m" version 1 of channel "c": field "Lines[].Done" has the type chan bool: `+
		`JSON cannot hold it: leave it out with json:"-", or use another type`)
}

func TestAnEventIsFoundByItsType(t *testing.T) {
	t.Parallel()
	c, err := catalogue.New(shop())
	require.NoError(t, err)
	e, ok := c.Event("order", "order.placed.v1")
	require.True(t, ok)
	assert.Equal(t, filesOf(t, shop())["aggregates/order/events/order.placed.v1.json"], string(e.Schema))
	assert.Equal(t, catalogue.Entry{AggregateType: "order", EventType: "order.placed.v1", Schema: e.Schema}, e)
	e, ok = c.Event("order", "order.put.v1")
	require.True(t, ok)
	assert.True(t, e.Upcast)
	assert.Equal(t, []string{"order.placed.v1"}, e.UpcastTo)
	_, ok = c.Event("order", "noted")
	assert.False(t, ok)
	_, ok = c.Event("nothing", "order.placed.v1")
	assert.False(t, ok)
}

func TestNamesThatDifferInCaseHaveTheirOwnFiles(t *testing.T) {
	t.Parallel()
	files := filesOf(t, catalogue.Config{Channels: []catalogue.Channel{{Name: "c", Messages: []catalogue.Message{
		{Name: "Moved", Type: reflect.TypeFor[int]()}, {Name: "moved", Type: reflect.TypeFor[string]()}, {Name: "a/../b", Type: reflect.TypeFor[string]()}, {Name: "Größe", Type: reflect.TypeFor[string]()},
	}}, {Name: ".."}}})
	folded := map[string]string{}
	for name := range files {
		assert.Empty(t, folded[strings.ToLower(name)], name)
		folded[strings.ToLower(name)] = name
		assert.NotContains(t, name, "/../")
	}
	assert.Contains(t, files, "channels/c/a%2F..%2Fb.v1.json")
	assert.Contains(t, files, "channels/%2E%2E.md")
}

func TestFiveHundredMessagesAreDescribedInSeconds(t *testing.T) {
	t.Parallel()
	channels := make([]catalogue.Channel, 50)
	for i := range channels {
		channels[i].Name = fmt.Sprintf("channel-%d", i)
		for j := range 10 {
			fields := []reflect.StructField{{Name: "Lines", Type: reflect.TypeFor[[]Point]()}, {Name: fmt.Sprintf("F%d", i*10+j), Type: reflect.TypeFor[lined]()}}
			channels[i].Messages = append(channels[i].Messages, catalogue.Message{Name: fmt.Sprintf("m%d", j), Type: reflect.StructOf(fields)})
		}
	}
	c := catalogue.Config{Channels: channels}
	begun := time.Now()
	dir := write(t, c)
	of, err := catalogue.New(c)
	require.NoError(t, err)
	d, err := of.Compare(dir)
	require.NoError(t, err)
	assert.Empty(t, d)
	t.Logf("500 messages: %v", time.Since(begun))
	assert.Less(t, time.Since(begun), 20*time.Second)
}
