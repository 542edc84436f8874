package publisher

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Config says where messages go. Only Journal is required.
type Config struct {
	// Journal is where the messages are appended. Share it with the subscribers of the process:
	// they wake up at once when something is published.
	Journal *journal.Journal

	// AggregateID finds the id of the aggregate that a message belongs to. An empty one means the
	// stream of this Publisher. An error refuses the whole Publish. It is called by many goroutines
	// at once and must not change the message. Default: the metadata [AggregateIDKey].
	AggregateID func(topic string, msg *message.Message) (string, error)

	// StreamID is the id of the aggregate, in every topic, that takes the messages without an id.
	// Two processes with the same one share a stream, which works and costs conflicts; a fixed one
	// for each process keeps the number of streams small. Default: "publisher-" and a random UUID.
	StreamID string

	// Marshaler turns messages into events. Default: [DefaultMarshaler].
	Marshaler Marshaler

	// Concurrency is how many aggregates one Publish appends to at a time. Default: 8.
	Concurrency int

	// CommitTimeout bounds one commit, with all its repetitions after conflicts, throttling, lost
	// replies and while DynamoDB cannot be reached. It should be longer than an outage that
	// publishing is to survive, and than journal.Config.RetryBudget, which bounds each attempt.
	// When a reply stays lost, up to 5 seconds more go into finding out what has become of the
	// commit. Default: 30 seconds.
	CommitTimeout time.Duration

	// CachedStreams is how many aggregates that nobody is publishing to are remembered with their
	// versions, some 200 bytes each. For others the first commit reads the head, one more round
	// trip. Default: 10,000.
	CachedStreams int

	// CloseTimeout is how long [Publisher.Close] waits for what is under way before it cuts it off.
	// Default: 5 seconds, as that of subscriber.Config.
	CloseTimeout time.Duration
}

func (c *Config) setDefaults() {
	if c.AggregateID == nil {
		c.AggregateID = aggregateIDFromMetadata
	}
	if c.StreamID == "" && c.Journal != nil {
		c.StreamID = "publisher-" + c.Journal.Config().NewID()
	}
	if c.Marshaler == nil {
		c.Marshaler = DefaultMarshaler{}
	}
	if c.Concurrency == 0 {
		c.Concurrency = 8
	}
	if c.CommitTimeout == 0 {
		c.CommitTimeout = 30 * time.Second
	}
	if c.CachedStreams == 0 {
		c.CachedStreams = 10_000
	}
	if c.CloseTimeout == 0 {
		c.CloseTimeout = 5 * time.Second
	}
}

func aggregateIDFromMetadata(_ string, msg *message.Message) (string, error) {
	return msg.Metadata[AggregateIDKey], nil
}

// Validate reports the first setting that cannot work, as a [*ConfigError].
func (c Config) Validate() error {
	if c.Journal == nil {
		return &ConfigError{Field: "Journal", Reason: "is nil: open one with journal.Open"}
	}
	if !utf8.ValidString(c.StreamID) {
		return &ConfigError{Field: "StreamID", Reason: "is not valid UTF-8: use plain text"}
	}
	if most := aggregate.MaxIDBytes / 2; len(c.StreamID) > most {
		return &ConfigError{Field: "StreamID", Reason: fmt.Sprintf("has %d bytes: use at most %d, which leaves room for the topic", len(c.StreamID), most)}
	}
	for _, number := range []struct {
		field string
		value int64
	}{
		{"Concurrency", int64(c.Concurrency)},
		{"CommitTimeout", int64(c.CommitTimeout)},
		{"CachedStreams", int64(c.CachedStreams)},
		{"CloseTimeout", int64(c.CloseTimeout)},
	} {
		if number.value < 0 {
			return &ConfigError{Field: number.field, Reason: "is negative: leave it 0 for the default"}
		}
	}
	return nil
}
