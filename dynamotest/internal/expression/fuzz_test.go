package expression_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// fuzz feeds an evaluator with the expressions of tables and what the fuzzer makes of them. It must
// not panic, must give the same each time, and must leave what it was given alone.
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
