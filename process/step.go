package process

import (
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Step is the result of a reaction: the events, commands and timeouts to store. Either all of it is
// stored in one transaction, or nothing. Make one with [Record]; the zero value does nothing. Its
// methods return a longer step and do not change their receiver.
type Step[S any] struct {
	events    aggregate.Events[S]
	commands  []any
	timeouts  []Timeout
	cancelled []string
}

// Events returns the events that the process records.
func (s Step[S]) Events() aggregate.Events[S] { return s.events }

// Commands returns the commands to send, in their order.
func (s Step[S]) Commands() []any { return s.commands }

// Timeouts returns the timeouts to set or move.
func (s Step[S]) Timeouts() []Timeout { return s.timeouts }

// Cancelled returns the names of the timeouts to cancel.
func (s Step[S]) Cancelled() []string { return s.cancelled }

// Timeout says when a process reacts without an event. Either After or At is set.
type Timeout struct {
	Name  string        // name of a reaction made with [OnTimeout], and a key if that has keys
	After time.Duration // duration since the step was made
	At    time.Time
}

// Record returns a step with the events that the process records. A step without an event that
// sends commands or changes timeouts fails with [ErrUnrecorded].
//
//	return process.Record(Begun{e.Total}).
//		Send(ReserveCredit{e.Order, e.Total}).
//		SetTimeout("credit", time.Minute), nil
func Record[S any](events ...aggregate.Event[S]) Step[S] { return Step[S]{events: events} }

// Send returns a step with additional commands. They are sent in their order when the step is
// stored. [Config].Marshaler converts them to messages, and [Config].GeneratePublishTopic returns
// their topics. The commands of a step together can have at most 390 KB. A command that is nil
// fails with [ErrInvalidStep].
func (s Step[S]) Send(commands ...any) Step[S] {
	s.commands = append(slices.Clip(s.commands), commands...)
	return s
}

// SetTimeout returns a step that sets a timeout. The timeout fires when the duration has passed
// since the step was made, and the process then reacts by the [OnTimeout] of that name. If the
// timeout is already set, it is moved. For several timeouts of one kind, append a key to the name,
// see [OnTimeout].
//
// A name without a reaction fails with an [*UnknownTimeoutError]. An invalid key, a name that the
// step sets or cancels twice, and a duration of 0 or less, fail with [ErrInvalidStep]. A process
// can have about 1,000 timeouts at the same time: a step that sets more with keys fails with a
// [*TooManyTimeoutsError].
func (s Step[S]) SetTimeout(name string, after time.Duration) Step[S] {
	return s.timeout(Timeout{Name: name, After: after})
}

// SetTimeoutAt returns a step that sets a timeout, as SetTimeout does, for a time. If the time is
// in the past, the timeout fires at the next poll of a manager. In the step of a timeout, a time
// after that of the timeout needs no poll: the missed times of a recurring timeout fire in a row.
func (s Step[S]) SetTimeoutAt(name string, at time.Time) Step[S] {
	return s.timeout(Timeout{Name: name, At: at})
}

func (s Step[S]) timeout(t Timeout) Step[S] {
	s.timeouts = append(slices.Clip(s.timeouts), t)
	return s
}

// CancelTimeout returns a step that cancels timeouts, if they are set. Names fail as in SetTimeout.
func (s Step[S]) CancelTimeout(names ...string) Step[S] {
	s.cancelled = append(slices.Clip(s.cancelled), names...)
	return s
}
