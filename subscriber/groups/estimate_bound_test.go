package groups_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnEstimateOfManyParkedAggregatesIsBounded(t *testing.T) {
	t.Parallel()
	db, s := manyParked(t, 2000)
	recording := db.Record()
	defer recording.Stop()

	lag, err := s.Estimate(t.Context())

	require.NoError(t, err)
	assert.True(t, lag.AtLeast)
	assert.Equal(t, 4*400, lag.Parked, "counted in each shard")
	read, _ := recording.Units()
	assert.Less(t, read, 4*250.0)
}
