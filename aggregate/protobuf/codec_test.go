package protobuf_test

import (
	"bytes"
	"encoding/gob"
	"io"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/aggregate/aggregatetest"
	"github.com/millrace-dev/millrace/aggregate/protobuf"
	"github.com/millrace-dev/millrace/aggregate/protobuf/internal/bankpb"
)

func TestDefinitionsOfMessagesAreValid(t *testing.T) {
	t.Parallel()

	assert.NoError(t, Accounts.Validate())
	assert.NoError(t, Ledgers.Validate())
}

func TestMessagesComeBackAsTheyWere(t *testing.T) {
	t.Parallel()

	full := &bankpb.Deposited{
		Amount: 1<<53 + 1, Currency: "EUR", Labels: map[string]string{"a": "1", "b": "2"},
		Origin: &bankpb.Deposited_Terminal{Terminal: 7},
	}
	for name, value := range map[string]proto.Message{
		"a message": full, "a message of the well-known types": timestamppb.Now(), "an empty message": &bankpb.Closed{},
		"a wrapper": Deposited{full}, "a pointer to a wrapper": &Deposited{full}, "an empty wrapper": Deposited{&bankpb.Deposited{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			data, err := protobuf.Codec{}.Marshal(value)
			require.NoError(t, err)
			plain, err := proto.MarshalOptions{Deterministic: true}.Marshal(value.ProtoReflect().Interface())
			require.NoError(t, err)
			assert.Equal(t, plain, data, "the plain binary form")

			target := reflect.TypeOf(value)
			if target.Kind() == reflect.Pointer {
				target = target.Elem()
			}
			read := reflect.New(target)
			require.NoError(t, protobuf.Codec{}.Unmarshal(data, read.Interface()))
			assert.True(t, proto.Equal(value, read.Interface().(proto.Message)), "got %v", read)
		})
	}
}

func TestAWrapperAroundNilIsWrittenAsAMessageWithoutContent(t *testing.T) {
	t.Parallel()

	for _, value := range []any{Account{}, &Account{}, (*bankpb.Account)(nil)} {
		data, err := protobuf.Codec{}.Marshal(value)
		require.NoError(t, err)
		assert.Empty(t, data)
	}
	var read Account
	require.NoError(t, protobuf.Codec{}.Unmarshal(nil, &read))
	assert.NotNil(t, read.Account)

	_, err := protobuf.Codec{}.Marshal((*Account)(nil))
	assert.ErrorContains(t, err, "*protobuf_test.Account is nil")
}

func TestOtherTypesGoToTheOtherCodec(t *testing.T) {
	t.Parallel()

	data, err := protobuf.Codec{}.Marshal(Viewed{"Ada"})
	require.NoError(t, err)
	assert.JSONEq(t, `{"By":"Ada"}`, string(data), "JSON unless told otherwise")

	codec := protobuf.Codec{Other: gobCodec{}}
	data, err = codec.Marshal(Viewed{"Ada"})
	require.NoError(t, err)
	var read Viewed
	require.NoError(t, codec.Unmarshal(data, &read))
	assert.Equal(t, Viewed{"Ada"}, read)
	assert.Error(t, protobuf.Codec{}.Unmarshal(data, &read))

	data, err = protobuf.Codec{}.Marshal(nil)
	require.NoError(t, err)
	assert.Equal(t, "null", string(data))
	assert.Error(t, protobuf.Codec{}.Unmarshal(data, nil))
	assert.Error(t, protobuf.Codec{}.Unmarshal(data, bankpb.Ledger{}))
}

func TestBytesThatAreNotTheMessageAreErrors(t *testing.T) {
	t.Parallel()

	written, err := protobuf.Codec{}.Marshal(deposited(5, "EUR"))
	require.NoError(t, err)
	for name, data := range map[string][]byte{
		"JSON":                   []byte(`{"Amount":5}`),
		"cut off":                written[:len(written)-1],
		"garbage at the end":     append(bytes.Clone(written), 0xff),
		"a zero at the end":      append(bytes.Clone(written), 0),
		"a text that is no text": protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), []byte{0xff}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			event, err := Accounts.Decode("account.deposited.v2", data)
			require.ErrorAs(t, err, new(*aggregate.MalformedEventError))
			assert.Nil(t, event)
			assert.Error(t, protobuf.Codec{}.Unmarshal(data, &bankpb.Deposited{}))
		})
	}
}

func TestFieldsOfANewerProgramAreKept(t *testing.T) {
	t.Parallel()

	data, err := protobuf.Codec{}.Marshal(deposited(5, "EUR"))
	require.NoError(t, err)
	newer := protowire.AppendString(protowire.AppendTag(data, 99, protowire.BytesType), "new")

	var event Deposited
	require.NoError(t, protobuf.Codec{}.Unmarshal(newer, &event))
	assert.EqualValues(t, 5, event.GetAmount())
	again, err := protobuf.Codec{}.Marshal(event)
	require.NoError(t, err)
	assert.Equal(t, newer, again)
}

func TestTheSameEventHasTheSameBytes(t *testing.T) {
	t.Parallel()

	labels := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		labels[name] = name
	}
	first, err := protobuf.Codec{}.Marshal(&bankpb.Deposited{Labels: labels})
	require.NoError(t, err)
	for range 20 {
		again, err := protobuf.Codec{}.Marshal(&bankpb.Deposited{Labels: labels})
		require.NoError(t, err)
		require.Equal(t, first, again)
	}
}

func TestUnmarshalKeepsNoneOfTheData(t *testing.T) {
	t.Parallel()

	data, err := protobuf.Codec{}.Marshal(wrapperspb.Bytes([]byte("kept")))
	require.NoError(t, err)
	var read wrapperspb.BytesValue
	require.NoError(t, protobuf.Codec{}.Unmarshal(data, &read))
	clear(data)
	assert.Equal(t, "kept", string(read.GetValue()))
}

func TestTextThatIsNotUTF8IsNotWritten(t *testing.T) {
	t.Parallel()

	_, err := Accounts.Encode(deposited(5, "\xff"))
	assert.ErrorAs(t, err, new(*aggregate.UnencodableEventError))
}

type (
	withAnother struct {
		*bankpb.Deposited
		Note string
	}
	byValue       struct{ bankpb.Deposited }
	twice         struct{ Deposited }
	anyMessage    struct{ proto.Message }
	dynamic       struct{ *dynamicpb.Message }
	hiddenMessage = bankpb.Deposited
	hidden        struct{ *hiddenMessage }
	beside        struct{ Last *bankpb.Deposited }
	notAStruct    int
)

func (notAStruct) ProtoReflect() protoreflect.Message { return nil }

func TestTypesThatWouldLoseSomethingAreReported(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		value any
		says  string
	}{
		"a message by value":               {reflect.New(reflect.TypeFor[bankpb.Deposited]()).Elem().Interface(), "a message by value"},
		"a field beside the message":       {withAnother{&bankpb.Deposited{}, "lost"}, "has other fields, which would be lost"},
		"an embedded message by value":     {&byValue{}, "it embeds bankpb.Deposited, which is not a pointer to a message"},
		"a wrapper in a wrapper":           {twice{deposited(1, "EUR")}, "it embeds protobuf_test.Deposited, which is not a pointer"},
		"any message":                      {anyMessage{&bankpb.Deposited{}}, "it embeds protoreflect.ProtoMessage, which is not a pointer"},
		"a dynamic message in a wrapper":   {dynamic{}, "it embeds *dynamicpb.Message, which is not a generated message"},
		"a dynamic message":                {dynamicpb.NewMessage(bankpb.File_bank_proto.Messages().Get(0)), "its zero value is not a message"},
		"a message that is no struct":      {notAStruct(1), "it is not a struct"},
		"an embedded message out of reach": {hidden{}, "under an unexported name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			assert.ErrorContains(t, protobuf.Codec{}.CheckType(reflect.TypeOf(test.value)), test.says)
			_, err := protobuf.Codec{}.Marshal(test.value)
			assert.ErrorContains(t, err, test.says, "also if nobody validates")
			pointer := reflect.TypeOf(test.value)
			if pointer.Kind() != reflect.Pointer {
				pointer = reflect.PointerTo(pointer)
			}
			if name != "a message by value" { // its pointer is valid
				assert.ErrorContains(t, protobuf.Codec{}.Unmarshal(nil, reflect.New(pointer.Elem()).Interface()), test.says)
			}
		})
	}
}

func TestTypesThatAreNotMessagesAreCheckedByTheOtherCodec(t *testing.T) {
	t.Parallel()

	err := protobuf.Codec{}.CheckType(reflect.TypeFor[beside]())
	assert.ErrorContains(t, err, "field Last.state is unexported, so JSON loses it")
	assert.NoError(t, protobuf.Codec{Other: gobCodec{}}.CheckType(reflect.TypeFor[beside]()))
	assert.NoError(t, protobuf.Codec{}.CheckType(reflect.TypeFor[*bankpb.Ledger]()))
}

func TestScenariosWorkWithMessages(t *testing.T) {
	t.Parallel()

	aggregatetest.Given(t, Accounts, deposited(100, "EUR"), Viewed{"Ada"}).
		When(withdraw(30, "EUR")).Then(&Withdrawn{&bankpb.Withdrawn{Amount: 30, Currency: "EUR"}}).
		When(withdraw(71, "EUR")).ThenError(errInsufficientFunds).
		ThenState(Account{&bankpb.Account{
			Balances: map[string]int64{"EUR": 70}, LastDeposit: &bankpb.Deposited{Amount: 100, Currency: "EUR"},
		}})
	aggregatetest.Given(t, Accounts).
		When(func(Account) (aggregate.Events[Account], error) {
			return aggregate.Events[Account]{Viewed{"Ada"}}, nil
		}).
		Then(Viewed{"Ada"}).
		// A snapshot contains an empty message for nil.
		ThenState(Account{})
	aggregatetest.Given(t, Ledgers, &bankpb.Withdrawn{Amount: 1, Currency: "EUR"}).
		When(func(bankpb.Ledger) (aggregate.Events[bankpb.Ledger], error) {
			return aggregate.Events[bankpb.Ledger]{&bankpb.Closed{}}, nil
		}).
		Then(&bankpb.Closed{}).
		ThenState(bankpb.Ledger{Balances: map[string]int64{"EUR": -1}, Closed: true})
}

func TestUpcastersReadAndGiveMessages(t *testing.T) {
	t.Parallel()
	toEuros := func(cents int64) Deposited { return deposited(cents/100, "EUR") }
	accounts := Accounts.WithUpcasters(
		aggregate.Upcast("account.deposited.v1", func(old *bankpb.DepositedV1) Deposited { return toEuros(old.GetCents()) }),
		aggregate.Upcast("account.deposited.v0", func(old struct{ Cents int64 }) Deposited { return toEuros(old.Cents) }).
			WithCodec(aggregate.JSON),
	)
	require.NoError(t, accounts.Validate())
	v1, err := proto.Marshal(&bankpb.DepositedV1{Cents: 500})
	require.NoError(t, err)

	aggregatetest.Given(t, accounts).
		Stored("account.deposited.v0", `{"Cents":300}`).
		Stored("account.deposited.v1", string(v1)).
		ThenStateFunc(func(t testing.TB, a Account) {
			t.Helper()
			assert.EqualValues(t, 8, a.GetBalances()["EUR"])
		})
}

func FuzzUnmarshalGivesAMessageOrAnError(f *testing.F) {
	for _, m := range []proto.Message{&bankpb.Closed{}, deposited(5, "EUR"), &bankpb.Account{Balances: map[string]int64{"EUR": 1}}} {
		data, err := protobuf.Codec{}.Marshal(m)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"Amount":5}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var first, second Account
		if err := (protobuf.Codec{}).Unmarshal(data, &first); err != nil {
			require.Nil(t, first.Account, "no half-read message")
			return
		}
		again, err := protobuf.Codec{}.Marshal(first)
		require.NoError(t, err, "what can be read can be written")
		require.NoError(t, protobuf.Codec{}.Unmarshal(again, &second))
		if !bytes.Equal(data, again) {
			third, err := protobuf.Codec{}.Marshal(second)
			require.NoError(t, err)
			require.Equal(t, again, third)
		}
	})
}

type gobCodec struct{}

func (gobCodec) Marshal(v any) ([]byte, error) {
	var buffer bytes.Buffer
	err := gob.NewEncoder(&buffer).Encode(v)
	return buffer.Bytes(), err
}

func (gobCodec) Unmarshal(data []byte, v any) error {
	if len(data) == 0 {
		return io.ErrUnexpectedEOF
	}
	return gob.NewDecoder(bytes.NewReader(data)).Decode(v)
}
