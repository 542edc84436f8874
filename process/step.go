package process

import (
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// Step is what a reaction returns to be done. All of it is stored in one transaction, or nothing.
// Make one with [Record]; the zero value does nothing. Its methods return a longer step and do not
// change the one that they are called on.
type Step[S any] struct {
	events    aggregate.Events[S]
	commands  []any
	timeouts  []Timeout
	cancelled []string
}

// Events returns what the process remembers.
func (s Step[S]) Events() aggregate.Events[S] { return s.events }

// Commands returns the commands that are sent, in their order.
func (s Step[S]) Commands() []any { return s.commands }

// Timeouts returns the timeouts that are set or moved.
func (s Step[S]) Timeouts() []Timeout { return s.timeouts }

// Cancelled returns the names of the timeouts that are cancelled.
func (s Step[S]) Cancelled() []string { return s.cancelled }

// Timeout has a process react when a time has come. Either After or At is set.
type Timeout struct {
	Name  string        // of a reaction made with [OnTimeout]
	After time.Duration // from when the step is made
	At    time.Time
}

// Record begins a step with the events that the process remembers of it. Without an event a step
// that does anything fails with [ErrUnrecorded].
//
//	return process.Record(Begun{e.Total}).
//		Send(ReserveCredit{e.Order, e.Total}).
//		SetTimeout("credit", time.Minute), nil
func Record[S any](events ...aggregate.Event[S]) Step[S] { return Step[S]{events: events} }

// Send adds commands. They are sent in their order when the step is stored, as the messages that
// [Config].Marshaler makes of them, to the topics of [Config].GeneratePublishTopic. All commands of
// a step together must fit an item of 400 KB. A command that is nil fails with [ErrInvalidStep].
func (s Step[S]) Send(commands ...any) Step[S] {
	s.commands = append(slices.Clip(s.commands), commands...)
	return s
}

// SetTimeout sets a timeout. It fires when the duration has passed since the step was made, and the
// process then reacts by the [OnTimeout] of its name. A timeout that is set already is moved. A
// name without a reaction fails with an [*UnknownTimeoutError]. A name that the step sets or
// cancels twice, and a duration that is not more than 0, fail with [ErrInvalidStep].
func (s Step[S]) SetTimeout(name string, after time.Duration) Step[S] {
	return s.timeout(Timeout{Name: name, After: after})
}

// SetTimeoutAt is SetTimeout with a time. If that is past, the timeout fires at the next poll of a
// manager.
func (s Step[S]) SetTimeoutAt(name string, at time.Time) Step[S] {
	return s.timeout(Timeout{Name: name, At: at})
}

func (s Step[S]) timeout(t Timeout) Step[S] {
	s.timeouts = append(slices.Clip(s.timeouts), t)
	return s
}

// CancelTimeout cancels timeouts, if they are set. Names fail as those of SetTimeout do.
func (s Step[S]) CancelTimeout(names ...string) Step[S] {
	s.cancelled = append(slices.Clip(s.cancelled), names...)
	return s
}
