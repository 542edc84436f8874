package millrace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// settleTime is the time that Settle waits at most if its context has no deadline.
const settleTime = time.Minute

// Settle waits until the App has handled all events that were committed before the call, and
// everything that followed from them: commands of process managers and of [App.Receive], their
// events, read models of every kind, and the messages of [App.Forward]. It is for tests:
//
//	_, err := orders.Execute(ctx, "42", Place("tea"))
//	err = app.Settle(ctx)
//	// now the read model shows the order, and the mail is sent
//
// Timeouts of processes that are due later do not count. Timeouts that are due now fire. So after
// dynamotest.Clock.Advance, Settle waits for what the timeouts lead to. A failed event counts until
// an attempt succeeds, or until its group has skipped it or moved it to a poison queue. So an event
// that always fails in a group without such a policy makes Settle wait until ctx ends. Messages
// that a Pub/Sub has not delivered to [App.Receive] yet do not count, and neither do [App.Live] and
// services.
//
// Settle works while the App runs; it waits until [App.Run] has started everything. In an App that
// has run a burst, it calls [App.CatchUp]. It also waits for the work of other members of the App's
// groups, such as a second App on the same tables. The events of other processes count as soon as
// the tail index shows them. Do not commit events meanwhile: Settle ends only when a pass finds no
// event that the pass before has not found.
//
// It ends with ctx, or after a minute if ctx has no deadline, and then returns a
// [*NotSettledError]. If all that is left cannot settle by itself, because an aggregate is parked,
// or a group is paused or was stopped, Settle returns that error at once.
//
// Each pass reads the group's rows and the tail of each topic from the cursor of the group that is
// the furthest behind. This is usually what was committed in the last 15 seconds. It also reads the
// positions that this process does not know.
//
// Errors: [*NotSettledError], [ErrNotRunning], and the errors of the journal that a repetition does
// not solve.
func (a *App) Settle(ctx context.Context) error {
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, settleTime)
		defer cancel()
	}
	s := &settling{App: a, from: map[string][]time.Time{}}
	if err := s.begin(ctx); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	defer s.watch()()
	return s.run(ctx)
}

// begin waits until the App runs, unless it works in bursts.
func (s *settling) begin(ctx context.Context) error {
	s.mu.Lock()
	s.inBursts = s.bursts
	s.mu.Unlock()
	if s.inBursts {
		return nil
	}
	select {
	case <-s.running:
		return s.ended()
	case <-s.stopped:
		return ErrNotRunning
	case <-ctx.Done():
		return fmt.Errorf("%w: %w: call Start, Run or CatchUp before Settle", ctx.Err(), ErrNotRunning)
	}
}

// ended returns [ErrNotRunning] if the App stops.
func (s *settling) ended() error {
	if s.stopping.Load() {
		return ErrNotRunning
	}
	return nil
}

// Unsettled is work that [App.Settle] has waited for.
type Unsettled struct {
	// Group is the consumer group, or the type of a process manager.
	Group string
	// Aggregate and Event name an event that the group has not handled. It may be a later event of
	// the aggregate than the one that fails. For a process manager Aggregate is the process. Both
	// are zero if the rest of the group, or of the App, is not settled.
	Aggregate aggregate.ID
	Event     uint64
	// Reason says why, such as the last failure. It is empty if no attempt has failed.
	Reason string
	// Stuck reports that this cannot settle before somebody intervenes: the aggregate is parked, or
	// the group is paused or was stopped.
	Stuck bool
}

func (u Unsettled) String() string {
	var text strings.Builder
	if u.Group != "" {
		fmt.Fprintf(&text, "group %q", u.Group)
	}
	if u.Event > 0 {
		fmt.Fprintf(&text, " has not handled event %d of %s", u.Event, u.Aggregate)
	} else if u.Aggregate.Value != "" {
		fmt.Fprintf(&text, " has work for process %s", u.Aggregate)
	}
	if u.Reason != "" {
		if text.Len() > 0 {
			text.WriteString(": ")
		}
		text.WriteString(u.Reason)
	}
	return text.String()
}

// isRunning reports whether u names running handlers only.
func (u Unsettled) isRunning() bool { return u.Group == "" }

// mostUnsettled is the number of entries that a NotSettledError has at most.
const mostUnsettled = 10

// NotSettledError reports what was left when [App.Settle] returned. If all of it is stuck, the rest
// of the App has settled.
type NotSettledError struct {
	// Left is what was left, at most 10 entries, and stuck ones first. If More is set there is
	// more. If Err is set there may be more in any case, since Settle checks one thing after the
	// other.
	Left []Unsettled
	More bool
	// Err is the error of the context, with the last error of a read, if Settle waited until the
	// context ended. It is nil if all that is left is stuck.
	Err error
}

func (e *NotSettledError) Error() string {
	var parts []string
	for _, u := range e.Left {
		parts = append(parts, u.String())
	}
	if e.More {
		parts = append(parts, "and more")
	}
	if len(parts) == 0 {
		parts = append(parts, "events were committed all the time")
	}
	text := "not settled: " + strings.Join(parts, "; ")
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *NotSettledError) Unwrap() error { return e.Err }

// failed returns a NotSettledError for what is left, after an error of the context.
func (s *settling) failed(ctx context.Context) error {
	e := &NotSettledError{Err: errors.Join(ctx.Err(), s.err)}
	left := slices.Concat(s.stuck, s.left)
	if running := s.handling.stillRunning(); running != nil && e.Err != nil {
		left = append(slices.DeleteFunc(left, Unsettled.isRunning), Unsettled{Reason: running.Error()})
	}
	for _, u := range left {
		if e.More = len(e.Left) == mostUnsettled; e.More {
			break
		}
		e.Left = append(e.Left, u)
	}
	return e
}
