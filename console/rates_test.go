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
	began := time.Unix(1_700_000_000, 0)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	// 50 events in each 10 seconds until 30, and none later.
	written := []time.Time{at(-30)}
	for i := range 300 {
		written = append(written, at(-30).Add(time.Duration(i)*200*time.Millisecond))
	}
	is := func(want float64, got *float64) {
		t.Helper()
		require.NotNil(t, got)
		assert.InDelta(t, want, *got, 1e-9)
	}
	assert.Nil(t, rates.Handled(at(0), 100, true, written[:151]), "one read is not enough")
	is(3, rates.Handled(at(10), 120, true, written[:201]))
	is(17, rates.Handled(at(20), 0, true, written[:251]))
	is(5, rates.Handled(at(30), 0, true, written))
	is(0, rates.Handled(at(40), 50, true, written))
	is(0, rates.Handled(at(50), 50, true, written)) // nothing was written, and nothing was handled

	assert.Nil(t, rates.Handled(at(60), 100, false, written), "there are more events than were counted")
	assert.Nil(t, rates.Handled(at(70), 100, true, written), "the lag before was not known")
	assert.Nil(t, rates.Handled(at(3600), 100, true, written), "the lag before is too old")
	assert.Nil(t, rates.Handled(at(3610), 100, true, nil), "the number of written events is not known")
}
