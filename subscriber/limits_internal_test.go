package subscriber

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMoreIdleAggregatesAreRememberedWithMoreStateBytes(t *testing.T) {
	t.Parallel()
	for stateBytes, idle := range map[int]int{1 << 20: 10_000, 32 << 20: 10_000, 128 << 20: 40_000} {
		assert.Equal(t, idle, defaultLimits(stateBytes).idleStreams)
	}
}
