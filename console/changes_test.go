package console_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/console"
)

func TestChangesAreTheValuesThatDiffer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		changes       []string
	}{
		"nothing":                    {`{"a":1,"b":[1]}`, `{"b":[1],"a":1}`, nil},
		"a field":                    {`{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3}}`, []string{"a.c: 2 -> 3"}},
		"a new and a removed field":  {`{"a":1}`, `{"b":2}`, []string{"a: 1 -> ", "b:  -> 2"}},
		"null is a value":            {`{"a":null}`, `{}`, []string{"a: null -> "}},
		"an element at the end":      {`[1,2]`, `[1,2,3]`, []string{"[2]:  -> 3"}},
		"an element at the front":    {`[1,2]`, `[0,1,2]`, []string{"[0]:  -> 0"}},
		"an element in the middle":   {`{"a":[1,2,3]}`, `{"a":[1,3]}`, []string{"a[1]: 2 -> "}},
		"one of several that repeat": {`[1,1]`, `[1]`, []string{"[1]: 1 -> "}},
		"another type":               {`{"a":[1]}`, `{"a":{"b":1}}`, []string{`a: [1] -> {"b":1}`}},
		"a large number":             {`12345678901234567`, `12345678901234568`, []string{": 12345678901234567 -> 12345678901234568"}},
	} {
		list, more := console.Changes(c.before, c.after)
		assert.Equal(t, c.changes, list, name)
		assert.Zero(t, more, name)
	}
}

func TestChangesBeyondTheLimitAreCounted(t *testing.T) {
	t.Parallel()
	var fields []string
	for i := range 60 {
		fields = append(fields, fmt.Sprintf(`"%d":1`, i))
	}
	list, more := console.Changes("{}", "{"+strings.Join(fields, ",")+"}")
	assert.Len(t, list, 50)
	assert.Equal(t, 10, more)
}
