package packed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
)

func TestOnlyAnEventThatAnItemCountsAndLacksIsMissing(t *testing.T) {
	t.Parallel()
	p := layoutOf()
	event, err := packEvent(&storage.Event{Type: "noted"}, nil)
	require.NoError(t, err)
	joined, err := joinEvents([][]byte{event, event})
	require.NoError(t, err)
	it := p.commitItem(aggregate.ID{Type: "account", Value: "1"}, 7, commitValue("commit"), time.UnixMilli(1), "")
	it[attrCount] = table.NumberValue(3)
	p.setEvents(it, joined)
	parsed, err := p.parse(it)
	require.NoError(t, err)

	for number, missing := range map[uint64]bool{7: false, 8: false, 9: true} {
		_, err = p.recordsOf(parsed)
		corrupt := engine.AsCorrupt(corruptAt(err, number))
		require.NotNil(t, corrupt)
		assert.Equal(t, missing, corrupt.Missing, number)
		if missing {
			assert.Equal(t, number, corrupt.Number)
		}
	}
}
