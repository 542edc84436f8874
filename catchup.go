package millrace

import (
	"cmp"
	"context"
	"errors"
	"time"

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
// the wake-ups of its commits, and waits up to 5 seconds for the broker. The build function of a
// read model has half of the time that is left.
//
// Errors: [ErrStarted] after Run, a [*ConfigError] for a group of [App.Consistent] that the App
// does not have, and those of subscriber.Burst.Run, process.Manager.Fire and the build functions of
// read models. What is left is no error.
func (a *App) CatchUp(ctx context.Context, hints ...subscriber.Hint) (subscriber.Left, error) {
	if _, limited := ctx.Deadline(); !limited { // the default of subscriber.Burst
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Minute)
		defer cancel()
	}
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
	router, err := a.newRouter(quiet{a.config.Logger})
	if err != nil {
		return subscriber.Left{}, err
	}
	for _, add := range a.wirings {
		if err := add(router); err != nil {
			return subscriber.Left{}, err
		}
	}
	building, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := a.buildModels(building, router)
	burst := subscriber.Burst{Hints: hints}
	if len(hints) == 0 {
		burst.Also = a.fires
	}
	left, err := burst.Run(ctx, router)
	a.flushWakeups(ctx)
	return left, errors.Join(append(failed, err)...)
}

// buildModels adds the projections of read models to a router. A read model that cannot be built
// must not prevent the rest. So the context of its build function ends after half of the time that
// is left. Otherwise it goes on as long as ctx, because the reactions may use it.
func (a *App) buildModels(ctx context.Context, router *message.Router) (failed []error) {
	deadline, _ := ctx.Deadline()
	for _, add := range a.models {
		ctx, end := context.WithCancelCause(ctx)
		late := time.AfterFunc(time.Until(deadline)/2, func() { end(errSlowBuild) })
		if err := add(ctx, router); err != nil {
			failed = append(failed, cmp.Or(context.Cause(ctx), err))
			end(nil)
		}
		late.Stop()
	}
	return failed
}

var errSlowBuild = errors.New("read models: a build function takes more than half of the time of a burst: create its tables when you deploy")

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
