package millrace

import (
	"context"
	"errors"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/subscriber"
)

// CatchUp runs everything that handles events until there is nothing more to handle, or until
// shortly before the deadline of ctx; without a deadline, for up to a minute. Nothing runs after it
// has returned. It is for a process that does not run for long, instead of [App.Run]. Call it as
// often as necessary, also concurrently.
//
// With hints it handles the events of these aggregates, and what the handlers commit. Without hints
// it is a sweep: it also handles what hints have missed, retries, deferred events, and the timeouts
// and unsent commands of process managers. Run a sweep when the program is deployed, and then on a
// schedule, for example each minute. See [subscriber.Burst].
//
// It runs the handlers that were added by methods of the App, but not those that were added to
// [App.Router]. It runs no [Service] and no feed of [App.Live], and receives no wake-ups. It sends
// the wake-ups of its commits, and waits up to 5 seconds for the broker.
//
// Errors: [ErrStarted] after Run, a [*ConfigError] for a group of [App.Consistent] that the App
// does not have, and those of subscriber.Burst.Run, process.Manager.Fire and the build functions of
// read models. What is left is no error.
func (a *App) CatchUp(ctx context.Context, hints ...subscriber.Hint) (subscriber.Left, error) {
	a.mu.Lock()
	refused, first, queried := a.started && !a.bursts, !a.started, a.queried
	a.started, a.bursts = true, !refused
	a.mu.Unlock()
	if refused {
		return subscriber.Left{}, ErrStarted
	}
	if err := a.hasGroups(queried...); err != nil {
		return subscriber.Left{}, err
	}
	if first {
		a.reportNoCommands()
	}
	router, err := a.config.newRouter(quiet{a.config.Logger})
	if err != nil {
		return subscriber.Left{}, err
	}
	for _, add := range a.wirings {
		if err := add(router); err != nil {
			return subscriber.Left{}, err
		}
	}
	var failed []error // a read model that cannot be built must not prevent the rest
	for _, add := range a.models {
		failed = append(failed, add(ctx, router))
	}
	burst := subscriber.Burst{Hints: hints}
	if len(hints) == 0 {
		burst.Also = a.fires
	}
	left, err := burst.Run(ctx, router)
	a.flushWakeups(ctx)
	return left, errors.Join(append(failed, err)...)
}

// quiet is the logger of a router in a burst. There may be a burst for each event, so the router
// reports its beginning and its end as debug messages.
type quiet struct{ watermill.LoggerAdapter }

func (q quiet) Info(msg string, fields watermill.LogFields) { q.Debug(msg, fields) }

func (q quiet) With(fields watermill.LogFields) watermill.LoggerAdapter {
	return quiet{q.LoggerAdapter.With(fields)}
}

// kept is a subscriber that a router does not close.
type kept struct{ message.Subscriber }

func (kept) Close() error { return nil }
