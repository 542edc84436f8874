package publisher

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Config configures a [Publisher]. Only Journal is required.
type Config struct {
	// Journal is the journal to which messages are appended. Share it with the subscribers of the
	// process: they then read new events at once.
	Journal *journal.Journal

	// AggregateID returns the id of the aggregate to which a message belongs. An empty id means the
	// stream of this Publisher. An error refuses the whole Publish. It must be safe for concurrent
	// use, and must not change the message. Default: it returns the metadata [AggregateIDKey].
	AggregateID func(topic string, msg *message.Message) (string, error)

	// StreamID is the id of the aggregate, in every topic, for messages without an id. A fixed id
	// for each process keeps the number of streams small. Two processes may have the same id, but
	// then their commits conflict. Default: "publisher-" and a random UUID.
	StreamID string

	// Streams is the number of streams over which messages without an id are spread, by their
	// UUIDs. The others have the id StreamID, a hyphen and a number from 2. With more than one,
	// these messages have no order, and a message that fails holds up only its own stream.
	// Default: 1.
	Streams int

	// Queues are topics of messages that can be removed when they are handled, such as commands.
	// The publisher marks all messages to them, also those with an aggregate id, so that
	// groups.Groups.Trim and TrimDue remove them. A topic whose aggregates a repository writes is
	// no queue. Default: none, so only messages without an aggregate id are marked.
	Queues []string

	// Marshaler converts messages to events. Default: [DefaultMarshaler].
	Marshaler Marshaler

	// Concurrency is the number of aggregates that one Publish appends to at a time. Default: 8.
	Concurrency int

	// CommitTimeout limits one commit, including its repetitions after conflicts, throttling, lost
	// replies and outages. Choose it longer than the outages that publishing must survive, and
	// longer than journal.Config.RetryBudget, which limits each attempt. If the outcome of the
	// commit is unknown at the end, Publish reads the table for up to 5 seconds more to find it
	// out. Default: 30 seconds.
	CommitTimeout time.Duration

	// CachedStreams is the number of aggregates whose versions are cached while there is nothing to
	// publish to them, about 200 bytes each. The first commit to any other aggregate reads the
	// head, which is one more round trip. Default: 10,000.
	CachedStreams int

	// CloseTimeout is the time that [Publisher.Close] waits for commits before it cancels them.
	// Default: 5 seconds.
	CloseTimeout time.Duration
}

func (c *Config) setDefaults() {
	if c.AggregateID == nil {
		c.AggregateID = aggregateIDFromMetadata
	}
	if c.StreamID == "" && c.Journal != nil {
		c.StreamID = "publisher-" + c.Journal.Config().NewID()
	}
	c.Streams = max(c.Streams, 1)
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

// validate returns a [*ConfigError] for the first invalid setting.
func (c Config) validate() error {
	if c.Journal == nil {
		return &ConfigError{Field: "Journal", Reason: "is nil: open one with journal.Open"}
	}
	if !utf8.ValidString(c.StreamID) {
		return &ConfigError{Field: "StreamID", Reason: "is not valid UTF-8: use plain text"}
	}
	if most := aggregate.MaxIDBytes / 2; len(c.StreamID) > most {
		return &ConfigError{Field: "StreamID", Reason: fmt.Sprintf("has %d bytes: use at most %d, which leaves room for the topic", len(c.StreamID), most)}
	}
	for _, topic := range c.Queues {
		if err := checkTopic(topic); err != nil {
			return &ConfigError{Field: "Queues", Reason: fmt.Sprintf("has %q: %v", topic, err)}
		}
	}
	for _, number := range []struct {
		field string
		value int64
	}{
		{"Streams", int64(c.Streams)},
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
