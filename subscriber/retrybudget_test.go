package subscriber_test

import (
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// infos stores the lines that are logged as information.
type infos struct {
	watermill.NopLogger
	mu   sync.Mutex
	said []string
}

func (l *infos) Info(msg string, _ watermill.LogFields) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = append(l.said, msg)
}

func TestASubscriberLogsARetryBudgetAboveTrailingDelay(t *testing.T) {
	t.Parallel()
	client := create(t, 1)
	for name, of := range map[string]struct {
		budget, delay time.Duration
		says          bool
	}{
		"by default":     {0, 0, false},
		"just below":     {2 * time.Second, 2*time.Second + 1, false},
		"as long":        {2 * time.Second, 2 * time.Second, true},
		"longer":         {time.Minute, 2 * time.Second, true},
		"as the default": {10 * time.Second, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := testjournal.Open(t, client, journal.Config{RetryBudget: of.budget})
			config, logger := quick(j), &infos{}
			config.Timing.TrailingDelay = of.delay

			sub, err := subscriber.NewSubscriber(config, logger)
			require.NoError(t, err)
			require.NoError(t, sub.Close())
			if !of.says {
				assert.Empty(t, logger.said)
				return
			}
			require.Len(t, logger.said, 1, "once for each subscriber")
			assert.Contains(t, logger.said[0], "RetryBudget is not below TrailingDelay")
		})
	}
}
