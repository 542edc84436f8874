package subscriber

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/journal"
)

// Errors of this package, for errors.Is.
var (
	// ErrSubscriberClosed: Subscribe after Close.
	ErrSubscriberClosed = errors.New("subscriber is closed")
	// ErrInvalidConfig: a setting that cannot work. See [ConfigError].
	ErrInvalidConfig = errors.New("invalid subscriber config")
	// ErrEmptyTopic: a topic is an aggregate type and has a name.
	ErrEmptyTopic = errors.New("empty topic: name the aggregate type to subscribe to")
	// ErrFenced: another member of the group has taken over; what this one did not
	// commit, the other does again.
	ErrFenced = checkpoint.ErrFenced
	// ErrNoPosition: the message does not come from a subscriber of this package, or
	// its positions are kept in a store that cannot take part in a DynamoDB transaction.
	ErrNoPosition = errors.New("message carries no position that a transaction can commit")
)

// ConfigError is an [ErrInvalidConfig].
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("subscriber config: %s %s", e.Field, e.Reason)
}

// Is makes errors.Is(err, ErrInvalidConfig) true.
func (e *ConfigError) Is(target error) bool { return target == ErrInvalidConfig }

// Unmarshaler makes messages of records. The subscriber sets the message's context.
type Unmarshaler interface {
	Unmarshal(r *journal.Record) (*message.Message, error)
}

// UnmarshalerFunc is a function as an [Unmarshaler].
type UnmarshalerFunc func(r *journal.Record) (*message.Message, error)

// Unmarshal calls f.
func (f UnmarshalerFunc) Unmarshal(r *journal.Record) (*message.Message, error) { return f(r) }

// PositionStore keeps how far a group has got with each aggregate: the number of the last
// acked event. An epoch is the term of one owner; a store must refuse with
// [ErrFenced] whoever comes with an older epoch than the one it has seen, or from
// another position than the one it has.
type PositionStore interface {
	// Claim makes epoch the only one that may advance the position, and gives it; 0 for none yet.
	Claim(ctx context.Context, group string, id aggregate.ID, epoch uint64) (position uint64, err error)
	// Advance moves the position.
	Advance(ctx context.Context, group string, id aggregate.ID, epoch, from, to uint64) error
}

// Config configures a [Subscriber]. Journal and ConsumerGroup are required.
type Config struct {
	// Journal is what to tail. Commits that go through the same Journal wake the
	// subscriber at once.
	Journal *journal.Journal

	// ConsumerGroup names those who share the work: each event reaches each group.
	// It must not contain a slash. A new group starts at the beginning of the journal.
	ConsumerGroup string

	// MaxInFlight is how many messages, each of another aggregate, are
	// out for handling at a time. Default: 64.
	MaxInFlight int

	// BufferBytes is about how much of the journal is held in memory ahead of the
	// handlers, for each subscription. Default: 32 MiB.
	BufferBytes int

	// NackResendSleep is the pause before a nacked message comes again. Only its own
	// aggregate waits. Default: 100 ms; negative for none.
	NackResendSleep time.Duration

	// PollInterval is the pause after which a shard whose tail is read to the end is looked at
	// again. It grows while nothing comes, up to MaxPollInterval, and is the latency
	// of events that other processes commit. A look costs half a read unit for each
	// shard. Defaults: 200 ms and 1 second.
	PollInterval, MaxPollInterval time.Duration

	// TrailingDelay is how much later a second look is taken at the same stretch of
	// the tail, because its index is eventually consistent and the clocks of writers
	// differ. It must be longer than both together and than the time that writers repeat a commit
	// (journal.Config.RetryBudget), since events are dated when the commit is made; an event that shows up later
	// still is only found once its aggregate gets another event. Default: 10 seconds.
	TrailingDelay time.Duration

	// CommitInterval is how often positions are written: one write unit for each
	// aggregate that got further. After a crash the events acked since come again. Default: 1 second.
	CommitInterval time.Duration

	// BehindAfter is how long a blocked aggregate holds back the cursor of its shard before it
	// is listed as behind. Until then a restart reads again what came after it. Default: 30 seconds.
	BehindAfter time.Duration

	// LeaseDuration is how long after its last sign of life a member's work is taken over by
	// another. Default: 10 seconds; at least 100 ms.
	LeaseDuration time.Duration

	// CloseTimeout is how long handlers have to ack or nack what they have after Close, or after the end
	// of Subscribe's context. Then the contexts of their messages end. Default: 5 seconds.
	CloseTimeout time.Duration

	// Unmarshaler makes the messages. Default: UUID = event id, raw payload, metadata as
	// documented in the package overview.
	Unmarshaler Unmarshaler

	// Positions keeps the positions. Default: the journal's checkpoint table.
	Positions PositionStore

	// idleStreams bounds what each shard remembers of aggregates that have nothing to do. One that was
	// forgotten costs a write unit when it has a new event.
	idleStreams int
	// cursorInterval: a cursor is written less often than positions, as it only saves a restart some reading.
	cursorInterval time.Duration
}

func (c *Config) setDefaults() {
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 64
	}
	if c.idleStreams == 0 {
		c.idleStreams = 10_000
	}
	if c.BufferBytes == 0 {
		c.BufferBytes = 32 << 20
	}
	duration := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	duration(&c.NackResendSleep, 100*time.Millisecond)
	duration(&c.PollInterval, 200*time.Millisecond)
	duration(&c.MaxPollInterval, max(time.Second, c.PollInterval))
	duration(&c.TrailingDelay, 10*time.Second)
	duration(&c.CommitInterval, time.Second)
	duration(&c.cursorInterval, 5*time.Second)
	duration(&c.BehindAfter, 30*time.Second)
	duration(&c.LeaseDuration, 10*time.Second)
	duration(&c.CloseTimeout, 5*time.Second)
	if c.Unmarshaler == nil {
		c.Unmarshaler = UnmarshalerFunc(func(r *journal.Record) (*message.Message, error) { return envelope.Message(r), nil })
	}
	if c.Positions == nil && c.Journal != nil {
		c.Positions = checkpoint.New(c.Journal)
	}
}

// Validate reports what cannot work, as a [*ConfigError].
func (c Config) Validate() error {
	c.setDefaults()
	switch {
	case c.Journal == nil:
		return &ConfigError{"Journal", "is nil; open one with journal.Open"}
	case c.ConsumerGroup == "":
		return &ConfigError{"ConsumerGroup", "is empty; name the group that shares the work"}
	case strings.Contains(c.ConsumerGroup, "/"):
		return &ConfigError{"ConsumerGroup", "contains a slash, which separates the parts of a key"}
	case len(c.ConsumerGroup) > 512:
		return &ConfigError{"ConsumerGroup", "has more than 512 bytes, and its keys would not fit"}
	case c.MaxInFlight < 0:
		return &ConfigError{"MaxInFlight", "is negative"}
	case c.BufferBytes < 0:
		return &ConfigError{"BufferBytes", "is negative"}
	case c.MaxPollInterval < c.PollInterval:
		return &ConfigError{"MaxPollInterval", "is shorter than PollInterval"}
	case c.LeaseDuration < 100*time.Millisecond:
		return &ConfigError{"LeaseDuration", "is under 100 ms; heartbeats take round trips"}
	}
	for field, d := range map[string]time.Duration{
		"PollInterval": c.PollInterval, "TrailingDelay": c.TrailingDelay, "CommitInterval": c.CommitInterval,
		"BehindAfter": c.BehindAfter, "CloseTimeout": c.CloseTimeout,
	} {
		if d < 0 {
			return &ConfigError{field, "is negative"}
		}
	}
	return nil
}
