package tail

import (
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Config configures [Run]. Journal and Topic are required.
type Config struct {
	Journal *journal.Journal
	// Topic is an aggregate type, whose events are read.
	Topic string
	// Since is the earliest time of events to pass. Default: zero, which begins with the first
	// event.
	Since time.Time
	// Follow waits for new events at the end of the topic, until ctx ends. Default: false.
	Follow bool
	// Interval is the pause after each live read, with Follow. After each failed read the pause
	// doubles, up to 30 seconds, or up to Interval if that is longer. Default: 1 second.
	Interval time.Duration
	// TrailingDelay is how long after its time an event may become visible, with Follow. The
	// trailing read reads a time this long afterwards. Default: 10 seconds.
	TrailingDelay time.Duration
	// OnError is called with a *journal.CorruptItemError for each item that cannot be decoded. With
	// Follow it is also called for each failed read, which will be repeated. Default: nil, which
	// ignores these errors.
	OnError func(error)
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("tail config: %s %s", e.Field, e.Reason) }

func (c *Config) validate() error {
	switch {
	case c.Journal == nil:
		return &ConfigError{"Journal", "is nil"}
	case c.Interval < 0:
		return &ConfigError{"Interval", "is negative"}
	case c.TrailingDelay < 0:
		return &ConfigError{"TrailingDelay", "is negative"}
	}
	return (aggregate.ID{Type: c.Topic, Value: "x"}).Validate()
}

func (c *Config) setDefaults() {
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.TrailingDelay == 0 {
		c.TrailingDelay = 10 * time.Second
	}
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}
