package subscriber

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/history"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
)

// Errors of this package, for errors.Is. An invalid setting is a [*ConfigError].
var (
	// ErrSubscriberClosed reports a call of Subscribe after Close.
	ErrSubscriberClosed = errors.New("subscriber is closed")
	// ErrEmptyTopic reports a call of Subscribe with an empty topic. A topic is an aggregate type.
	ErrEmptyTopic = errors.New("empty topic: name the aggregate type to subscribe to")
	// ErrFenced reports that another member of the group has taken over. It repeats the work that
	// this member has not committed.
	ErrFenced = checkpoint.ErrFenced
	// ErrNoPosition reports that a handler cannot commit a position with its transaction. The
	// message does not come from a subscriber of this package, or it is one of several messages of
	// an event ([PartKey]) or of a deferred one ([DeferredKey]), or the subscriber keeps its
	// positions in another store than the one that the transaction belongs to. The text says which.
	ErrNoPosition = errors.New("message carries no position that a transaction can commit")
)

// ConfigError reports a setting that cannot work. Field names the setting, and Reason says why.
type ConfigError struct{ Field, Reason string }

func (e *ConfigError) Error() string {
	return fmt.Sprintf("subscriber config: %s %s", e.Field, e.Reason)
}

// PositionsError reports that a consumer group has positions at another place than the subscriber.
// One of them keeps positions in rows of a read model (projection.Rows). The other keeps them in
// other rows, or not in rows. Nothing was changed. Use a new name for the group. Or stop its
// members, reset it (groups.Group.Reset), and start only members of one kind.
type PositionsError struct {
	Group, Topic string // the group, and the topic of the subscription
	// Stored and Given are the places of the group's and of the subscriber's positions, for people.
	Stored, Given string
}

func (e *PositionsError) Error() string {
	return fmt.Sprintf("consumer group %q on topic %q has positions in %s, and this subscriber in %s: use a new name for the group, or stop its members and reset it",
		e.Group, e.Topic, e.Stored, e.Given)
}

// Config configures a [Subscriber] of a consumer group. Journal and ConsumerGroup are required. A
// [BroadcastConfig] configures a subscriber without a group.
type Config struct {
	// Journal is the journal to read. A commit through the same Journal wakes the subscriber at
	// once.
	Journal *journal.Journal

	// ConsumerGroup names the group. Subscribers with the same name share the events of a topic,
	// and each group receives every event. It has at most 512 bytes of UTF-8 and contains no slash.
	ConsumerGroup string

	// Start says where the group begins if it is new. An existing group continues at its positions.
	// Default: [Beginning].
	//
	// With [Now] and [At], an aggregate that has earlier events begins after the last of them. The
	// subscriber searches for that event and stores the position before the first delivery. This
	// costs about log2(n) read units and a write unit, once for each aggregate.
	Start Start

	// LatestOnly begins an aggregate on which the group has no position with its last event at that
	// time, and leaves out the events before it. It is for handlers that take the state from
	// somewhere else, such as projection.OnState. They must handle events of all types.
	//
	// A new group, or one that was reset, then finds its aggregates by a reconciliation, which
	// begins within a minute, instead of reading all events. Other packages count the events that
	// are left out as not handled, until the last one is. Members may have different settings.
	// Default: false, the first event.
	LatestOnly bool

	// EventTypes lists the types of events to deliver. Other events are read and count as handled
	// without a delivery. With Definitions these are the current types. All members of a group
	// should have the same list. Default: all types.
	EventTypes []string

	// Definitions lists the aggregates whose events are upcast before delivery. Handlers then
	// receive current events, with their types in [NameKey]. Events of aggregates without a
	// definition are delivered as they are stored. Default: none.
	//
	// If upcasters turn an event into several events, each is a message. The messages are delivered
	// one after the other, with the same sequence number and a [PartKey]. The UUID of the
	// first is the event id. The UUIDs of the others have a slash and their place appended. After a
	// crash, or when another member takes over, all of them are delivered again. [Skip] skips all
	// that are left, and [PoisonQueue] only one. These messages have no position (see
	// [PositionFromContext]), so projections and dedup.Positions refuse them. Pass the definitions
	// to the projection instead, and use dedup.Keys. An event that upcasters turn into none counts
	// as handled.
	Definitions []aggregate.AnyDefinition

	// MaxInFlight is the maximum number of messages in handling at a time, for each subscription.
	// Each of them belongs to another aggregate. Default: 64.
	MaxInFlight int

	// BufferBytes is the approximate limit for events that are held in memory before they are
	// delivered, in bytes, for each subscription. Each event counts as its size and 1 KiB. Events
	// that handlers have do not count. Default: 32 MiB.
	BufferBytes int

	// StateBytes is the approximate limit for what is remembered of aggregates, in bytes, for each
	// subscription. An aggregate counts as 1 KiB. An idle one with an id of 36 bytes takes 0.7 KiB,
	// and one that has failed up to 2.4 KiB. Parked aggregates have no limit. Default: 32 MiB, for
	// 32,768 aggregates. Minimum: 1 MiB.
	//
	// Of each shard at most 10,000 idle aggregates are remembered, or more in proportion if
	// StateBytes is over 32 MiB. One that is forgotten costs a read unit with its next event.
	//
	// When as many aggregates have failed as an eighth of it in KiB, by default 4,096, the shards
	// that have most of them read no further until some have succeeded. The rest waits in the
	// journal.
	StateBytes int

	// NackResendSleep is the pause before a nacked message is delivered again. It doubles with each
	// attempt, up to MaxNackResendSleep. Aggregates that have not failed do not wait. Set both to
	// the same value for constant pauses. Defaults: 100 ms for NackResendSleep, where a negative
	// value means no pause, and 30 seconds for MaxNackResendSleep, or NackResendSleep if that is
	// longer or negative.
	//
	// Each attempt reads the event again. From the fourth failure on, or after the last one of the
	// policy, all blocked aggregates of a subscription share ten attempts a second. Each aggregate
	// that continues adds two. Aggregates with fewer failures go first. From the tenth failure on
	// they take turns, so with 3,000 of them one waits up to five minutes for its next attempt.
	NackResendSleep, MaxNackResendSleep time.Duration

	// AckDeadline is the time in which a handler must ack or nack a message. After it the context
	// of the message ends, and the message counts as nacked. A later answer of the handler is
	// ignored. Default: 0, no limit.
	AckDeadline time.Duration

	// Failures says what happens to an event that keeps failing. Default: [Block].
	Failures FailurePolicy

	// NoReplay protects a group whose effects must not happen again, such as one that publishes
	// events to other systems. Package groups then refuses to reset the group to an earlier event
	// or to remove it, with a *groups.ReplayError, unless its option WithReplay is set. The member
	// that joins last decides. Default: false.
	NoReplay bool

	// Timing holds the intervals at which the subscriber reads and stores. Default: the default of
	// each field.
	Timing Timing

	// MemberName names the subscriptions of this Subscriber for people. Package groups and the
	// millrace command show it for the owners of shards. It has at most 32 bytes of UTF-8. Default:
	// the end of the host name, a slash and the process id, such as "orders-7d9f8b6c5-x2x4z/1".
	//
	// The name is stored in the group's row if the group has fewer than 30 members when this one
	// joins. Each heartbeat pays for the size of the row: 30 names cost about one write unit more.
	MemberName string

	// CloseTimeout is the time that handlers have to ack or nack their messages after Close, or
	// after the end of Subscribe's context. Then the contexts of their messages end. Close returns
	// a second later even if the database does not answer. Default: 5 seconds.
	CloseTimeout time.Duration

	// Unmarshaler converts records to messages. [PlainUnmarshaler] adds no metadata about the place
	// of the event. Default: [DefaultUnmarshaler].
	Unmarshaler Unmarshaler

	// Positions stores the positions. Default: the journal's checkpoint table.
	//
	// A projection.Rows keeps them in the rows of its read model, where package groups finds them.
	// With any other store there are no reconciliations by default, because a reconciliation would
	// claim each aggregate that it finds. Package groups cannot change positions in such a store,
	// and needs groups.WithPositions to read them.
	Positions PositionStore
}

func (c *Config) setDefaults() {
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 64)
	c.BufferBytes = cmp.Or(c.BufferBytes, 32<<20)
	c.StateBytes = cmp.Or(c.StateBytes, defaultStateBytes)
	c.NackResendSleep = cmp.Or(c.NackResendSleep, 100*time.Millisecond)
	if c.NackResendSleep > 0 {
		c.MaxNackResendSleep = cmp.Or(c.MaxNackResendSleep, max(maxFailurePause, c.NackResendSleep))
	}
	c.Failures.backoff = c.Failures.backoff.withDefaults()
	c.Timing.setDefaults(c.Positions == nil || rowsOf(c.Positions) != nil)
	c.MemberName = cmp.Or(c.MemberName, defaultMemberName())
	c.CloseTimeout = cmp.Or(c.CloseTimeout, 5*time.Second)
	if c.Unmarshaler == nil {
		c.Unmarshaler = DefaultUnmarshaler{}
	}
	if c.Positions == nil && c.Journal != nil {
		c.Positions = &tablePositions{checkpoint.New(c.Journal)}
	}
}

// validate returns a [*ConfigError] for the first invalid field, or nil.
func (c Config) validate() error {
	c.setDefaults()
	if err := c.validateShared(); err != nil {
		return err
	}
	switch {
	case c.ConsumerGroup == "":
		return &ConfigError{"ConsumerGroup", "is empty; name the group that shares the work, or use NewBroadcast"}
	case !utf8.ValidString(c.ConsumerGroup):
		return &ConfigError{"ConsumerGroup", "is not valid UTF-8, and would share positions with others; use plain text"}
	case strings.Contains(c.ConsumerGroup, "/"):
		return &ConfigError{"ConsumerGroup", "contains a slash, which separates the parts of a key"}
	case len(c.ConsumerGroup) > 512:
		return &ConfigError{"ConsumerGroup", "has more than 512 bytes, and its keys would not fit"}
	case c.LatestOnly && (c.Start != Start{} || len(c.EventTypes) > 0):
		return &ConfigError{"LatestOnly", "is set with Start or EventTypes, and could leave out all events; use one of them"}
	case len(c.MemberName) > maxMemberName || !utf8.ValidString(c.MemberName):
		return &ConfigError{"MemberName", fmt.Sprintf("has more than %d bytes or is not valid UTF-8; use a short name", maxMemberName)}
	}
	if _, own := c.Positions.(*tablePositions); c.Failures.kind == deferEvents && !own {
		return &ConfigError{"Failures", "cannot defer events of a group whose positions are in a store of its own; leave out Positions"}
	}
	return c.Timing.validate("Timing.")
}

// validateShared validates the fields that a [BroadcastConfig] has too.
func (c *Config) validateShared() error {
	switch {
	case c.Journal == nil:
		return &ConfigError{"Journal", "is nil; open one with journal.Open"}
	case c.MaxInFlight < 0:
		return &ConfigError{"MaxInFlight", "is negative"}
	case c.BufferBytes < 0:
		return &ConfigError{"BufferBytes", "is negative"}
	case c.StateBytes < 1<<20:
		return &ConfigError{"StateBytes", "is less than 1 MiB; leave it 0 for the default"}
	case c.MaxNackResendSleep < c.NackResendSleep:
		return &ConfigError{"MaxNackResendSleep", "is shorter than NackResendSleep"}
	case c.AckDeadline < 0:
		return &ConfigError{"AckDeadline", "is negative; leave it 0 for none"}
	case c.CloseTimeout < 0:
		return &ConfigError{"CloseTimeout", "is negative"}
	}
	if err := c.Failures.validate(); err != nil {
		return err
	}
	if _, err := history.New(nil, c.Definitions); err != nil {
		return &ConfigError{"Definitions", "cannot be used: " + err.Error()}
	}
	return nil
}

func (c *Config) nackPause(attempt int) time.Duration {
	return max(0, retry.Backoff(c.NackResendSleep, c.MaxNackResendSleep, attempt))
}

// wants reports whether events of a type are delivered.
func (c *Config) wants(eventType string) bool {
	return len(c.EventTypes) == 0 || slices.Contains(c.EventTypes, eventType)
}

const defaultStateBytes = 32 << 20

// maxMemberName is the limit for a member's name, in bytes. Names are part of the group's row,
// which is written with each heartbeat.
const maxMemberName = 32

// defaultMemberName returns the host name with the process id. A long host name loses its
// beginning, because the end differs between the instances of a deployment.
func defaultMemberName() string {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return memberName(host, os.Getpid())
}

func memberName(host string, pid int) string {
	process := "/" + strconv.Itoa(pid)
	host = strings.ToValidUTF8(host, "?")
	if room := max(0, maxMemberName-len(process)); len(host) > room {
		host = strings.ToValidUTF8(host[len(host)-room:], "")
	}
	return host + process
}

// limits bounds what a shard keeps in memory and how often it does some of its work. Applications
// need no other values, so they are no fields of [Config]. Tests change them.
type limits struct {
	// idleStreams is the maximum number of idle aggregates that each shard remembers. The next
	// event of a forgotten aggregate costs a read unit.
	idleStreams int
	// maxUnstored is the maximum number of aggregates of a shard whose position is not stored yet.
	// When it is reached, no event is delivered until some positions are stored.
	maxUnstored int
	// maxUnfinished is the maximum number of aggregates of a shard with unhandled events. When it
	// is reached, a reconciliation waits until some are handled. Parked ones do not count.
	maxUnfinished int
	// maxDeferred is the maximum number of deferred events of a shard that are held in memory.
	maxDeferred int
	// rescanSoon is the time after a takeover of a shard until its records of deferred events are
	// read again, because a former owner may write a record late. rescanInterval is the time
	// between later scans.
	rescanSoon, rescanInterval time.Duration
	// cursorInterval is the time between two writes of a cursor. It is longer than that of
	// positions, because a cursor only saves some reading after a restart.
	cursorInterval time.Duration
}

func defaultLimits(stateBytes int) limits {
	return limits{
		idleStreams: max(10_000, int(int64(stateBytes)*10_000/defaultStateBytes)), maxUnstored: 10_000, maxUnfinished: 10_000, maxDeferred: 10_000,
		rescanSoon: time.Minute, rescanInterval: 10 * time.Minute, cursorInterval: 5 * time.Second,
	}
}

// Start says where a group begins that is new or was reset. See [Beginning], [Now] and [At].
type Start struct {
	now bool
	at  time.Time
}

// Beginning starts a group with the first event of every aggregate.
func Beginning() Start { return Start{} }

// Now starts a group with the events that occur after it is created by the first call of Subscribe,
// or is reset.
//
// The group begins 2 seconds earlier, because the clocks of two processes may differ by that much
// even after correction (journal.Config.Now). It begins earlier still if the first requests to
// DynamoDB take longer. So it leaves out no event that occurs later, such as the reply to a
// request. But it may receive some events from those seconds.
//
// The time of an event is its occurred_at. If older events are imported into an aggregate later,
// they count as earlier, so the group leaves them out. If the dates within an aggregate do not
// rise, because the clock of a writer was wrong, the group can begin with an earlier or a later
// event of this aggregate. Use [Beginning] if such events matter.
func Now() Start { return Start{now: true} }

// At starts a group with the events whose occurred_at is t or later, in milliseconds or the unit of
// the journal. Imported events with earlier times are left out, and wrong clocks move the beginning
// within an aggregate, as with [Now].
func At(t time.Time) Start { return Start{at: t.Truncate(time.Millisecond)} }

// clocksDiffer is the largest difference between two clocks. At first the error of each clock is
// known only to within a second.
const clocksDiffer = 2 * time.Second

// Time returns the time before which events are left out by a group that begins at now. It is zero
// for [Beginning].
func (s Start) Time(now time.Time) time.Time {
	if s.now {
		return now.Add(-clocksDiffer).Truncate(time.Millisecond)
	}
	return s.at
}
