package diff

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

type (
	send struct {
		To    string
		Total int
	}
	call struct{ Who string }
)

var sends = Kind{Noun: "command"}

func TestEachListSaysHowItDiffers(t *testing.T) {
	t.Parallel()

	a, b, c := send{To: "a", Total: 1}, send{To: "b", Total: 2}, call{"c"}
	tests := map[string]struct {
		want, got []any
		expected  string
	}{
		"equal":                       {[]any{a, c}, []any{a, c}, ""},
		"none":                        {nil, []any{}, ""},
		"missing":                     {[]any{a, c}, []any{a}, `- missing: command 2, diff.call{Who: "c"}`},
		"missing before equal ones":   {[]any{c, a, a}, []any{a, a}, `- missing: command 1, diff.call{Who: "c"}`},
		"unexpected":                  {[]any{a}, []any{c, a}, `- unexpected: command 1, diff.call{Who: "c"}`},
		"both":                        {[]any{c}, []any{a}, "- missing: command 1, diff.call{Who: \"c\"}\n- unexpected: command 1, diff.send{To: \"a\", Total: 1}"},
		"the first of two equal ones": {[]any{a, c, a}, []any{c, a}, `- missing: command 1, diff.send{To: "a", Total: 1}`},
		"one of two equal ones":       {[]any{a, a}, []any{a}, `- missing: command 2, diff.send{To: "a", Total: 1}`},
		"nearly the same": {
			[]any{c, a},
			[]any{c, send{To: "z", Total: 9}},
			"- command 2, diff.send, differs:\n    To: expected \"a\", got \"z\"\n    Total: expected 1, got 9",
		},
		"the nearest of several": {
			[]any{send{To: "b", Total: 3}},
			[]any{a, b},
			"- command 2, diff.send, differs:\n    Total: expected 3, got 2\n- unexpected: command 1, diff.send{To: \"a\", Total: 1}",
		},
		"nearly the same, in order": {
			[]any{call{"x"}, call{"y"}, call{"z"}},
			[]any{call{"1"}, call{"2"}},
			"- command 1, diff.call, differs:\n    Who: expected \"x\", got \"1\"\n" +
				"- command 2, diff.call, differs:\n    Who: expected \"y\", got \"2\"\n- missing: command 3, diff.call{Who: \"z\"}",
		},
		"a pointer": {
			[]any{&a},
			[]any{a},
			"- command 1, diff.send, differs:\n    the value itself: expected a *diff.send, got a diff.send",
		},
		"the order": {
			[]any{a, b, c},
			[]any{c, a, b},
			`- in another place: command 1 was expected as command 3: diff.call{Who: "c"}`,
		},
		"the order, of one type": {
			[]any{a, b},
			[]any{b, a},
			`- in another place: command 1 was expected as command 2: diff.send{To: "b", Total: 2}`,
		},
		"the order and a field": {
			[]any{a, c},
			[]any{c, send{To: "a", Total: 7}},
			"- command 2, diff.send, differs:\n    Total: expected 1, got 7\n- in another place: command 1 was expected as command 2: diff.call{Who: \"c\"}",
		},
		"nil": {[]any{nil}, []any{a}, "- missing: command 1, nil\n- unexpected: command 1, diff.send{To: \"a\", Total: 1}"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.expected, sends.Compare(test.want, test.got))
		})
	}
}

func TestKindsMayHaveNamesAndNotes(t *testing.T) {
	t.Parallel()

	kind := Kind{
		Noun: "timeout",
		Name: func(v any) string { return `"` + v.(send).To + `"` },
		Note: func(any) string { return "never set" },
	}
	assert.Equal(t, "- timeout 1, \"a\", differs:\n    Total: expected 2, got 1\n"+
		"- missing: timeout 2, diff.send{To: \"b\"} (never set)\n- unexpected: timeout 2, diff.send{To: \"c\"}",
		kind.Compare([]any{send{To: "a", Total: 2}, send{To: "b"}}, []any{send{To: "a", Total: 1}, send{To: "c"}}))
}

func TestManyDifferencesAreCutShort(t *testing.T) {
	t.Parallel()

	text := Fields(make([]int, 100), []int{99: 1})
	assert.Equal(t, "    [99]: expected 0, got 1", text)
	ones := strings.Split(strings.Repeat("1", 100), "")
	lines := strings.Split(Fields(make([]string, 100), ones), "\n")
	assert.Len(t, lines, mostDifferences+1)
	assert.Equal(t, "    and more", lines[mostDifferences])
	assert.Empty(t, Fields(ones, ones))

	assert.Equal(t, `To was "a" and came back as "", Total was 1 and came back as 0`, Changes(send{"a", 1}, send{}))
	assert.True(t, strings.HasSuffix(Changes(make([]string, 100), ones), `[9] was "" and came back as "1", and more`))
	assert.Empty(t, Changes(ones, ones))
}

type status int

func (s status) String() string { return [...]string{"open", "paid"}[s] }

func TestValuesAreShownAsCode(t *testing.T) {
	t.Parallel()

	at := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	one, circle := 1, &node{name: "a"}
	circle.next = circle
	for want, v := range map[string]any{
		`nil`:                                            nil,
		`diff.send{}`:                                    send{},
		`&diff.send{To: "a", Total: 1}`:                  &send{"a", 1},
		`[]diff.send{{To: "a"}, {}}`:                     []send{{To: "a"}, {}},
		`[]*diff.send{&{To: "a"}, nil}`:                  []*send{{To: "a"}, nil},
		`[]interface {}{diff.send{}, 1, "a"}`:            []any{send{}, 1, "a"},
		`map[string]diff.send{"a": {Total: 1}, "b": {}}`: map[string]send{"b": {}, "a": {Total: 1}},
		`diff.record{At: 2024-01-02 03:04:05 +0000 UTC, at: 2024-01-02 03:04:05 +0000 UTC, Free: 7, Ptr: &1}`: record{At: at, at: at, Free: 7, Ptr: &one},
		`diff.record{Func: a func()}`: record{Func: func() {}},
		`1m0s`:                        time.Minute,
		`paid`:                        status(1),
		`12345`:                       *big.NewInt(12345),
		`[]uint8("{}")`:               []byte("{}"),
		`[]uint8{255}`:                []byte{255},
	} {
		assert.Equal(t, want, Show(v))
	}
	assert.Contains(t, Show(circle), "...", "a cycle ends")
	assert.Contains(t, Show(status(7)), "PANIC", "a String that panics ends nothing")
}

func TestEntriesWhoseKeysLookTheSameAreAllCompared(t *testing.T) {
	t.Parallel()

	_, differs := First(map[any]int{1: 1, int64(1): 2}, map[any]int{1: 9, int64(1): 2})
	assert.True(t, differs)
}
