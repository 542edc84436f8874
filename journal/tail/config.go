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
	// Topic is an aggregate type.
	Topic string
	// Since is the time of the earliest event. Default: the beginning.
	Since time.Time
	// Follow continues at the end of the topic with new events, until the context ends.
	Follow bool
	// Interval is the pause after each live read, with Follow. After reads that fail, the pause
	// doubles each time, up to 30 seconds or the Interval if that is longer. Default: 1 second.
	Interval time.Duration
	// TrailingDelay is how long after its time an event may become visible, with Follow: the
	// trailing read comes that late. Default: 10 seconds.
	TrailingDelay time.Duration
	// OnError is called for each item that cannot be read as an event, with a
	// *journal.CorruptItemError, and with Follow for each read that failed and will be repeated.
	// Default: none.
	OnError func(error)
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// ConfigError reports a setting that cannot work.
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
