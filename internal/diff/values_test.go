package diff

import (
	"math"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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
}

// folded equals another folded that differs only in upper and lower case.
type folded string

func (f folded) Equal(other folded) bool { return len(f) == len(other) }

func TestValuesWithTheSameContentsAreEqual(t *testing.T) {
	t.Parallel()

	one, uno := 1, 1
	now := time.Now()
	sameInstant := now.Round(0).In(time.FixedZone("elsewhere", 3600))
	circle, ring := &node{name: "a"}, &node{name: "a"}
	circle.next, ring.next = circle, ring

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
		"nil pointers with Equal":  {(*time.Time)(nil), (*time.Time)(nil)},
		"pointers to equal values": {&now, &sameInstant},
	} {
		d, differs := First(pair[0], pair[1])
		assert.False(t, differs, "%s: %+v", name, d)
	}
}

func TestDifferencesAreNamedWithTheirPlace(t *testing.T) {
	t.Parallel()

	one, two := 1, 2
	at := time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]struct {
		want, got any
		expected  Difference
	}{
		"values":             {1, 2, Difference{"the value itself", "1", "2"}},
		"texts":              {"a", "b", Difference{"the value itself", `"a"`, `"b"`}},
		"types":              {1, int64(1), Difference{"the value itself", "a int", "a int64"}},
		"nothing":            {nil, 1, Difference{"the value itself", "nil", "1"}},
		"floats":             {1.5, math.NaN(), Difference{"the value itself", "1.5", "NaN"}},
		"pointers":           {record{Ptr: &one}, record{Ptr: &two}, Difference{"Ptr", "1", "2"}},
		"nil pointer":        {record{Ptr: &one}, record{}, Difference{"Ptr", "&1", "nil"}},
		"types of interface": {record{Free: 1}, record{Free: "1"}, Difference{"Free", "a int", "a string"}},
		"nil interface":      {record{Free: 1}, record{}, Difference{"Free", "1", "nil"}},
		"nil function":       {record{}, record{Func: func() {}}, Difference{"Func", "nil", "a func()"}},
		"instants":           {record{At: at}, record{At: at.Add(1)}, Difference{"At", "2024-01-02 03:04:05 +0000 UTC", "2024-01-02 03:04:05.000000001 +0000 UTC"}},
		"unexported field":   {node{name: "a"}, node{name: "b"}, Difference{"name", `"a"`, `"b"`}},
		"deep": {
			record{Lines: []node{{}, {next: &node{name: "a"}}}},
			record{Lines: []node{{}, {next: &node{name: "b"}}}},
			Difference{"Lines[1].next.name", `"a"`, `"b"`},
		},
		"length":             {[]int{1, 2}, []int{1}, Difference{"the value itself", "2 elements", "1 element"}},
		"entry of a map":     {map[string]int{"a": 1}, map[string]int{"a": 2}, Difference{`["a"]`, "1", "2"}},
		"entry that is gone": {map[string]int{"a": 1}, map[string]int{}, Difference{`["a"]`, "1", "no entry"}},
		"entry that is new":  {map[string]int{}, map[string]int{"a": 1}, Difference{`["a"]`, "no entry", "1"}},
		"own idea of it":     {folded("abc"), folded("ab"), Difference{"the value itself", `"abc"`, `"ab"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			found, differs := First(test.want, test.got)
			assert.True(t, differs)
			assert.Equal(t, test.expected, found)
		})
	}
}
