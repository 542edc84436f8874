package wakeup

import (
	"cmp"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/journal"
)

// Config configures a [Sender] and a [Receiver].
type Config struct {
	// Journal is the journal whose commits a sender reports, and whose readers a receiver wakes.
	Journal *journal.Journal

	// Publisher sends the wake-ups of a [Sender]. The caller closes it after the sender.
	Publisher message.Publisher
	// Subscriber receives the wake-ups of a [Receiver]. It must deliver each message to each
	// process, so it has no consumer group or queue group. The caller closes it after the receiver.
	Subscriber message.Subscriber
	// Topic is the topic of the messages. Everyone who can publish to it can cause reads.
	// Default: "millrace-wakeups".
	Topic string

	// Interval is the time for which a sender collects commits after a message. The first commit
	// after a pause is sent at once. Default: 10 ms.
	Interval time.Duration

	// PollRarely lets groups and broadcasts of this process that find nothing poll less often while
	// the receiver runs: up to every MaxPollInterval. Set it only if each process that commits
	// sends wake-ups. An event that no wake-up has announced restores normal polling for 5 minutes.
	PollRarely bool
	// MaxPollInterval is the longest pause between two polls with PollRarely. It is the delay of an
	// event whose wake-up was lost. Default: 10 seconds.
	MaxPollInterval time.Duration
}

// DefaultTopic is the default of [Config].Topic.
const DefaultTopic = "millrace-wakeups"

func (c *Config) setDefaults() {
	c.Topic = cmp.Or(c.Topic, DefaultTopic)
	c.Interval = cmp.Or(c.Interval, 10*time.Millisecond)
	c.MaxPollInterval = cmp.Or(c.MaxPollInterval, 10*time.Second)
}

func (c *Config) validate() error {
	switch {
	case c.Journal == nil:
		return &ConfigError{"Journal", "is nil; open one with journal.Open"}
	case c.Interval < 0:
		return &ConfigError{"Interval", "is negative; leave it 0 for the default"}
	case c.MaxPollInterval < 0:
		return &ConfigError{"MaxPollInterval", "is negative; leave it 0 for the default"}
	}
	return nil
}

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("wakeup: Config.%s %s", e.Field, e.Reason) }
