package expression_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// fuzz calls an evaluator with the expressions of tables and their mutations. The evaluator must
// not panic, must return the same result each time, and must not change its arguments.
func fuzz(f *testing.F, groups []group, evaluate evaluator) {
	for _, g := range groups {
		for _, r := range g.rows {
			f.Add(r.expression)
		}
	}
	item, given := showItem(fixture), showItem(values)
	f.Fuzz(func(t *testing.T, source string) {
		first := evaluate(source)
		assert.Equal(t, first, evaluate(source), "the second time")
		assert.Equal(t, item, showItem(fixture), "the item has changed")
		assert.Equal(t, given, showItem(values), "the values have changed")
	})
}

func FuzzCondition(f *testing.F) { fuzz(f, conditions, ourCondition) }

func FuzzUpdate(f *testing.F) { fuzz(f, updates, ourUpdate) }

func FuzzProjection(f *testing.F) { fuzz(f, projections, ourProjection) }

func FuzzKeyCondition(f *testing.F) { fuzz(f, stringKeys, ourKeyCondition("S")) }
