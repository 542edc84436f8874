package diff

import (
	"encoding/json"
	"math"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type node struct {
	name string
	next *node
}

type record struct {
	At     time.Time
	at     time.Time
	Free   any
	Ptr    *int
	Lines  []node
	ByName map[string]node
	Func   func()
	Chan   chan int
}

// folded equals another folded that differs only in upper and lower case.
type folded string

func (f folded) Equal(other folded) bool { return len(f) == len(other) }

// linked has a method Equal that must not be called with nil.
type linked struct{ n int }

func (l *linked) Equal(other *linked) bool { return l.n == other.n }

// shorter has a method Equal that is not symmetric.
type shorter string

func (s shorter) Equal(other shorter) bool { return len(s) <= len(other) }

// secret shows no contents.
type secret struct{ n int }

func (secret) String() string { return "***" }

func TestValuesWithTheSameContentsAreEqual(t *testing.T) {
	t.Parallel()

	one, uno := 1, 1
	now := time.Now()
	sameInstant := now.Round(0).In(time.FixedZone("elsewhere", 3600))
	circle, ring := &node{name: "a"}, &node{name: "a"}
	circle.next, ring.next = circle, ring
	used := structpb.NewStringValue("a")
	_, err := proto.Marshal(used)
	assert.NoError(t, err)

	for name, pair := range map[string][2]any{
		"nothing":                  {nil, nil},
		"numbers":                  {1, 1},
		"not a number":             {math.NaN(), math.NaN()},
		"pointers":                 {&one, &uno},
		"interfaces":               {record{Free: &one}, record{Free: &uno}},
		"nil and empty slice":      {[]int(nil), []int{}},
		"nil and empty map":        {map[int]int(nil), map[int]int{}},
		"one instant":              {now, sameInstant},
		"one instant, unexported":  {record{at: now}, record{at: sameInstant}},
		"in a map, unexported":     {map[string]record{"a": {at: now}}, map[string]record{"a": {at: sameInstant}}},
		"a type's own idea of it":  {folded("abc"), folded("ABC")},
		"big numbers":              {big.NewInt(7), new(big.Int).Sub(big.NewInt(1<<40), big.NewInt(1<<40-7))},
		"addresses":                {netip.MustParseAddr("fe80::1%a"), netip.MustParseAddr("fe80::1%a")},
		"cycles":                   {circle, ring},
		"functions":                {record{Func: func() {}}, record{Func: func() {}}},
		"channels":                 {record{Chan: make(chan int)}, record{Chan: make(chan int)}},
		"nil pointers with Equal":  {(*time.Time)(nil), (*time.Time)(nil)},
		"nil pointers that panic":  {(*linked)(nil), (*linked)(nil)},
		"pointers to equal values": {&now, &sameInstant},
		"a message that was used":  {used, structpb.NewStringValue("a")},
		"nil and empty message":    {(*structpb.Struct)(nil), &structpb.Struct{}},
		"empty and nil message":    {&wrapperspb.Int64Value{}, (*wrapperspb.Int64Value)(nil)},
	} {
		assert.Empty(t, Values(pair[0], pair[1]), name)
	}
}

func TestDifferencesAreShownInTheirPlace(t *testing.T) {
	t.Parallel()

	one, two := 1, 2
	at := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]struct {
		first, second any
		expected      string // the lines with a sign
	}{
		"values":              {1, 2, "- 1,\n+ 2,"},
		"texts":               {"a", "b", "- \"a\",\n+ \"b\","},
		"types":               {1, int64(1), "- int(1),\n+ int64(1),"},
		"nothing":             {nil, 1, "+ int(1),"},
		"floats":              {1.5, math.NaN(), "- 1.5,\n+ NaN,"},
		"pointers":            {record{Ptr: &one}, record{Ptr: &two}, "- Ptr: &1,\n+ Ptr: &2,"},
		"nil pointer":         {record{Ptr: &one}, record{}, "- Ptr: &1,\n+ Ptr: nil,"},
		"nil with Equal":      {[]*linked{nil}, []*linked{{1}}, "+ &{n: 1},"},
		"types of interface":  {record{Free: 1}, record{Free: "1"}, "- Free: int(1),\n+ Free: string(\"1\"),"},
		"a type with String":  {record{Free: 1}, record{Free: json.Number("1")}, "- Free: int(1),\n+ Free: s\"1\",\n- type of Free: int\n+ type of Free: json.Number"},
		"nil interface":       {record{Free: 1}, record{}, "- Free: int(1),\n+ Free: nil,"},
		"nil function":        {[]func(){nil}, []func(){func() {}}, "- ⟪0x00⟫,\n+ ⟪0x"},
		"instants":            {record{At: at}, record{At: at.Add(1)}, "- At: s\"2024-01-02 03:04:05 +0000 UTC\",\n+ At: s\"2024-01-02 03:04:05.000000001 +0000 UTC\","},
		"unexported instants": {record{at: at}, record{at: at.Add(1)}, "- at: s\"2024-01-02 03:04:05 +0000 UTC\",\n+ at: s\"2024-01-02 03:04:05.000000001 +0000 UTC\","},
		"unexported field":    {node{name: "a"}, node{name: "b"}, "- name: \"a\",\n+ name: \"b\","},
		"deep": {
			record{Lines: []node{{}, {next: &node{name: "a"}}}},
			record{Lines: []node{{}, {next: &node{name: "b"}}}},
			"- name: \"a\",\n+ name: \"b\",",
		},
		"length":             {[]int{1, 2, 3}, []int{1, 3}, "- 2,"},
		"entry of a map":     {map[string]int{"a": 1}, map[string]int{"a": 2}, "- \"a\": 1,\n+ \"a\": 2,"},
		"entry that is gone": {map[string]int{"a": 1, "b": 1}, map[string]int{"b": 1}, "- \"a\": 1,"},
		"keys that look the same": {
			map[any]int{1: 1, int64(1): 2}, map[any]int{1: 9, int64(1): 2}, "- int(1): 1,\n+ int(1): 9,",
		},
		"own idea of it":    {folded("abc"), folded("ab"), "- \"abc\",\n+ \"ab\","},
		"big numbers":       {[]*big.Int{big.NewInt(7)}, []*big.Int{new(big.Int).Lsh(big.NewInt(1), 70)}, "- s\"7\",\n+ s\"1180591620717411303424\","},
		"what String hides": {[]secret{{1}}, []secret{{2}}, "- {n: 1},\n+ {n: 2},"},
		"messages":          {wrapperspb.Int64(1), wrapperspb.Int64(2), "- Value: 1,\n+ Value: 2,"},
		"nil and a message": {(*wrapperspb.Int64Value)(nil), wrapperspb.Int64(2), "+ "},
		"Equal that is odd": {[]shorter{"a"}, []shorter{"ab"}, "cannot be compared: non-deterministic or non-symmetric function detected"},
		"keys that are NaN": {map[float64]int{math.NaN(): 1}, map[float64]int{math.NaN(): 1}, "map[float64]int cannot be compared: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			text := Values(test.first, test.second)
			var signed []string
			for line := range strings.Lines(text) {
				if !strings.HasPrefix(line, "  ") || strings.Contains(line, "cannot be compared") {
					signed = append(signed, strings.Join(strings.Fields(line), " "))
				}
			}
			assert.Contains(t, strings.Join(signed, "\n"), test.expected, text)
			assert.NotContains(t, text, "\u00a0")
		})
	}
}

// Go-cmp panics if a method Equal is not symmetric, but checks this only now and then.
func TestValuesThatCannotBeComparedPassNoPanicOn(t *testing.T) {
	t.Parallel()

	for range 100 {
		assert.NotPanics(t, func() { Lists([]shorter{"a", "b"}, []shorter{"abc", "ab", "abcd"}) })
	}
	assert.Contains(t, Lists([]any{map[float64]int{math.NaN(): 1}}, []any{map[float64]int{math.NaN(): 1}}), "cannot be compared")
}
