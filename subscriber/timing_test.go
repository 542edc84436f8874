package subscriber_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/subscriber"
)

func TestAnErrorNamesTheFieldOfTiming(t *testing.T) {
	t.Parallel()
	j := setup(t, 1)
	for field, change := range map[string]func(*subscriber.Timing){
		"Timing.PollInterval":      func(c *subscriber.Timing) { c.PollInterval = -1 },
		"Timing.MaxPollInterval":   func(c *subscriber.Timing) { c.MaxPollInterval = time.Millisecond },
		"Timing.TrailingDelay":     func(c *subscriber.Timing) { c.TrailingDelay = -1 },
		"Timing.ReconcileInterval": func(c *subscriber.Timing) { c.ReconcileInterval = time.Microsecond },
		"Timing.BehindAfter":       func(c *subscriber.Timing) { c.BehindAfter = -1 },
		"Timing.LeaseDuration":     func(c *subscriber.Timing) { c.LeaseDuration = time.Millisecond },
	} {
		config := quick(j)
		change(&config.Timing)
		_, err := subscriber.NewSubscriber(config, nil)
		var wrong *subscriber.ConfigError
		require.ErrorAs(t, err, &wrong, field)
		assert.Equal(t, field, wrong.Field)
	}
}
