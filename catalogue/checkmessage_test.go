package catalogue_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/catalogue"
)

func channel(m ...catalogue.Message) catalogue.Config {
	return catalogue.Config{Channels: []catalogue.Channel{{Name: "public", Address: "shop.public", Messages: m}}}
}

func TestAPublicMessageChangesWithItsVersion(t *testing.T) {
	t.Parallel()
	type (
		one  struct{ A string }
		two  struct{ A, B string }
		more struct {
			A string
			B string `json:",omitzero"`
		}
		less struct {
			A string `json:",omitempty"`
		}
		null    struct{ A *string }
		longer  struct{ A, N int64 }
		shorter struct {
			A int64
			N int32
		}
	)
	before := channel(catalogue.Message{Name: "placed", Type: reflect.TypeFor[one]()})
	subject := `message "placed" version 1 of channel "public": `
	for name, test := range map[string]struct {
		after []catalogue.Message
		want  []string
		notes []string
	}{
		"optional field": {[]catalogue.Message{{Name: "placed", Type: reflect.TypeFor[more]()}}, nil, nil},
		"required field": {[]catalogue.Message{{Name: "placed", Type: reflect.TypeFor[two]()}}, []string{
			subject + `the required field "B" was added: former messages lack it, and are read with its zero value. To fix it, ` +
				`make it optional by a tag if the zero value is right for them (json:"B,omitzero"), or declare the changed message with Version: 2 (WithVersion(2) of a forward.Mapping).`,
		}, nil},
		"no longer required": {[]catalogue.Message{{Name: "placed", Type: reflect.TypeFor[less]()}}, []string{
			subject + `the field "A" is no longer required: other programs may rely on it. To fix it, ` +
				`remove omitempty and omitzero from its tag, or declare the changed message with Version: 2 (WithVersion(2) of a forward.Mapping).`,
		}, nil},
		"null": {[]catalogue.Message{{Name: "placed", Type: reflect.TypeFor[null]()}}, []string{
			subject + `the field "A" allows null now: other programs may not accept null. To fix it, restore the type, or declare the changed message with Version: 2 (WithVersion(2) of a forward.Mapping).`,
		}, nil},
		"new version beside it": {[]catalogue.Message{{Name: "placed", Type: reflect.TypeFor[one]()}, {Name: "placed", Version: 2, Type: reflect.TypeFor[two]()}}, nil, nil},
		"new version": {[]catalogue.Message{{Name: "placed", Version: 2, Type: reflect.TypeFor[two]()}}, nil, []string{
			subject + `this version was removed: consumers have to read version 2. To fix it, check that no consumer reads the former version before you deploy.`,
		}},
		"removed": {nil, []string{
			subject + `the message was removed: other programs still use it. To fix it, restore the message, ` +
				`declare a later version of it in Config.Channels, or accept the change if no program uses it any more.`,
		}, nil},
		"codec": {[]catalogue.Message{{Name: "placed", Type: reflect.TypeFor[one](), Codec: gobCodec{}}}, []string{
			subject + `the codec was json and is catalogue_test.gobCodec: other programs decode the former format. ` +
				`To fix it, restore the codec, or declare the changed message with Version: 2 (WithVersion(2) of a forward.Mapping).`,
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := compare(t, before, channel(test.after...))
			assert.Equal(t, test.want, texts(d.Incompatible))
			assert.Equal(t, test.notes, texts(d.Notes))
		})
	}
	d := compare(t, channel(catalogue.Message{Name: "placed", Version: 3, Type: reflect.TypeFor[one]()}),
		channel(catalogue.Message{Name: "placed", Version: 2, Type: reflect.TypeFor[one]()}))
	require.Len(t, d.Incompatible, 1)
	assert.Equal(t, "the message was removed", d.Incompatible[0].What, "an earlier version does not replace it")
	d = compare(t, before, channel(catalogue.Message{Name: "placed", Type: reflect.TypeFor[two]()}, catalogue.Message{Name: "placed", Version: 5, Type: reflect.TypeFor[two]()}))
	require.Len(t, d.Incompatible, 1)
	assert.Contains(t, d.Incompatible[0].Fix, "with Version: 6", "the next free version")

	d = compare(t, channel(catalogue.Message{Name: "placed", Type: reflect.TypeFor[shorter]()}),
		channel(catalogue.Message{Name: "placed", Type: reflect.TypeFor[longer]()}))
	assert.Equal(t, []string{
		subject + `the field "N" was integer (int32) and is integer (int64): other programs may not accept larger numbers. ` +
			`To fix it, restore the type, or declare the changed message with Version: 2 (WithVersion(2) of a forward.Mapping).`,
	}, texts(d.Incompatible))

	moved := channel(catalogue.Message{Name: "placed", Type: reflect.TypeFor[one]()})
	moved.Channels[0].Address = "shop.v2"
	assert.Equal(t, []string{
		subject + `the address was "shop.public" and is "shop.v2": other programs use the former address. ` +
			`To fix it, restore the address, or declare a second channel until all of them use the new address.`,
	}, texts(compare(t, before, moved).Incompatible))
}
