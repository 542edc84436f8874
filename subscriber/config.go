package subscriber

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/envelope"
	"github.com/millrace-dev/millrace/internal/history"
	"github.com/millrace-dev/millrace/journal"
)

// Errors of this package, for errors.Is. A setting that cannot work is a [*ConfigError].
var (
	// ErrSubscriberClosed: Subscribe after Close.
	ErrSubscriberClosed = errors.New("subscriber is closed")
	// ErrEmptyTopic: a topic is an aggregate type and has a name.
	ErrEmptyTopic = errors.New("empty topic: name the aggregate type to subscribe to")
	// ErrFenced: another member of the group has taken over; what this one did not
	// commit, the other does again.
	ErrFenced = checkpoint.ErrFenced
	// ErrNoPosition: the message does not come from a subscriber of this package, or
	// its positions are not kept in the store that the handler's transaction is of.
	ErrNoPosition = errors.New("message carries no position that a transaction can commit")
)

// ConfigError reports a setting that cannot work.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("subscriber config: %s %s", e.Field, e.Reason)
}

// Unmarshaler makes messages of records. The subscriber sets the message's context.
type Unmarshaler interface {
	Unmarshal(r *journal.Record) (*message.Message, error)
}

// DefaultUnmarshaler makes messages whose UUID is the event id, with the payload of the event and
// the metadata that the package overview lists. An [Unmarshaler] of your own may change what it
// returns.
type DefaultUnmarshaler struct{}

// Unmarshal returns no error.
func (DefaultUnmarshaler) Unmarshal(r *journal.Record) (*message.Message, error) {
	return envelope.Message(r), nil
}

// Start is where a group begins that is new, or was reset.
type Start struct {
	now bool
	at  time.Time
}

// Beginning starts with the first event of every aggregate.
func Beginning() Start { return Start{} }

// Now starts with the events that occur after the group was made by a call of Subscribe, or was
// reset, by their occurred_at. It begins 2 seconds earlier, since the clocks of two processes may
// differ by that much though they are corrected (journal.Config.Now), and as much more as the first
// requests to DynamoDB take: no event that occurs later is left out, such as the reply to a
// request, but some of those seconds may come too. An aggregate that is imported later with older
// events is taken as earlier: the group begins after them. So use [Beginning] where they count.
func Now() Start { return Start{now: true} }

// At starts with the events that occurred at a time or later, in milliseconds or the unit of the
// journal, by their occurred_at. What is said of imports at [Now] holds here too.
func At(t time.Time) Start { return Start{at: t.Truncate(time.Millisecond)} }

// clocksDiffer is how much: each is known to a second at first.
const clocksDiffer = 2 * time.Second

// Time returns the time before which events are left out, for a group that begins now. It is zero
// for [Beginning].
func (s Start) Time(now time.Time) time.Time {
	if s.now {
		return now.Add(-clocksDiffer).Truncate(time.Millisecond)
	}
	return s.at
}

// Config configures a [Subscriber]. Journal and either ConsumerGroup or Broadcast are required.
type Config struct {
	// Journal is what to tail. Commits that go through the same Journal wake the
	// subscriber at once.
	Journal *journal.Journal

	// ConsumerGroup names those who share the work: each event reaches each group.
	// It must not contain a slash.
	ConsumerGroup string

	// Broadcast has each subscription get all events, without a group: for caches, pages that show
	// changes as they happen, and replies to requests. Nothing is written to the database, so
	// nothing is left behind, and each new subscription begins at Start. With [Now] and [At] the
	// first event of an aggregate costs a read of its head and about log2(n) read units. There is
	// no reconciliation: an event that the tail shows later than TrailingDelay comes with the next one of
	// its aggregate. It remembers each aggregate that has had events, in some 100 bytes. Failures
	// can be [Block] or [PoisonQueue]; ConsumerGroup and Positions must be empty.
	Broadcast bool

	// Start is where the group begins if it is new; one that exists goes on where it is. With [Now]
	// and [At] an aggregate that has earlier events begins after the last of them, which is looked
	// up, and stored before its first delivery: about log2(n) read units and a write unit, once for
	// each aggregate. Times are the events' occurred_at. Default: [Beginning].
	Start Start

	// EventTypes are the types of events that are delivered; others are passed over, in their
	// order. They are read, and their positions stored, all the same. With Definitions they are the
	// types of today. All members of a group should have the same. Default: all.
	EventTypes []string

	// Definitions of aggregates have their events upcast before messages are made of them, so that
	// handlers get the events of today, with their types in [MetadataName]. Events of aggregates
	// without a definition come as they are stored.
	//
	// An event that becomes several is several messages, one after the other, with the same
	// sequence number and a [MetadataPart]. The UUID of the first is the event's id; the others have
	// a slash and their place behind it. After a crash, or when another member takes over, all of
	// them come again. [Skip] passes over all that are left, [PoisonQueue] over one. They have no
	// position (see [PositionFromContext]), so a projection refuses them, and so does
	// dedup.Positions: give the definitions to the projection instead, and use dedup.Keys. An event
	// that becomes none is passed over. Default: none.
	Definitions []aggregate.AnyDefinition

	// MaxInFlight is how many messages, each of another aggregate, are
	// out for handling at a time, for each subscription. Default: 64.
	MaxInFlight int

	// BufferBytes is about how much of the journal is held in memory ahead of the
	// handlers, for each subscription. Default: 32 MiB.
	BufferBytes int

	// NackResendSleep is the pause before a nacked message comes again. It doubles with each
	// attempt, up to MaxNackResendSleep. Only its own aggregate waits. Defaults: 100 ms, negative
	// for none, and 30 seconds, or NackResendSleep where that is longer or negative. Set both to
	// the same value for pauses that do not grow.
	NackResendSleep, MaxNackResendSleep time.Duration

	// AckDeadline is how long a handler has to ack or nack a message. After it the message's
	// context ends, and the message counts as nacked; what the old handler answers later does not
	// count. Default: 0, forever.
	AckDeadline time.Duration

	// Failures says what becomes of an event that keeps failing. Default: [Block].
	Failures FailurePolicy

	// PollInterval is the pause after which a shard whose tail is read to the end is looked at
	// again, at most. It grows while nothing comes, up to MaxPollInterval, and is the latency
	// of events that other processes commit. A poll costs half a read unit for each shard, in the
	// packed layout for each partition of the tail. Defaults: 200 ms and 1 second.
	PollInterval, MaxPollInterval time.Duration

	// TrailingDelay is the age at which the last trailing read reads each stretch of the tail
	// again, because the index is eventually consistent and the clocks of writers differ. It must
	// be longer than both together, and than the time that writers repeat a commit
	// (journal.Config.RetryBudget), since a commit whose outcome is unknown keeps its date. An
	// event that shows later still waits for the next event of its aggregate, or for a reconciliation.
	// From 1 second on there is another trailing read before it, at an age of 0.5 seconds, for
	// events that the index shows a little late. Each costs half a read unit for each 4 KB of
	// events, as the live read does; events that are older when they are first read, as in history,
	// are read once. Default: 10 seconds.
	TrailingDelay time.Duration

	// ReconcileInterval is the time between two reconciliations of a shard, which compare the journal with the
	// group's positions. It bounds how late an event comes that the tail shows at the wrong place
	// or too late.
	//
	// In the classic layout a reconciliation compares all heads. So it finds events that were dated wrongly,
	// imported, or written by a foreign program. It reads the snapshot table's part of the topic,
	// states included, and the positions: half a read unit for each 4 KB, at most some 130 a
	// second.
	//
	// In the packed layout, whose tail is by the time of writing, a reconciliation reads again what was
	// written since the last one and in the interval before. It finds what the index shows late by
	// less than the interval. Once a week it compares all aggregates, with half a read unit for
	// each 4 KB of their last commits.
	//
	// Default: 1 hour, and never with Broadcast or Positions; negative for never.
	ReconcileInterval time.Duration

	// CommitInterval is how often positions are written: one write unit for each aggregate that got
	// further. After a crash the events acked since come again. Negative: the position is stored
	// after each ack, before the aggregate's next event is delivered. Then at most the last event of
	// each aggregate comes again after a crash; it costs one write unit and one round trip for each
	// event. Default: 1 second.
	CommitInterval time.Duration

	// BehindAfter is how long a blocked aggregate, or one whose handler takes long, holds back the
	// cursor of its shard before it is listed as behind. Until then a restart reads again what came
	// after it. To list it takes a write unit, to take it off another. Default: 30 seconds.
	BehindAfter time.Duration

	// LeaseDuration is how long after its last sign of life a member's work is taken over by
	// others. A member gives a sign every quarter of it, so four writes of the group's row in each
	// LeaseDuration, for each member and topic; a shorter one costs more. Default: 10
	// seconds; at least 100 ms.
	LeaseDuration time.Duration

	// MemberName names the subscriptions of this Subscriber for people, as package groups and the
	// millrace command show the owners of shards. At most 32 bytes. It is stored in the group's
	// row, whose size each heartbeat pays for, while the group has fewer than 30 members: they cost
	// one write unit more. Default: the end of the host name, a slash and the process id, such as
	// "orders-7d9f8b6c5-x2x4z/1".
	MemberName string

	// CloseTimeout is how long handlers have to ack or nack what they have after Close, or after
	// the end of Subscribe's context. Then the contexts of their messages end, and a second later
	// Close returns, also where the database does not answer. Default: 5 seconds.
	CloseTimeout time.Duration

	// Unmarshaler makes the messages. Default: [DefaultUnmarshaler].
	Unmarshaler Unmarshaler

	// Positions keeps the positions. Default: the journal's checkpoint table. With another store
	// nothing is swept by default, as a reconciliation compares heads with that table and would claim
	// every aggregate each time; and package groups cannot change it, and has to be given how to
	// read it (groups.WithPositions).
	Positions PositionStore

	// idleStreams bounds what each shard remembers of aggregates that have nothing to do. One that
	// was forgotten costs a read unit when it has a new event.
	idleStreams int
	// maxUnstored bounds the aggregates of a shard with a position that is not stored yet. With
	// that many, nothing more is delivered until some are stored.
	maxUnstored int
	// maxUnfinished bounds the aggregates of a shard with events left, beyond which a reconciliation waits.
	maxUnfinished int
	// maxFailing bounds the aggregates of a shard that failed and wait to be tried again. With that
	// many, nothing more of the journal is read until some have gone on.
	maxFailing int
	// maxDeferred bounds the events of a shard that are deferred and held in memory.
	maxDeferred int
	// rescanSoon is how long after a shard was taken over its records of deferred events are read
	// again, since a former owner may write one late; rescanInterval is the time between later scans.
	rescanSoon, rescanInterval time.Duration
	// cursorInterval: a cursor is written less often than positions, as it only saves a restart
	// some reading.
	cursorInterval time.Duration
}

func (c *Config) setDefaults() {
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 64
	}
	if c.idleStreams == 0 {
		c.idleStreams = 10_000
	}
	if c.maxUnstored == 0 {
		c.maxUnstored = 10_000
	}
	if c.maxUnfinished == 0 {
		c.maxUnfinished = 10_000
	}
	if c.maxFailing == 0 {
		c.maxFailing = 10_000
	}
	if c.maxDeferred == 0 {
		c.maxDeferred = 10_000
	}
	c.Failures.backoff = c.Failures.backoff.withDefaults()
	if c.BufferBytes == 0 {
		c.BufferBytes = 32 << 20
	}
	duration := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	duration(&c.NackResendSleep, 100*time.Millisecond)
	if c.NackResendSleep > 0 {
		duration(&c.MaxNackResendSleep, max(maxFailurePause, c.NackResendSleep))
	}
	if c.Positions == nil && !c.Broadcast {
		duration(&c.ReconcileInterval, time.Hour)
	} else {
		duration(&c.ReconcileInterval, -1)
	}
	duration(&c.PollInterval, 200*time.Millisecond)
	duration(&c.MaxPollInterval, max(time.Second, c.PollInterval))
	duration(&c.TrailingDelay, 10*time.Second)
	duration(&c.CommitInterval, time.Second)
	duration(&c.cursorInterval, 5*time.Second)
	duration(&c.rescanSoon, time.Minute)
	duration(&c.rescanInterval, 10*time.Minute)
	duration(&c.BehindAfter, 30*time.Second)
	duration(&c.LeaseDuration, 10*time.Second)
	duration(&c.CloseTimeout, 5*time.Second)
	if c.MemberName == "" {
		c.MemberName = defaultMemberName()
	}
	if c.Unmarshaler == nil {
		c.Unmarshaler = DefaultUnmarshaler{}
	}
	if c.Positions == nil && c.Journal != nil {
		c.Positions = &tablePositions{checkpoint.New(c.Journal)}
	}
}

// Validate reports what cannot work, as a [*ConfigError].
func (c Config) Validate() error {
	c.setDefaults()
	switch {
	case c.Journal == nil:
		return &ConfigError{"Journal", "is nil; open one with journal.Open"}
	case c.ConsumerGroup == "" && !c.Broadcast:
		return &ConfigError{"ConsumerGroup", "is empty; name the group that shares the work, or set Broadcast"}
	case !utf8.ValidString(c.ConsumerGroup):
		return &ConfigError{"ConsumerGroup", "is not valid UTF-8, and would share positions with others; use plain text"}
	case strings.Contains(c.ConsumerGroup, "/"):
		return &ConfigError{"ConsumerGroup", "contains a slash, which separates the parts of a key"}
	case len(c.ConsumerGroup) > 512:
		return &ConfigError{"ConsumerGroup", "has more than 512 bytes, and its keys would not fit"}
	case len(c.MemberName) > maxMemberName || !utf8.ValidString(c.MemberName):
		return &ConfigError{"MemberName", fmt.Sprintf("has more than %d bytes or is not valid UTF-8; use a short name", maxMemberName)}
	case c.MaxInFlight < 0:
		return &ConfigError{"MaxInFlight", "is negative"}
	case c.BufferBytes < 0:
		return &ConfigError{"BufferBytes", "is negative"}
	case c.MaxPollInterval < c.PollInterval:
		return &ConfigError{"MaxPollInterval", "is shorter than PollInterval"}
	case c.MaxNackResendSleep < c.NackResendSleep:
		return &ConfigError{"MaxNackResendSleep", "is shorter than NackResendSleep"}
	case c.ReconcileInterval > 0 && c.ReconcileInterval < time.Millisecond:
		return &ConfigError{"ReconcileInterval", "is under a millisecond; give a duration, or a negative one for never"}
	case c.AckDeadline < 0:
		return &ConfigError{"AckDeadline", "is negative; leave it 0 for none"}
	case c.LeaseDuration < 100*time.Millisecond:
		return &ConfigError{"LeaseDuration", "is under 100 ms; heartbeats take round trips"}
	}
	if c.Broadcast {
		if err := c.validateBroadcast(); err != nil {
			return err
		}
	}
	if err := c.Failures.validate(); err != nil {
		return err
	}
	if _, own := c.Positions.(*tablePositions); c.Failures.kind == deferEvents && !own {
		return &ConfigError{"Failures", "cannot defer events of a group whose positions are in a store of its own; leave out Positions"}
	}
	if _, err := history.New(nil, c.Definitions); err != nil {
		return &ConfigError{"Definitions", "cannot be used: " + err.Error()}
	}
	for field, d := range map[string]time.Duration{
		"PollInterval": c.PollInterval, "TrailingDelay": c.TrailingDelay,
		"BehindAfter": c.BehindAfter, "CloseTimeout": c.CloseTimeout,
	} {
		if d < 0 {
			return &ConfigError{field, "is negative"}
		}
	}
	return nil
}

func (c *Config) validateBroadcast() error {
	_, own := c.Positions.(*tablePositions)
	switch {
	case c.ConsumerGroup != "":
		return &ConfigError{"ConsumerGroup", fmt.Sprintf("is %q, but a broadcast has no group; leave one of the two out", c.ConsumerGroup)}
	case c.Positions != nil && !own:
		return &ConfigError{"Positions", "is set, but a broadcast has none"}
	case c.Failures.kind != block && c.Failures.kind != poisonQueue:
		return &ConfigError{"Failures", "cannot be recorded by a broadcast; use Block or PoisonQueue"}
	case c.ReconcileInterval > 0:
		return &ConfigError{"ReconcileInterval", "is set, but a broadcast has no positions to compare heads with"}
	}
	return nil
}

func (c *Config) limits() limits {
	return limits{
		broadcast: c.Broadcast, idleStreams: c.idleStreams, maxUnstored: c.maxUnstored, maxFailing: c.maxFailing,
		maxUnfinished: c.maxUnfinished, behindAfter: c.BehindAfter,
	}
}

func (c *Config) nackPause(attempt int) time.Duration {
	return max(0, backoffOf(c.NackResendSleep, c.MaxNackResendSleep, attempt))
}

// wants reports whether events of a type are delivered.
func (c *Config) wants(eventType string) bool {
	return len(c.EventTypes) == 0 || slices.Contains(c.EventTypes, eventType)
}

// flushInterval is the time between two writes of all positions that moved.
func (c *Config) flushInterval() time.Duration {
	if c.CommitInterval < 0 {
		return time.Second // those that could not be stored after their ack
	}
	return c.CommitInterval
}
