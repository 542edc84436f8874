package console_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/console"
)

func TestARateIsWhatWasWrittenMinusTheGrowthOfTheLag(t *testing.T) {
	t.Parallel()
	var rates console.Rates
	at := time.Unix(1_700_000_000, 0)
	written := 5.0
	assert.Nil(t, rates.Handled(at, 100, true, &written), "one read is not enough")

	grown := rates.Handled(at.Add(10*time.Second), 120, true, &written)
	require.NotNil(t, grown)
	assert.InDelta(t, 3, *grown, 1e-9)
	shrunk := rates.Handled(at.Add(20*time.Second), 0, true, &written)
	require.NotNil(t, shrunk)
	assert.InDelta(t, 17, *shrunk, 1e-9)
	idle := rates.Handled(at.Add(30*time.Second), 0, true, &written)
	require.NotNil(t, idle)
	assert.InDelta(t, 5, *idle, 1e-9)

	assert.Nil(t, rates.Handled(at.Add(40*time.Second), 100, false, &written), "there are more events than were counted")
	assert.Nil(t, rates.Handled(at.Add(50*time.Second), 100, true, &written), "the lag before was not known")
	assert.Nil(t, rates.Handled(at.Add(time.Hour), 100, true, &written), "the lag before is too old")
	assert.Nil(t, rates.Handled(at.Add(time.Hour+10*time.Second), 100, true, nil), "the rate of written events is not known")
}
