package aggregate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
)

// These are events that older programs stored. Accounts defines the current ones.

type depositedV0 struct{ Cents int }

// DepositedHalves is an intermediate form between depositedV0 and Deposited. No definition has it.
type DepositedHalves struct{ Halves int }

func (DepositedHalves) EventType() string { return "account.deposited.v0b" }

type transferredV0 struct{ Amount, Fee int }

func fromHalves(old DepositedHalves) Deposited { return Deposited{old.Halves / 2} }

func splitTransfer(old transferredV0) (aggregate.Events[Account], error) {
	if old.Fee < 0 {
		return nil, errNegativeFee
	}
	events := aggregate.Events[Account]{Withdrawn{old.Amount}}
	if old.Fee > 0 {
		events = append(events, Withdrawn{old.Fee}, &Tagged{"charged"})
	}
	return events, nil
}

var errNegativeFee = errors.New("the fee is negative")

// evolved can read every event that Accounts ever had.
var evolved = Accounts.WithUpcasters(
	aggregate.Upcast("account.deposited.v0", func(old depositedV0) DepositedHalves { return DepositedHalves{old.Cents / 50} }),
	aggregate.Upcast("account.deposited.v0b", fromHalves),
	aggregate.Split("account.transferred.v0", splitTransfer),
	aggregate.Rename("account.taken.v0", "account.withdrawn.v1"),
	aggregate.Drop("account.audited.v0"),
	aggregate.UpcastRaw("account.batch.v0", func(payload []byte) ([]aggregate.EncodedEvent, error) {
		var amounts []int
		if err := json.Unmarshal(payload, &amounts); err != nil {
			return nil, err
		}
		var events []aggregate.EncodedEvent
		for _, amount := range amounts {
			events = append(events, aggregate.EncodedEvent{Type: "account.deposited.v0", Payload: fmt.Appendf(nil, `{"Cents":%d}`, amount)})
		}
		return events, nil
	}, "account.deposited.v0"),
)

func TestStoredEventsOfOldTypesHaveTheEffectOfThoseOfToday(t *testing.T) {
	t.Parallel()
	require.NoError(t, evolved.Validate())

	for name, test := range map[string]struct {
		eventType, payload string
		want               Account
	}{
		"an event of today":              {"account.deposited.v1", `{"Amount":5}`, Account{Balance: 105}},
		"one to one":                     {"account.deposited.v0b", `{"Halves":10}`, Account{Balance: 105}},
		"by way of an older one":         {"account.deposited.v0", `{"Cents":500}`, Account{Balance: 105}},
		"one to one of several types":    {"account.transferred.v0", `{"Amount":5}`, Account{Balance: 95}},
		"one to several, in order":       {"account.transferred.v0", `{"Amount":5,"Fee":1}`, Account{Balance: 94, Tags: []string{"charged"}}},
		"another name":                   {"account.taken.v0", `{"Amount":5}`, Account{Balance: 95}},
		"dropped":                        {"account.audited.v0", "not even JSON", Account{Balance: 100}},
		"bytes":                          {"account.batch.v0", `[100,200]`, Account{Balance: 103}},
		"bytes that come to no event":    {"account.batch.v0", `[]`, Account{Balance: 100}},
		"a pointer event of today":       {"account.tagged.v1", `{"Tag":"vip"}`, Account{Balance: 100, Tags: []string{"vip"}}},
		"fields that the old type lacks": {"account.deposited.v0", `{"Cents":500,"By":"Ada"}`, Account{Balance: 105}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			state := Account{Balance: 100}
			require.NoError(t, evolved.Replay(&state, test.eventType, []byte(test.payload)))
			assert.Equal(t, test.want, state)
		})
	}
}

func TestUpcastGivesTheEventsInTheirStoredForm(t *testing.T) {
	t.Parallel()

	upcast := func(eventType, payload string) []string {
		events, err := evolved.Upcast(aggregate.EncodedEvent{Type: eventType, Payload: []byte(payload)})
		require.NoError(t, err)
		var texts []string
		for _, e := range events {
			texts = append(texts, fmt.Sprintf("%s %s", e.Type, e.Payload))
		}
		return texts
	}
	assert.Equal(t, []string{`account.deposited.v1 {"Amount":5}`}, upcast("account.deposited.v0", `{"Cents":500}`))
	assert.Equal(t, []string{
		`account.withdrawn.v1 {"Amount":5}`, `account.withdrawn.v1 {"Amount":1}`, `account.tagged.v1 {"Tag":"charged"}`,
	}, upcast("account.transferred.v0", `{"Amount":5,"Fee":1}`))
	assert.Empty(t, upcast("account.audited.v0", ""))
	assert.Equal(t, []string{"account.unknown.v9 ?"}, upcast("account.unknown.v9", "?"), "nobody reads it, so it is as it was")
}

func TestADefinitionSaysWhetherItSplitsEvents(t *testing.T) {
	t.Parallel()
	one := Accounts.WithUpcasters(
		aggregate.Upcast("account.deposited.v0b", fromHalves), aggregate.Rename("account.taken.v0", "account.withdrawn.v1"), aggregate.Drop("account.audited.v0"),
	)
	assert.False(t, Accounts.Splits())
	assert.False(t, one.Splits())
	assert.True(t, one.WithUpcasters(aggregate.Split("account.transferred.v0", splitTransfer)).Splits())
	assert.True(t, one.WithUpcasters(aggregate.UpcastRaw("account.batch.v0", func([]byte) ([]aggregate.EncodedEvent, error) { return nil, nil })).Splits())
}

func TestAnUpcasterReadsWithACodecOfItsOwn(t *testing.T) {
	t.Parallel()
	accounts := Accounts.WithCodec(gobCodec{}).WithUpcasters(
		aggregate.Upcast("account.deposited.v0b", fromHalves).WithCodec(aggregate.JSON),
	)
	require.NoError(t, accounts.Validate())

	var state Account
	require.NoError(t, accounts.Replay(&state, "account.deposited.v0b", []byte(`{"Halves":10}`)))
	assert.Equal(t, 5, state.Balance)
}

type halved struct{ Halves int }

func (halved) EventType() string { return "account.halved.v1" }

func TestAnUpcasterReadsWhatAnotherOneReturnsWithItsCodec(t *testing.T) {
	t.Parallel()
	accounts := Accounts.WithCodec(gobCodec{}).WithUpcasters(
		aggregate.Upcast("account.halved.v0", func(old struct{ Quarters int }) halved { return halved{old.Quarters / 2} }).WithCodec(aggregate.JSON),
		aggregate.Rename("account.halved.v1", "account.deposited.v0b"),
		aggregate.Upcast("account.deposited.v0b", fromHalves).WithCodec(aggregate.JSON),
	)
	require.NoError(t, accounts.Validate())

	var state Account
	require.NoError(t, accounts.Replay(&state, "account.halved.v0", []byte(`{"Quarters":20}`)))
	assert.Equal(t, 5, state.Balance)
}

func TestUpcastersTakeAndGivePointers(t *testing.T) {
	t.Parallel()
	accounts := Accounts.WithUpcasters(
		aggregate.Upcast("account.noted.v0", func(old *struct{ Note string }) *Tagged { return &Tagged{old.Note} }),
	)
	require.NoError(t, accounts.Validate())

	var state Account
	require.NoError(t, accounts.Replay(&state, "account.noted.v0", []byte(`{"Note":"vip"}`)))
	assert.Equal(t, []string{"vip"}, state.Tags)
}

func TestWithUpcastersLeavesTheDefinitionAsItWas(t *testing.T) {
	t.Parallel()
	first := Accounts.WithUpcasters(aggregate.Drop("account.audited.v0"))
	second := first.WithUpcasters(aggregate.Drop("account.viewed.v0"))
	_ = first.WithUpcasters(aggregate.Drop(""))

	var state Account
	assert.ErrorAs(t, Accounts.Replay(&state, "account.audited.v0", nil), new(*aggregate.UnknownEventError))
	assert.NoError(t, first.Replay(&state, "account.audited.v0", nil))
	assert.ErrorAs(t, first.Replay(&state, "account.viewed.v0", nil), new(*aggregate.UnknownEventError))
	assert.NoError(t, second.Replay(&state, "account.audited.v0", nil))
	assert.NoError(t, second.Replay(&state, "account.viewed.v0", nil))
	assert.NoError(t, first.Validate())
	faulty := first.WithUpcasters(aggregate.Drop(""), aggregate.Rename("a", "b")).WithUpcasters(aggregate.Drop("c")).Validate()
	assert.ErrorContains(t, faulty, "upcaster 1", "a fault stays when others are added")
	assert.ErrorContains(t, faulty, `upcaster of "a"`)
	assert.Equal(t, Accounts.EventTypes(), second.EventTypes(), "what an upcaster reads is no event type of today")
}

func TestAFailedUpcastNamesTheStoredEventAndLeavesTheState(t *testing.T) {
	t.Parallel()
	give := func(events ...aggregate.EncodedEvent) func([]byte) ([]aggregate.EncodedEvent, error) {
		return func([]byte) ([]aggregate.EncodedEvent, error) { return events, nil }
	}
	deposit := aggregate.EncodedEvent{Type: "account.deposited.v1", Payload: []byte(`{"Amount":1}`)}
	accounts := evolved.WithUpcasters(
		aggregate.UpcastRaw("to-unknown", give(deposit, aggregate.EncodedEvent{Type: "unknown", Payload: []byte("{}")})),
		aggregate.UpcastRaw("to-malformed", give(deposit, aggregate.EncodedEvent{Type: "account.deposited.v1", Payload: []byte("?")})),
		aggregate.UpcastRaw("around", give(aggregate.EncodedEvent{Type: "and-around"})),
		aggregate.UpcastRaw("and-around", give(deposit, aggregate.EncodedEvent{Type: "around"})),
		aggregate.Split("to-nil", func(struct{}) ([]*Tagged, error) { return []*Tagged{{"a"}, nil}, nil }),
		aggregate.Split("to-nil-interface", func(struct{}) (aggregate.Events[Account], error) { return aggregate.Events[Account]{nil}, nil }),
		aggregate.Upcast("to-unencodable", func(struct{}) *Tagged { return &Tagged{"\xff"} }),
	)
	require.NoError(t, accounts.Validate(), "what these give is not declared")

	for name, test := range map[string]struct {
		eventType, payload string
		is                 any
		says               string
	}{
		"the function's error":             {"account.transferred.v0", `{"Fee":-1}`, errNegativeFee, "the fee is negative"},
		"a malformed payload":              {"account.deposited.v0b", `{"Halves":"?"}`, new(*aggregate.MalformedEventError), "of type int"},
		"further on":                       {"account.batch.v0", `[1e9]`, nil, "cannot unmarshal number 1e9"},
		"an event nobody knows":            {"to-unknown", `{}`, new(*aggregate.UnknownEventError), `"unknown"`},
		"an event that is malformed":       {"to-malformed", `{}`, new(*aggregate.MalformedEventError), "invalid character"},
		"a circle nobody declared":         {"around", `{}`, nil, `in a circle ("around" -> "and-around" -> "around")`},
		"a nil event":                      {"to-nil", `{}`, nil, "event 2 that it returns is nil"},
		"a nil interface":                  {"to-nil-interface", `{}`, nil, "event 1 that it returns is nil"},
		"an event that has no stored form": {"to-unencodable", `{}`, nil, `encode event 1 that it returns, "account.tagged.v1": the string "\xff"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			state := Account{Balance: 7}
			err := accounts.Replay(&state, test.eventType, []byte(test.payload))
			require.ErrorAs(t, err, new(*aggregate.UpcastError))
			if sentinel, ok := test.is.(error); ok {
				require.ErrorIs(t, err, sentinel)
			} else if test.is != nil {
				require.ErrorAs(t, err, test.is)
			}
			var failed *aggregate.UpcastError
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, "account", failed.AggregateType)
			assert.Equal(t, test.eventType, failed.EventType)
			for _, part := range []string{test.says, test.eventType, `aggregate type "account"`, "correct the upcaster"} {
				assert.ErrorContains(t, err, part)
			}
			assert.Equal(t, Account{Balance: 7}, state)
		})
	}
}

func TestAFailureFurtherOnNamesBothEventTypes(t *testing.T) {
	t.Parallel()
	accounts := Accounts.WithUpcasters(
		aggregate.Rename("account.first.v0", "account.transferred.v0"),
		aggregate.Split("account.transferred.v0", splitTransfer),
	)
	var state Account
	err := accounts.Replay(&state, "account.first.v0", []byte(`{"Fee":-1}`))
	var failed *aggregate.UpcastError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "account.first.v0", failed.EventType)
	assert.Equal(t, "account.transferred.v0", failed.At)
	assert.ErrorContains(t, err, `event type "account.first.v0" of aggregate type "account" at "account.transferred.v0"`)
}

func TestAnEventMayReachOneUpcasterOnSeveralWays(t *testing.T) {
	t.Parallel()
	accounts := Accounts.WithUpcasters(
		aggregate.UpcastRaw("pair", func(payload []byte) ([]aggregate.EncodedEvent, error) {
			return []aggregate.EncodedEvent{{Type: "single", Payload: payload}, {Type: "again", Payload: payload}}, nil
		}, "single", "again"),
		aggregate.Rename("again", "single"),
		aggregate.Rename("single", "account.deposited.v1"),
	)
	require.NoError(t, accounts.Validate(), "two ways to one end are no circle")
	var state Account
	require.NoError(t, accounts.Replay(&state, "pair", []byte(`{"Amount":1}`)))
	assert.Equal(t, 2, state.Balance)
}

func TestEventsThatWouldComeBackAsOthersAreNotStored(t *testing.T) {
	t.Parallel()
	accounts := Accounts.WithUpcasters(aggregate.Rename("account.deposited.v1", "account.withdrawn.v1"))

	_, err := accounts.Encode(Deposited{1})
	require.ErrorAs(t, err, new(*aggregate.UnencodableEventError))
	assert.ErrorContains(t, err, "an upcaster turns stored events of this name into others")
}

func TestDecodeSendsTheReaderOfAnOldEventToReplay(t *testing.T) {
	t.Parallel()

	event, err := evolved.Decode("account.deposited.v0", []byte(`{"Cents":500}`))
	require.ErrorAs(t, err, new(*aggregate.UpcastError))
	assert.ErrorContains(t, err, "call Replay")
	assert.NotContains(t, err.Error(), "correct the upcaster")
	assert.Nil(t, event)
}

func TestAPanicOfAnUpcasterIsPassedOn(t *testing.T) {
	t.Parallel()
	accounts := Accounts.WithUpcasters(aggregate.Upcast("old", func(struct{}) Deposited { panic("a bug in the domain code") }))

	var state Account
	assert.PanicsWithValue(t, "a bug in the domain code", func() { _ = accounts.Replay(&state, "old", []byte("{}")) })
}

func TestFaultyUpcastersSayWhatToDo(t *testing.T) {
	t.Parallel()
	deposited := func(from string) aggregate.Upcaster { return aggregate.Upcast(from, fromHalves) }

	for name, test := range map[string]struct {
		upcasters []aggregate.Upcaster
		says      []string
	}{
		"still defined": {
			[]aggregate.Upcaster{deposited("account.withdrawn.v1")},
			[]string{`upcaster of "account.withdrawn.v1": the definition still has that event type, as aggregate_test.Withdrawn`, "remove the Go type"},
		},
		"two for one name":  {[]aggregate.Upcaster{deposited("old"), aggregate.Drop("old")}, []string{`two upcasters read the event type "old"`}},
		"unknown target":    {[]aggregate.Upcaster{aggregate.Rename("old", "new")}, []string{`upcaster of "old": it returns the event type "new"`, "add one of the two"}},
		"unknown Go target": {[]aggregate.Upcaster{aggregate.Upcast("old", func(struct{}) DepositedHalves { return DepositedHalves{} })}, []string{`"account.deposited.v0b"`}},
		"nil function":      {[]aggregate.Upcaster{aggregate.Upcast[depositedV0, Deposited]("old", nil)}, []string{`upcaster of "old": its function is nil`, "Drop"}},
		"nil Split":         {[]aggregate.Upcaster{aggregate.Split[depositedV0, []Deposited]("old", nil)}, []string{"its function is nil"}},
		"nil UpcastRaw":     {[]aggregate.Upcaster{aggregate.UpcastRaw("old", nil)}, []string{"its function is nil"}},
		"nil codec":         {[]aggregate.Upcaster{deposited("old").WithCodec(nil)}, []string{`upcaster of "old": its codec is nil`}},
		"zero value":        {[]aggregate.Upcaster{{}}, []string{"upcaster 1 is the zero Upcaster", "aggregate.Upcast"}},
		"no name":           {[]aggregate.Upcaster{deposited("old"), deposited("")}, []string{"upcaster 2: the event type that it reads is empty"}},
		"control character": {[]aggregate.Upcaster{deposited("a\n")}, []string{"upcaster 1", "U+000A"}},
		"EventType panics":  {[]aggregate.Upcaster{aggregate.Upcast("old", func(struct{}) hollow { return hollow{} })}, []string{"it returns a aggregate_test.hollow, whose EventType panics"}},
		"feeds itself":      {[]aggregate.Upcaster{aggregate.Rename("old", "old")}, []string{`circle ("old" -> "old")`}},
		"circle":            {[]aggregate.Upcaster{aggregate.Drop("x"), aggregate.Rename("a", "b"), aggregate.Rename("b", "c"), aggregate.Rename("c", "b")}, []string{`circle ("b" -> "c" -> "b")`}},
		"old type that JSON empties": {
			[]aggregate.Upcaster{aggregate.Upcast("old", func(unexported) Deposited { return Deposited{} })},
			[]string{`upcaster of "old": what it reads, aggregate_test.unexported: field amount is unexported`},
		},
		"new type that JSON empties": {
			[]aggregate.Upcaster{aggregate.Upcast("old", func(struct{}) between { return between{} }), aggregate.Drop("between")},
			[]string{`upcaster of "old": what it returns, aggregate_test.between: field amount is unexported`},
		},
		"several at once": {
			[]aggregate.Upcaster{{}, aggregate.Rename("old", "new"), deposited("account.opened.v1")},
			[]string{"zero Upcaster", `"new"`, "as aggregate_test.Opened"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			accounts := Accounts.WithUpcasters(test.upcasters...)
			err := accounts.Validate()
			require.ErrorAs(t, err, new(*aggregate.DefinitionError))
			for _, part := range test.says {
				assert.ErrorContains(t, err, part)
			}
			assert.NotPanics(t, func() { _ = accounts.Replay(new(Account), "old", []byte("{}")) }, "also if nobody validates")
		})
	}
}

func TestAnOldTypeIsOnlyReadSoAPointerMethodIsNoFault(t *testing.T) {
	t.Parallel()
	accounts := Accounts.WithUpcasters(aggregate.Upcast("old", func(old pointerMethod) Deposited { return Deposited{old.amount} }))
	require.NoError(t, accounts.Validate())

	var state Account
	require.NoError(t, accounts.Replay(&state, "old", []byte("5")))
	assert.Equal(t, 5, state.Balance)
}

func TestAZeroDefinitionWithUpcastersFailsWithoutPanic(t *testing.T) {
	t.Parallel()

	none := aggregate.Definition[Account]{}.WithUpcasters(aggregate.Drop("old"))
	require.ErrorContains(t, none.Validate(), "zero Definition")
	require.NoError(t, none.Replay(new(Account), "old", nil))
	require.ErrorAs(t, none.Replay(new(Account), "new", nil), new(*aggregate.UnknownEventError))
}

func FuzzReplayAppliesAllOrNothing(f *testing.F) {
	for _, payload := range []string{"", "null", "[1,2]", `{"Cents":100}`, `{"Amount":3,"Fee":-1}`, `{"Halves":1e400}`} {
		for _, name := range []string{
			"account.deposited.v0", "account.deposited.v0b", "account.transferred.v0", "account.taken.v0",
			"account.audited.v0", "account.batch.v0", "account.deposited.v1", "",
		} {
			f.Add(name, []byte(payload))
		}
	}
	f.Fuzz(func(t *testing.T, name string, payload []byte) {
		before := string(payload)
		first, second := Account{Balance: 7}, Account{Balance: 7}
		err := evolved.Replay(&first, name, payload)
		require.Equal(t, before, string(payload), "the payload belongs to the caller")
		if err != nil {
			require.Equal(t, Account{Balance: 7}, first)
			require.True(t, errors.As(err, new(*aggregate.UnknownEventError)) || errors.As(err, new(*aggregate.MalformedEventError)) ||
				errors.As(err, new(*aggregate.UpcastError)), "%v", err)
			return
		}
		require.NoError(t, evolved.Replay(&second, name, payload))
		require.Equal(t, first, second)
	})
}

// between is an event type that only upcasters know.
type between struct{ amount int }

func (b between) EventType() string { _ = b.amount; return "between" }
