package aggregate_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
)

func TestDefinitionTellsItsTypeEventsAndIDs(t *testing.T) {
	t.Parallel()

	require.NoError(t, Accounts.Validate())
	assert.Equal(t, "account", Accounts.Type())
	assert.Equal(t, []string{"account.opened.v1", "account.deposited.v1", "account.withdrawn.v1", "account.tagged.v1"}, Accounts.EventTypes())
	assert.Equal(t, aggregate.JSON, Accounts.Codec())

	id, err := Accounts.ID("7")
	require.NoError(t, err)
	assert.Equal(t, aggregate.ID{Type: "account", Value: "7"}, id)
	_, err = Accounts.ID("")
	assert.ErrorAs(t, err, new(*aggregate.InvalidIDError))
}

func TestDefinitionCannotBeChangedThroughWhatItReturns(t *testing.T) {
	t.Parallel()

	accounts := aggregate.Define[Account]("account", Deposited{}, Withdrawn{})
	accounts.EventTypes()[0] = "changed"
	_ = accounts.WithCodec(gobCodec{})

	assert.Equal(t, []string{"account.deposited.v1", "account.withdrawn.v1"}, accounts.EventTypes())
	assert.Equal(t, aggregate.JSON, accounts.Codec())
}

func TestEventsComeBackAsTheyWereDefined(t *testing.T) {
	t.Parallel()

	for name, codec := range map[string]aggregate.Codec{"JSON": aggregate.JSON, "gob": gobCodec{}} {
		for _, event := range []aggregate.Event[Account]{Opened{"Ada"}, Deposited{100}, &Tagged{"vip"}} {
			accounts := Accounts.WithCodec(codec)
			encoded, err := accounts.Encode(event)
			require.NoError(t, err, name)
			assert.Equal(t, event.EventType(), encoded.Type, name)

			decoded, err := accounts.Decode(encoded.Type, encoded.Payload)
			require.NoError(t, err, name)
			assert.Equal(t, event, decoded, "%s: value or pointer as in the definition", name)
		}
	}
}

func TestJSONPayloadIsThePlainEvent(t *testing.T) {
	t.Parallel()

	encoded, err := Accounts.Encode(Deposited{100})
	require.NoError(t, err)
	assert.Equal(t, aggregate.EncodedEvent{Type: "account.deposited.v1", Payload: []byte(`{"Amount":100}`)}, encoded)
}

func TestApplyFoldsEventsInOrder(t *testing.T) {
	t.Parallel()

	var account Account
	Accounts.Apply(&account, Opened{"Ada"}, Deposited{100}, Withdrawn{30}, &Tagged{"a"}, &Tagged{"b"})
	assert.Equal(t, Account{Owner: "Ada", Balance: 70, Tags: []string{"a", "b"}}, account)
}

func TestApplyPassesAPanicOn(t *testing.T) {
	t.Parallel()

	var account Account
	assert.PanicsWithValue(t, "a bug in the domain code", func() { Accounts.Apply(&account, panics{}) })
}

func TestDefinitionIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()

	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for range 200 {
				encoded, err := Accounts.Encode(Deposited{worker})
				assert.NoError(t, err)
				decoded, err := Accounts.Decode(encoded.Type, encoded.Payload)
				assert.NoError(t, err)
				assert.Equal(t, Deposited{worker}, decoded)
			}
		}()
	}
	workers.Wait()
}

func TestUnknownEventTypesAreNamedWithTheKnownOnes(t *testing.T) {
	t.Parallel()

	_, decoding := Accounts.Decode("account.closed.v1", []byte(`{}`))
	_, encoding := Accounts.Encode(panics{})
	for err, name := range map[error]string{decoding: "account.closed.v1", encoding: "account.panics.v1"} {
		require.ErrorAs(t, err, new(*aggregate.UnknownEventError))
		var unknown *aggregate.UnknownEventError
		require.ErrorAs(t, err, &unknown)
		assert.Equal(t, "account", unknown.AggregateType)
		assert.Equal(t, name, unknown.EventType)
		assert.Equal(t, Accounts.EventTypes(), unknown.Known)
		for _, part := range []string{name, `aggregate type "account"`, "account.deposited.v1, account.withdrawn.v1", "add the event's Go type to aggregate.Define"} {
			assert.ErrorContains(t, err, part)
		}
	}
}

func TestMalformedPayloadsAreErrors(t *testing.T) {
	t.Parallel()

	payloads := map[string]string{
		"nothing":            "",
		"not JSON":           "\x00\x01",
		"cut off":            `{"Amount":1`,
		"another shape":      `[1]`,
		"text for a number":  `{"Amount":"1"}`,
		"fraction":           `{"Amount":1.5}`,
		"number too large":   `{"Amount":9223372036854775808}`,
		"null":               "null",
		"null and blanks":    " null\n",
		"data after the end": `{"Amount":1}{"Amount":2}`,
	}
	for name, payload := range payloads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			event, err := Accounts.Decode("account.deposited.v1", []byte(payload))
			require.ErrorAs(t, err, new(*aggregate.MalformedEventError))
			assert.Nil(t, event, "no half-decoded event")
			var malformed *aggregate.MalformedEventError
			require.ErrorAs(t, err, &malformed)
			assert.Equal(t, "account", malformed.AggregateType)
			assert.Equal(t, "account.deposited.v1", malformed.EventType)
			assert.ErrorContains(t, err, malformed.Err.Error(), "the codec's own words")
		})
	}
}

func TestMalformedEventErrorWrapsTheCodecsError(t *testing.T) {
	t.Parallel()

	_, err := Accounts.Decode("account.deposited.v1", []byte(`{"Amount":"1"}`))
	var cause *json.UnmarshalTypeError
	require.ErrorAs(t, err, &cause)
	assert.Equal(t, "Amount", cause.Field)
}

func TestEventsThatCannotBeStoredAreErrors(t *testing.T) {
	t.Parallel()

	broken := errors.New("the codec is broken")
	tests := map[string]struct {
		definition aggregate.Definition[Account]
		event      aggregate.Event[Account]
		says       string
	}{
		"nil":                            {Accounts, nil, "the event is nil"},
		"nil pointer":                    {Accounts, (*Tagged)(nil), "the event is nil"},
		"nil pointer to a value event":   {Accounts, (*Deposited)(nil), "the event is nil"},
		"pointer instead of the value":   {Accounts, &Deposited{1}, "a *aggregate_test.Deposited and the definition has aggregate_test.Deposited"},
		"another Go type under the name": {Accounts, depositedTwin{}, "a aggregate_test.depositedTwin and the definition has aggregate_test.Deposited"},
		"codec that fails":               {Accounts.WithCodec(failingCodec{broken}), Deposited{1}, "the codec is broken"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			encoded, err := test.definition.Encode(test.event)
			require.ErrorAs(t, err, new(*aggregate.UnencodableEventError))
			assert.ErrorContains(t, err, test.says)
			assert.ErrorContains(t, err, `aggregate type "account"`)
			assert.Zero(t, encoded)
		})
	}

	_, err := Accounts.WithCodec(failingCodec{broken}).Encode(Deposited{1})
	assert.ErrorIs(t, err, broken)
}

func TestFaultyDefinitionsSayWhatToDo(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		err  error
		says []string
	}{
		"zero value":        {aggregate.Definition[Account]{}.Validate(), []string{"zero Definition", "aggregate.Define"}},
		"empty type":        {aggregate.Define[Account]("", Deposited{}).Validate(), []string{"the aggregate type is empty"}},
		"type is not UTF-8": {aggregate.Define[Account]("\xff", Deposited{}).Validate(), []string{"the aggregate type is not valid UTF-8"}},
		"type too long": {
			aggregate.Define[Account](strings.Repeat("x", 1002), Deposited{}).Validate(),
			[]string{"1002 bytes", "use at most 1001"},
		},
		"no events":           {aggregate.Define[Account]("account").Validate(), []string{"no events"}},
		"nil event":           {aggregate.Define[Account]("account", Deposited{}, nil).Validate(), []string{"event 2 is nil", "&Deposited{}"}},
		"nil pointer":         {aggregate.Define[Account]("account", (*Tagged)(nil)).Validate(), []string{"event 1 is nil"}},
		"nil value receiver":  {aggregate.Define[Account]("account", (*Deposited)(nil)).Validate(), []string{"event 1 is nil"}},
		"empty event name":    {aggregate.Define[Account]("account", named{}).Validate(), []string{"event 1 (aggregate_test.named)", "EventType is empty"}},
		"control character":   {aggregate.Define[Account]("account", named{"a\x00"}).Validate(), []string{"U+0000 at byte 1"}},
		"name from a field":   {aggregate.Define[Account]("account", named{"a"}).Validate(), []string{"return a constant"}},
		"EventType panics":    {aggregate.Define[Account]("account", hollow{}).Validate(), []string{"event 1 (aggregate_test.hollow)", "EventType panics"}},
		"given twice":         {aggregate.Define[Account]("account", Deposited{}, Deposited{}).Validate(), []string{`"account.deposited.v1"`, "given twice"}},
		"value and pointer":   {aggregate.Define[Account]("account", Deposited{}, &Deposited{}).Validate(), []string{"(*aggregate_test.Deposited) is given twice, before as aggregate_test.Deposited", "pass it once"}},
		"two types, one name": {aggregate.Define[Account]("account", Deposited{}, depositedTwin{}).Validate(), []string{"names both aggregate_test.Deposited and aggregate_test.depositedTwin"}},
		"nil codec":           {Accounts.WithCodec(nil).Validate(), []string{"the codec is nil"}},
		"state is a pointer":  {aggregate.Define[*Account]("account", onPointer{}).Validate(), []string{"*aggregate_test.Account is nil before the first event"}},
		"several at once": {
			aggregate.Define[Account]("", nil, named{}).Validate(),
			[]string{"the aggregate type is empty", "event 1 is nil", "event 2"},
		},
		"codec that objects to every type": {
			Accounts.WithCodec(choosyCodec{}).Validate(),
			[]string{"state aggregate_test.Account: no *aggregate_test.Account", `event type "account.deposited.v1" (aggregate_test.Deposited): no aggregate_test.Deposited`, "no *aggregate_test.Tagged"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			require.ErrorAs(t, test.err, new(*aggregate.DefinitionError))
			var faulty *aggregate.DefinitionError
			require.ErrorAs(t, test.err, &faulty)
			for _, part := range test.says {
				assert.ErrorContains(t, test.err, part)
			}
		})
	}
}

func TestValidatingOneCopyDoesNotTouchTheErrorOfAnother(t *testing.T) {
	t.Parallel()

	faulty := aggregate.Define[Account]("", nil, named{})
	first := faulty.WithCodec(nil).Validate()
	text := first.Error()
	require.Error(t, faulty.WithCodec(choosyCodec{}).Validate())
	assert.Equal(t, text, first.Error())
}

func TestZeroDefinitionFailsWithoutPanic(t *testing.T) {
	t.Parallel()

	var none aggregate.Definition[Account]
	_, err := none.Encode(Deposited{1})
	require.ErrorAs(t, err, new(*aggregate.UnknownEventError))
	_, err = none.Decode("account.deposited.v1", nil)
	require.ErrorAs(t, err, new(*aggregate.UnknownEventError))
	_, err = none.ID("7")
	require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
	assert.Empty(t, none.Type())
	assert.Empty(t, none.EventTypes())
	assert.NotNil(t, none.Codec())
}

func TestEventsNeedNotBeStructs(t *testing.T) {
	t.Parallel()

	accounts := aggregate.Define[Account]("account", renamed(""), tagsSet(nil))
	require.NoError(t, accounts.Validate())
	for _, event := range []aggregate.Event[Account]{renamed("Ada"), tagsSet{"a"}, tagsSet(nil)} {
		encoded, err := accounts.Encode(event)
		require.NoError(t, err)
		decoded, err := accounts.Decode(encoded.Type, encoded.Payload)
		require.NoError(t, err)
		assert.Equal(t, event, decoded)
	}
}

func FuzzDecodeGivesAnEventOrAnError(f *testing.F) {
	for _, payload := range []string{"", "null", `{"Amount":1}`, `{"Amount":1e400}`, `{"Tag":"\ud800"}`, `[[[[`, "{}{}"} {
		for _, name := range append(Accounts.EventTypes(), "", "account.unknown.v1") {
			f.Add(name, []byte(payload))
		}
	}
	f.Fuzz(func(t *testing.T, name string, payload []byte) {
		before := bytes.Clone(payload)
		event, err := Accounts.Decode(name, payload)
		require.Equal(t, before, payload, "the payload belongs to the caller")
		if err != nil {
			require.Nil(t, event)
			require.True(t, errors.As(err, new(*aggregate.UnknownEventError)) || errors.As(err, new(*aggregate.MalformedEventError)), "%v", err)
			return
		}
		require.Equal(t, name, event.EventType())
		encoded, err := Accounts.Encode(event)
		require.NoError(t, err, "what can be read can be written")
		again, err := Accounts.Decode(encoded.Type, encoded.Payload)
		require.NoError(t, err)
		require.Equal(t, event, again)
	})
}

type panics struct{}

func (panics) EventType() string { return "account.panics.v1" }
func (panics) Apply(*Account)    { panic("a bug in the domain code") }

type depositedTwin struct{}

func (depositedTwin) EventType() string { return "account.deposited.v1" }
func (depositedTwin) Apply(*Account)    {}

type named struct{ Name string }

func (e named) EventType() string { return e.Name }
func (named) Apply(*Account)      {}

// hollow gets its methods from an interface that is nil.
type hollow struct{ aggregate.Event[Account] }

type onPointer struct{}

func (onPointer) EventType() string { return "account.changed.v1" }
func (onPointer) Apply(**Account)   {}

type renamed string

func (renamed) EventType() string  { return "account.renamed.v1" }
func (e renamed) Apply(a *Account) { a.Owner = string(e) }

type tagsSet []string

func (tagsSet) EventType() string  { return "account.tags-set.v1" }
func (e tagsSet) Apply(a *Account) { a.Tags = e }

type gobCodec struct{}

func (gobCodec) Marshal(v any) ([]byte, error) {
	var buffer bytes.Buffer
	err := gob.NewEncoder(&buffer).Encode(v)
	return buffer.Bytes(), err
}

func (gobCodec) Unmarshal(data []byte, v any) error {
	return gob.NewDecoder(bytes.NewReader(data)).Decode(v)
}

type failingCodec struct{ err error }

func (c failingCodec) Marshal(any) ([]byte, error) { return nil, c.err }
func (c failingCodec) Unmarshal([]byte, any) error { return c.err }

// choosyCodec refuses every type.
type choosyCodec struct{ gobCodec }

func (choosyCodec) CheckType(t reflect.Type) error { return errors.New("no " + t.String()) }
