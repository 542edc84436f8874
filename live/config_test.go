package live_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestSettingsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for field, change := range map[string]func(*live.Config){
		"Journal":         func(c *live.Config) { c.Journal = nil },
		"Topics":          func(c *live.Config) { c.Topics = nil },
		"Group":           func(c *live.Config) { c.Group = "" },
		"WaitTimeout":     func(c *live.Config) { c.WaitTimeout = -1 },
		"RefreshInterval": func(c *live.Config) { c.RefreshInterval = -1 },
		"WriteTimeout":    func(c *live.Config) { c.WriteTimeout = -1 },
		"ReconnectDelay":  func(c *live.Config) { c.ReconnectDelay = -1 },
	} {
		config := f.config()
		change(&config)
		_, err := live.New(config)
		var refused *live.ConfigError
		if assert.ErrorAs(t, err, &refused, field) {
			assert.Equal(t, field, refused.Field)
			assert.Contains(t, err.Error(), "live config: "+field+" ")
		}
	}
	for _, topics := range [][]string{{""}, {"counter", "counter"}} {
		config := f.config()
		config.Topics = topics
		_, err := live.New(config)
		require.ErrorAs(t, err, new(*live.ConfigError))
	}
	both := f.waiting(applied)
	both.Group = "model"
	_, err := live.New(both)
	require.ErrorAs(t, err, new(*live.ConfigError))
	refused := f.config()
	refused.Subscriber.PollInterval = -1
	_, err = live.New(refused)
	require.ErrorAs(t, err, new(*subscriber.ConfigError))
}

func TestAFeedThatIsClosedBeforeItRunsDoesNotRun(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed, err := live.New(f.config())
	require.NoError(t, err)
	require.NoError(t, feed.Close())
	require.NoError(t, feed.Run(context.WithoutCancel(t.Context())))
}
