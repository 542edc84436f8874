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

	// Publisher sends the wake-ups of a [Sender]. The caller closes it after the sender. After an
	// error, all that waited is dropped, and the sender pauses for a second.
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
	// the receiver is subscribed: up to every MaxPollInterval. Set it only if each process that
	// commits sends wake-ups. An event that no wake-up has announced restores normal polling for 5
	// minutes. It has no effect on a group whose Timing.MaxPollInterval is longer. A subscriber
	// that connects again by itself counts as subscribed meanwhile.
	PollRarely bool
	// MaxPollInterval is the longest pause between two polls with PollRarely, plus up to a tenth of
	// it. It is the maximum delay of an event whose wake-up was lost. Default: 10 seconds. Maximum:
	// 20 seconds.
	MaxPollInterval time.Duration
}

// DefaultTopic is the default of [Config].Topic.
const DefaultTopic = "millrace-wakeups"

// maxPollInterval is shorter than the time for which readers remember what was announced.
const maxPollInterval = 20 * time.Second

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
	case c.MaxPollInterval > maxPollInterval:
		return &ConfigError{"MaxPollInterval", "is over 20 seconds, so the loss of wake-ups could not be noticed"}
	}
	return nil
}

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string { return fmt.Sprintf("wakeup: Config.%s %s", e.Field, e.Reason) }
