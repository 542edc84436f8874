package subscriber

import (
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
)

// FailurePolicy says what becomes of an event that keeps failing: one that cannot be read, decoded
// or unmarshaled, or whose message is nacked or not acked in time. Until then its own aggregate
// waits, and no other. The zero value is [Block].
//
// Each member counts attempts from the time it takes the shard over. Store outages do not count as
// attempts, nor does a delivery of several events together ([Position.CommitAhead]). Pauses between
// attempts double, from 100 ms up to 30 seconds: ten attempts take about a minute, twenty about
// six, besides the handler's own time. Those after a message that was nacked, or not acked in time,
// can be set ([Config.NackResendSleep], [Config.MaxNackResendSleep]).
//
// What is given up is recorded with a reason: the error of the last attempt, and how many there
// were. That of a handler is known where it is told ([NackReason], [SetNackReason]), as the
// handlers of package projection do; else the reason says that there was none.
type FailurePolicy struct {
	kind      policyKind
	attempts  int
	publisher message.Publisher
	topic     string
	backoff   Backoff
}

type policyKind int

const (
	block policyKind = iota
	park
	poisonQueue
	skip
	stop
	deferEvents
)

// Block tries forever. Nothing else is needed once the cause is fixed. For the pauses see
// [FailurePolicy].
func Block() FailurePolicy { return FailurePolicy{} }

// Park gives up an aggregate after a number of failed attempts at one event: its events wait in the
// journal, and it is on a list that package groups shows, until it is told there to go on. An
// encoding whose keys cannot be had for a while fails too, and so does a handler whose database is
// down, so choose a number whose pauses outlast that: by default Park(20) gives a failing handler
// about six minutes. See [FailurePolicy].
//
// While a handler has not returned from a transaction that commits the position ([Position]), its
// aggregate is not parked. A request of a transaction that was still on its way then may take
// effect all the same; the aggregate goes on behind the event when it is told to.
func Park(attempts int) FailurePolicy { return FailurePolicy{kind: park, attempts: attempts} }

// PoisonQueue gives up a single event after a number of failed attempts: its message goes to a
// topic of a publisher, with the metadata that Watermill's middleware of the same name sets,
// aggregate_id_poisoned and sequence_number_poisoned, and the aggregate goes on with the next
// event. The reason has the first KB of the error. A message of an event that cannot be decoded has
// the payload as it is stored, and that of one that cannot be read has none. Nor has one that would
// be too large for a publisher to a journal, of an event close to the limit of 400 KB: it says so
// in payload_poisoned. When the publisher fails, the event is tried again. Use the middleware for
// handlers that tell by the error whether to give up.
//
// The message is published before the position is stored, which follows at once, or with the next
// flush if that fails. So an event may be in the poison queue twice: a crash between the two has it
// come again, and fail again, with the next owner of the shard. Have those who read the queue take
// the message's UUID, as a rule the event id, as its key.
//
// While a handler has not returned from a transaction that commits the position ([Position]), its
// event is not given up. DynamoDB may execute a transaction although the handler received an error.
// So the subscriber reads the position before it publishes the message. A request may still be on
// its way at that moment, after its connection was lost or [Config.AckDeadline] has ended it. It
// can take effect until the position is stored: then the event is in the queue and in the read
// model. With [Skip] only one of the two happens. Use it if a read model must not hold an event
// that was given up.
//
// Close does not wait for a publisher that hangs: its message may be published later.
func PoisonQueue(attempts int, publisher message.Publisher, topic string) FailurePolicy {
	return FailurePolicy{kind: poisonQueue, attempts: attempts, publisher: publisher, topic: topic}
}

// Skip passes over a single event after a number of failed attempts, and keeps a record of it:
// which event, of which type, when, and the first KB of the reason. The aggregate goes on with the
// next event. Package groups lists the records; they stay until one is forgotten there, its events
// are sent again (groups.Groups.ResetAggregate), or the group is reset or removed.
//
// Record and position are written in one transaction: an event is skipped with its record or not at
// all. Once the last attempt has failed the event does not come again in this term of the shard,
// also where that write has to be repeated; a member that takes over before it is made begins to
// count again. With [Config.Positions] of another kind the record is written first and the position
// then, so a crash in between leaves the record of an event that comes again.
//
// The events behind a skipped one are handled as if it had been, so use it where each event of a
// read model counts for itself. All that fails while a database is down is skipped too, so choose a
// number of attempts whose pauses outlast that, as said at [Park]. It costs four write units for an
// event, two more for each KB of the record over the first.
func Skip(attempts int) FailurePolicy { return FailurePolicy{kind: skip, attempts: attempts} }

// Stop stops the group on this topic after a number of failed attempts at one event: it is paused
// for all members, as groups.Groups.Pause does, with the event and the first KB of the reason,
// which groups.Groups.Get and List show. Nothing is passed over. The other members learn of it
// within a quarter of [Config.LeaseDuration], and until then go on with other aggregates.
// groups.Groups.Resume has the group go on where it is: the event is tried again, and attempts are
// counted again. To go on without it, call groups.Groups.Skip before.
//
// Only the owner of the event's shard can stop a group: not a member that others have given up, and
// nobody with attempts from before a reset or a resume. A group that is paused already stays as it
// is. An outage fails all events, so choose a number of attempts whose pauses outlast it, as said
// at [Park]. It costs a read unit and one or two write units; while the group is stopped, signs of
// life may cost one more each, for the reason.
func Stop(attempts int) FailurePolicy { return FailurePolicy{kind: stop, attempts: attempts} }

// Backoff says how often a deferred event is tried again, and when.
type Backoff struct {
	// Pause is the time between the first failed attempt and the next. It doubles with each attempt,
	// up to MaxPause. Defaults: 1 second and 10 minutes, or Pause where that is longer.
	Pause, MaxPause time.Duration
	// Attempts is the number of failed attempts, the first included, after which the event is given
	// up. Default: 30, which takes about three and a half hours with the default pauses.
	Attempts int
}

func (b Backoff) withDefaults() Backoff {
	if b.Pause == 0 {
		b.Pause = time.Second
	}
	if b.MaxPause == 0 {
		b.MaxPause = max(10*time.Minute, b.Pause)
	}
	if b.Attempts == 0 {
		b.Attempts = 30
	}
	return b
}

// pause is the time until the next attempt.
func (b Backoff) pause(attempts int) time.Duration {
	return max(time.Millisecond, backoffOf(b.Pause, b.MaxPause, attempts))
}

// Defer retries each event on its own. An event that fails is recorded with the reason and the time
// of its next attempt, and its aggregate goes on with the next event at once. The zero Backoff has
// defaults.
//
// Defer gives up the order within an aggregate: an event may be handled after later ones of its
// aggregate, and beside them. Use it for effects that do not depend on each other, such as mails and
// calls of other services. docs/effects.md shows how.
//
// The owner of the event's shard retries it, also after a restart or a takeover. Its message has the
// same UUID and payload, a [MetadataDeferred], and a [MetadataDeliveryAttempt] that counts all failed
// attempts. Retries take at most half of the [Config.MaxInFlight] messages while other events wait.
// An ack deletes the record. A crash between the ack and that has the event come once more. After
// the last attempt the record stays, as that of an event that was skipped ([Skip]):
// groups.Groups.Skipped lists deferred events and these, groups.Groups.RetrySkipped has one tried
// again, groups.Groups.ForgetSkipped drops one.
//
// A deferred event counts as applied for groups.Groups.WaitApplied and the group's lag, and its
// message has no position (see [PositionFromContext]). So handlers that depend on positions return
// an error for it: those of package projection and of dedup.Positions. Handlers of package process
// and of dedup.Keys handle it. Defer needs positions in the journal's own table.
//
// A shard has up to about 10,000 records of deferred events and of those that were given up. Events
// that fail beyond that wait in their place, as with [Block], so a long outage slows the group down
// instead of growing the table.
//
// It costs four write units to defer an event, or six if the record is over 1 KB; each further
// attempt one write unit and two read units, or more for large events; the ack one write unit. As
// with Skip, the first event of an aggregate in a term costs a write unit instead of a read unit. To
// find the records, a new owner of a shard reads them, one read unit for each 4 KB, and again every
// ten minutes.
func Defer(b Backoff) FailurePolicy {
	return FailurePolicy{kind: deferEvents, attempts: 1, backoff: b}
}

func (p FailurePolicy) validate() error {
	switch {
	case p.backoff.Pause < 0 || p.backoff.MaxPause < p.backoff.Pause:
		return &ConfigError{"Failures", "has a Backoff with a negative Pause, or a MaxPause that is shorter than Pause"}
	case p.backoff.Attempts < 1:
		return &ConfigError{"Failures", "has a Backoff with a negative number of Attempts"}
	case p.kind != block && p.attempts < 1:
		return &ConfigError{"Failures", "needs at least one attempt"}
	case p.kind == poisonQueue && (p.publisher == nil || p.topic == ""):
		return &ConfigError{"Failures", "needs both a publisher and a topic for the poison queue"}
	}
	return nil
}

// skips reports that the policy records events and moves positions past them.
func (p FailurePolicy) skips() bool { return p.kind == skip || p.kind == deferEvents }
