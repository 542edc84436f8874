package subscriber

import (
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/retry"
)

// FailurePolicy says what happens to an event that keeps failing: one that cannot be read, decoded
// or unmarshaled, or whose message is nacked or not acked in time. Between attempts its aggregate
// waits, and no other. The zero value is [Block].
//
// A damaged head, or a damaged event before the group's start, can hide where the group is in an
// aggregate. The aggregate then waits until the item is restored, and no policy applies.
//
// An event whose item is missing from the journal may never have existed, because a damaged head
// can count too many events. [Skip], [PoisonQueue] and [Defer] do not pass over it: its aggregate
// waits until the item is restored or the head is corrected, or until groups.Groups.Skip.
//
// Attempts are counted over changes of the shard's owner. A member that ends stores those of up to
// 1,000 failing aggregates for each shard. A crash loses the attempts since the entry on the behind
// list was written, or all if there was none. [Stop] counts from the last change of the owner.
// Store outages do not count as attempts. A delivery of several events together
// ([Position.CommitAhead]) does not count either.
//
// Pauses between attempts double, from 100 ms up to 30 seconds: ten attempts take about a minute,
// twenty about six, plus the time that the handler takes. [Config.NackResendSleep] and
// [Config.MaxNackResendSleep] set the pauses after a message that was nacked or not acked in time.
//
// An event that is given up is recorded with a reason: the error of the last attempt, and the
// number of attempts. The error of a handler is known if a middleware or the handler reports it
// ([NackReason], [SetNackReason]), as the handlers of package projection do. Otherwise the reason
// says that there was none.
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

// Block retries an event forever, so the group continues by itself once the cause is fixed.
// [FailurePolicy] lists the pauses.
func Block() FailurePolicy { return FailurePolicy{} }

// Park parks an aggregate after a number of failed attempts at one event: its events wait in the
// journal until an operator unparks it (groups.Group.Parked, groups.Groups.Unpark). A handler also
// fails while its database is down, and an encrypted event cannot be decoded while its key cannot
// be read. So choose a number of attempts whose pauses outlast an outage: by default Park(20) takes
// about six minutes. See [FailurePolicy].
//
// While a handler has not returned from a transaction that commits the position ([Position]), its
// aggregate is not parked. A request of that transaction may still take effect after the aggregate
// was parked. When the aggregate is unparked, it then continues after the event.
func Park(attempts int) FailurePolicy { return FailurePolicy{kind: park, attempts: attempts} }

// PoisonQueue gives up a single event after a number of failed attempts. It publishes the message
// to a topic, and the aggregate continues with the next event. The message has the metadata that
// Watermill's middleware of the same name sets, and also aggregate_id_poisoned and
// sequence_number_poisoned. The reason contains at most the first KB of the error. The payload of
// the message is
//
//   - the payload of the event's message;
//   - the stored payload, if the event cannot be decoded;
//   - empty, if the event cannot be read, or if the message would exceed the limit of 400 KB of a
//     publisher to a journal. The metadata payload_poisoned then says so.
//
// If the publisher fails, the event is retried. To decide by the error whether an event is given
// up, use the middleware of Watermill instead.
//
// The message is published before the position is stored. After a crash between the two, the next
// owner of the shard delivers the event again, so an event may be in the poison queue twice.
// Consumers of the queue recognise it by the UUID of the message, which is usually the event id.
//
// While a handler has not returned from a transaction that commits the position ([Position]), its
// event is not given up. DynamoDB may execute a transaction although the handler received an error.
// So the subscriber reads the position before it publishes the message. A request whose connection
// was lost, or that [Config.AckDeadline] ended, can still take effect until the position is stored.
// Then the event is in the queue and in the read model. With [Skip] only one of the two happens, so
// use Skip if a read model must not hold an event that was given up.
//
// Close does not wait for a publisher that hangs: its message may be published later.
func PoisonQueue(attempts int, publisher message.Publisher, topic string) FailurePolicy {
	return FailurePolicy{kind: poisonQueue, attempts: attempts, publisher: publisher, topic: topic}
}

// Skip passes over a single event after a number of failed attempts, and stores a record of it:
// which event, of which type, when, and the first KB of the reason. The aggregate continues with
// the next event. Package groups lists the records. A record stays until it is forgotten there,
// until its event is sent again (groups.Groups.ResetAggregate), or until the group is reset or
// removed.
//
// Record and position are written in one transaction, so an event is skipped with its record or not
// at all. After the last attempt has failed, the owner of the shard does not deliver the event
// again, even if it has to repeat that write. A member that takes over before the write delivers
// the event again, and counts on from the stored attempts. If positions are in another store
// ([Config.Positions]), the record is written before the position. A crash in between leaves the
// record of an event that is delivered again.
//
// Later events are handled as if the skipped one had been handled, so use Skip only if the events
// of an aggregate do not depend on each other. Events that fail while a database is down are
// skipped too, so choose a number of attempts whose pauses outlast an outage, as for [Park]. Skip
// costs four write units for an event, and two more for each KB of the record over the first.
func Skip(attempts int) FailurePolicy { return FailurePolicy{kind: skip, attempts: attempts} }

// Stop stops the group on this topic after a number of failed attempts at one event. It pauses the
// group for all members, as groups.Group.Pause does, and stores the event and the first KB of the
// reason, which groups.Group.Status and groups.Groups.List show. No event is passed over. The other
// members stop within a quarter of [Timing.LeaseDuration], and until then handle other aggregates.
//
// groups.Group.Resume ends the pause. The event is then retried, and attempts are counted from the
// start. To continue without the event, call groups.Groups.Skip before.
//
// Only the owner of the event's shard can stop a group. An evicted member cannot, and attempts from
// before a reset or a resume do not count. A group that is paused already is not changed. In an
// outage all events fail, so choose a number of attempts whose pauses outlast it, as for [Park].
// Stop costs a read unit and one or two write units. While the group is stopped, each heartbeat may
// cost one more, for the reason.
func Stop(attempts int) FailurePolicy { return FailurePolicy{kind: stop, attempts: attempts} }

// Backoff says how often a deferred event is attempted, and when.
type Backoff struct {
	// Pause is the time between the first failed attempt and the next. It doubles with each
	// attempt, up to MaxPause. Defaults: 1 second and 10 minutes, or Pause if that is longer.
	Pause, MaxPause time.Duration
	// Attempts is the number of failed attempts, including the first, after which the event is
	// given up. Default: 30, which take about three and a half hours with the default pauses.
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

// pause returns the time until the next attempt.
func (b Backoff) pause(attempts int) time.Duration {
	return max(time.Millisecond, retry.Backoff(b.Pause, b.MaxPause, attempts))
}

// Defer retries each event by itself. An event that fails is recorded with the reason and the time
// of its next attempt, and its aggregate continues with the next event at once. The zero Backoff
// means the defaults.
//
// Defer gives up the order within an aggregate: an event may be handled after later events of its
// aggregate, and at the same time as them. Use it for effects that do not depend on each other,
// such as mails and calls of other services. docs/howto/send-emails-once.md shows how.
//
// The owner of the event's shard retries it, also after a restart or a takeover. The message then
// has the same UUID and payload, a [DeferredKey], and a [DeliveryAttemptKey] that counts
// all failed attempts. While other events wait, retries take at most half of the
// [Config.MaxInFlight] messages.
//
// After an ack the record is deleted. A crash between the two repeats the event. After the last
// attempt the record stays, like the record of a skipped event ([Skip]). groups.Group.Skipped
// lists deferred events and those that were given up, RetrySkipped retries one, and ForgetSkipped
// drops one.
//
// A deferred event counts as applied for groups.Groups.WaitApplied and for the group's lag. Its
// message has no position (see [PositionFromContext]), so handlers that need positions return an
// error for it: the handlers of package projection and of dedup.Positions. Handlers of package
// process and of dedup.Keys accept it. Defer requires that positions are in the journal's own
// table.
//
// A shard has at most about 10,000 records of events that are deferred or were given up. Beyond
// that, events that fail wait in their place, as with [Block]. So a long outage slows the group
// down instead of growing the table.
//
// It costs four write units to defer an event, or six if the record is over 1 KB. Each further
// attempt costs one write unit and two read units, or more for large events, and the ack costs one
// write unit. As with Skip, the first event of an aggregate after a takeover costs a write unit
// instead of a read unit. A new owner of a shard reads the records when it starts and every ten
// minutes, at one read unit for each 4 KB.
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

// Defers reports whether the policy comes from [Defer]. A projection cannot handle deferred events,
// because they have no position.
func (p FailurePolicy) Defers() bool { return p.kind == deferEvents }

// skips reports whether the policy records events and moves positions past them.
func (p FailurePolicy) skips() bool { return p.kind == skip || p.Defers() }

// counts reports whether attempts are counted over changes of the owner. [Stop] begins again, since
// an operator resumes the group to try again.
func (p FailurePolicy) counts() bool { return p.kind != block && p.kind != stop }
