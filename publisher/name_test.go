package publisher_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/millrace-dev/millrace/publisher"
)

type namedByValue struct{}

func (namedByValue) EventType() string { return "by.value" }

type namedByPointer struct{ _ int }

func (*namedByPointer) EventType() string { return "by.pointer" }

type unnamed struct{}

func TestAnEventHasTheNameOfItsTypeAndAnythingElseThatOfWatermill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    any
		want string
	}{
		{namedByValue{}, "by.value"},
		{&namedByValue{}, "by.value"},
		{namedByPointer{}, "by.pointer"},
		{&namedByPointer{}, "by.pointer"},
		{unnamed{}, "publisher_test.unnamed"},
		{&unnamed{}, "publisher_test.unnamed"},
		{&wrapperspb.Int64Value{}, "wrapperspb.Int64Value"},
		{nil, "<nil>"},
	} {
		assert.Equal(t, c.want, publisher.EventName(c.v), "%T", c.v)
		assert.Equal(t, c.want, publisher.EventNames()(c.v), "%T", c.v)
	}
}

type wrapsInt struct{ *wrapperspb.Int64Value }

func (wrapsInt) EventType() string { return "wraps.int" }

type wrapsText struct{ *wrapperspb.StringValue }

func (*wrapsText) EventType() string { return "wraps.text" }

type wrapsTextToo struct{ *wrapperspb.StringValue }

func (wrapsTextToo) EventType() string { return "wraps.text.too" }

func TestAMessageHasTheNameOfTheOnlyEventThatWrapsIt(t *testing.T) {
	t.Parallel()
	names := publisher.EventNames(wrapsInt{}, &wrapsText{}, namedByValue{}, nil)
	assert.Equal(t, "wraps.int", names(&wrapperspb.Int64Value{}))
	assert.Equal(t, "wraps.int", names(wrapsInt{}))
	assert.Equal(t, "wraps.text", names(&wrapperspb.StringValue{}))
	assert.Equal(t, "by.value", names(&namedByValue{}))
	assert.Equal(t, "wrapperspb.BoolValue", names(&wrapperspb.BoolValue{}))

	names = publisher.EventNames(&wrapsText{}, wrapsTextToo{})
	assert.Equal(t, "wrapperspb.StringValue", names(&wrapperspb.StringValue{}), "it may be either")
	assert.Equal(t, "wraps.text.too", names(wrapsTextToo{}))
}
