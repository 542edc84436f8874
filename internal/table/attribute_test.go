package table

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersOfAllSizesAreStoredAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, n := range []uint64{0, 1, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64} {
		got, ok := UintOf(NumberValue(n))
		require.True(t, ok)
		require.Equal(t, n, got)
	}
	for _, n := range []int64{math.MinInt64, -1, 0, math.MaxInt64} {
		got, ok := IntOf(NumberValue(n))
		require.True(t, ok)
		require.Equal(t, n, got)
	}
}
