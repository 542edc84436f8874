package live

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/aggregate"
)

func TestLateAggregatesAreBounded(t *testing.T) {
	t.Parallel()
	var l late
	for n := range 2 * maxLate {
		l.note(aggregate.ID{Type: "room", Value: strconv.Itoa(n)}, true)
		if len(l.ids) > maxLate {
			break
		}
	}
	assert.LessOrEqual(t, len(l.ids), maxLate)
}
