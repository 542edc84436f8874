package aggregate_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
)

func TestIDReadsAsTypeHyphenValue(t *testing.T) {
	t.Parallel()

	id, err := aggregate.NewID("user-account", "01H42K4ABWQ5V2XQEP3A48VE0Z")
	require.NoError(t, err)
	assert.Equal(t, "user-account-01H42K4ABWQ5V2XQEP3A48VE0Z", id.String())
	assert.Equal(t, aggregate.ID{Type: "user-account", Value: "01H42K4ABWQ5V2XQEP3A48VE0Z"}, id)
}

func TestIDValueMayBeAnyText(t *testing.T) {
	t.Parallel()

	for _, value := range []string{"7", "a-b-c", "two words", "-", "注文", "line\nbreak", "a/b#c:d"} {
		_, err := aggregate.NewID("account", value)
		assert.NoError(t, err, "value %q", value)
	}
}

func TestIDThatCannotBeAKeyIsRefused(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		aggregateType, value string
		says                 []string
	}{
		"empty type":                {"", "7", []string{`type ""`, `value "7"`, "the type is empty", "set a name"}},
		"empty value":               {"account", "", []string{`type "account"`, "the value is empty"}},
		"type that is not UTF-8":    {"acc\xff", "7", []string{`"acc\xff"`, "the type is not valid UTF-8"}},
		"value that is not UTF-8":   {"account", "\xff", []string{`"\xff"`, "the value is not valid UTF-8", "hexadecimal"}},
		"control character in type": {"acc\nount", "7", []string{"U+000A at byte 3", "leave it out"}},
		"keys that would not fit": {"account", strings.Repeat("x", 1000), []string{
			"(1000 bytes)", "make 1008 bytes", "the limit is 1003", "1024", "shorten the value by 5 bytes",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			id, err := aggregate.NewID(test.aggregateType, test.value)
			require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
			var invalid *aggregate.InvalidIDError
			require.ErrorAs(t, err, &invalid)
			assert.Equal(t, aggregate.ID{Type: test.aggregateType, Value: test.value}, invalid.ID)
			assert.Zero(t, id, "an invalid id must not be usable by accident")
			for _, part := range test.says {
				require.ErrorContains(t, err, part)
			}
			assert.Less(t, len(err.Error()), 500, "a huge id must not make a huge error")
		})
	}
}

func TestIDMayFillTheSortKeyExactly(t *testing.T) {
	t.Parallel()

	longest := strings.Repeat("x", aggregate.MaxIDBytes-len("account-"))
	id, err := aggregate.NewID("account", longest)
	require.NoError(t, err)
	assert.Len(t, id.String()+"-18446744073709551615", 1024, "DynamoDB's limit of a sort key")

	_, err = aggregate.NewID("account", longest+"x")
	assert.ErrorAs(t, err, new(*aggregate.InvalidIDError))
}

func FuzzIDIsRefusedOrFitsASortKey(f *testing.F) {
	f.Add("account", "7")
	f.Add("", "")
	f.Add("a-b", strings.Repeat("é", 600))
	f.Fuzz(func(t *testing.T, aggregateType, value string) {
		id, err := aggregate.NewID(aggregateType, value)
		if err != nil {
			require.ErrorAs(t, err, new(*aggregate.InvalidIDError))
			require.NotEmpty(t, err.Error())
			return
		}
		require.True(t, utf8.ValidString(id.String()))
		require.LessOrEqual(t, len(id.String()+"-18446744073709551615"), 1024)
	})
}

func TestAnErrorShowsAnOddIDQuoted(t *testing.T) {
	t.Parallel()

	plain, odd := aggregate.ID{Type: "account", Value: "7"}, aggregate.ID{Type: "account", Value: "7\x1b[2J\n\u009b\u202e"}
	assert.Equal(t, `account-7 account-7 "account-7" account-7   `, fmt.Sprintf("%s %v %q %-12v", plain, plain, plain, plain))
	assert.Equal(t, `"account-7\x1b[2J\n\u009b\u202e"`, fmt.Sprint(odd))
	assert.Equal(t, `"account-7\x1b[2J\n\u009b\u202e"`, fmt.Sprintf("%q", odd))
	assert.Equal(t, "account-7\x1b[2J\n\u009b\u202e", odd.String(), "the text of keys")
}
