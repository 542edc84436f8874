package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

type (
	send struct {
		To    string
		Total int
	}
	call struct{ Who string }
	room struct {
		Name  string
		Seats int
		Open  bool
	}
)

func TestEachListSaysHowItDiffers(t *testing.T) {
	t.Parallel()

	a, b, c := send{To: "a", Total: 1}, send{To: "b", Total: 2}, call{"c"}
	const (
		textA = "diff.send{To: \"a\", Total: 1}\n"
		textB = "diff.send{To: \"b\", Total: 2}\n"
		textC = "diff.call{Who: \"c\"}\n"
	)
	tests := map[string]struct {
		want, got []any
		expected  string
	}{
		"equal":                       {[]any{a, c}, []any{a, c}, ""},
		"none":                        {nil, []any{}, ""},
		"missing":                     {[]any{a, c}, []any{a}, "  " + textA + "- " + textC},
		"missing before equal ones":   {[]any{c, a, a}, []any{a, a}, "- " + textC + "  " + textA + "  " + textA},
		"unexpected":                  {[]any{a}, []any{c, a}, "+ " + textC + "  " + textA},
		"both":                        {[]any{c}, []any{a}, "- " + textC + "+ " + textA},
		"the first of two equal ones": {[]any{a, c, a}, []any{c, a}, "- " + textA + "  " + textC + "  " + textA},
		"one of two equal ones":       {[]any{a, a}, []any{a}, "  " + textA + "- " + textA},
		"similar": {
			[]any{c, a, c},
			[]any{c, send{"a", 9}, c},
			"  " + textC + "  diff.send{\n    To:    \"a\",\n-   Total: 1,\n+   Total: 9,\n  }\n  " + textC,
		},
		"the most similar of several": {
			[]any{send{"b", 1}},
			[]any{send{"c", 1}, b, a, send{"b", 1}},
			"+ diff.send{To: \"c\", Total: 1}\n+ " + textB + "+ " + textA + "  diff.send{To: \"b\", Total: 1}\n",
		},
		"nothing in common": {[]any{a}, []any{b}, "- " + textA + "+ " + textB},
		"a pointer":         {[]any{&a}, []any{a}, "- &" + textA + "+ " + textA},
		"the order":         {[]any{a, b, c}, []any{c, a, b}, "+ " + textC + "  " + textA + "  " + textB + "- " + textC},
		"the order and a field": {
			[]any{a, send{"b", 3}, c},
			[]any{c, a, b},
			"+ " + textC + "  " + textA + "  diff.send{\n    To:    \"b\",\n-   Total: 3,\n+   Total: 2,\n  }\n- " + textC,
		},
		"similar values before an equal one": {
			[]any{room{"r1", 1, true}, room{"r2", 2, true}, c},
			[]any{c, room{"r1", 9, true}, room{"r2", 8, true}},
			"+ " + textC + "  diff.room{\n    Name:  \"r1\",\n-   Seats: 1,\n+   Seats: 9,\n    Open:  true,\n  }\n" +
				"  diff.room{\n    Name:  \"r2\",\n-   Seats: 2,\n+   Seats: 8,\n    Open:  true,\n  }\n- " + textC,
		},
		"nil":           {[]any{nil}, []any{a}, "- nil\n+ " + textA},
		"the same text": {[]any{secret{1}}, []any{secret{2}}, "  diff.secret(\n-   {n: 1},\n+   {n: 2},\n  )\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, strings.TrimSuffix(test.expected, "\n"), Lists(test.want, test.got))
		})
	}
}

func TestEqualValuesOfAListAreAbbreviated(t *testing.T) {
	t.Parallel()

	var want []call
	for i := range 20 {
		want = append(want, call{fmt.Sprint(i)})
	}
	want[1].Who = strings.Repeat("é", 200)
	got := append(append([]call{}, want[:12]...), want[13:]...)
	got = append(got, call{"new"})
	assert.Equal(t, `  diff.call{Who: "0"}
  ... // 10 equal values
  diff.call{Who: "11"}
- diff.call{Who: "12"}
  diff.call{Who: "13"}
  ... // 5 equal values
  diff.call{Who: "19"}
+ diff.call{Who: "new"}`, Lists(want, got))
	assert.Equal(t, "  diff.call{Who: \""+strings.Repeat("é", 120-len(`diff.call{Who: "`))+"...\n- diff.call{Who: \"a\"}",
		Lists([]call{want[1], {"a"}}, want[1:2]))
}
