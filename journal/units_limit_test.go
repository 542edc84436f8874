package journal_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

func TestRequestsBeyondALimitOfUnitsFail(t *testing.T) {
	t.Parallel()
	j := testjournal.New(t, dynamotest.New(t).Client(), journal.Config{Layout: journal.Classic, Shards: 1})
	newest := func(limit float64) (read float64, err error) {
		outer, sum := journal.CountUnits(t.Context())
		sum.LimitRead(limit)
		ctx, units := journal.CountUnits(outer) // the outer limit also applies to it
		for range 5 {
			for _, err = range j.Newest(ctx, "cart", 1) {
				return units.Read(), err
			}
		}
		return units.Read(), nil
	}
	read, err := newest(1)
	require.ErrorIs(t, err, journal.ErrUnitLimit)
	assert.InDelta(t, 1.0, read, 0)
	read, err = newest(0)
	require.NoError(t, err)
	assert.InDelta(t, 2.5, read, 0)
}
