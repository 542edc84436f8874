package repository

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
)

// Middleware wraps calls of [Repository.Execute], [Repository.Save] and [Transaction.Execute], for
// example with a span (tracing.CommitMiddleware). It must call next once, with ctx or a context
// derived from it, and return the error of next. If it returns nil, the call returns the error of
// next, or an error if next was not called.
type Middleware func(ctx context.Context, call *Call, next func(context.Context) error) error

// Call is what a [Middleware] wraps. The fields after Aggregates are set when next has returned.
type Call struct {
	Aggregates []aggregate.ID // one, or the participants of a [Transaction]
	Decisions  int            // number of decisions, 0 for Save
	EventTypes []string       // the types of the events that were committed, in order
	Repeated   bool           // the command had been executed before
	// Version is that of the aggregate after the call. It is 0 after an error, and if there are
	// several aggregates.
	Version uint64
}

var errNotCalled = errors.New("nothing was written: the middleware has not called next, and returned no error")

// call calls the middleware. A call that has failed, or that was not made, is no success, whatever
// the middleware returns.
func (m Middleware) call(ctx context.Context, call *Call, next func(context.Context) error) error {
	inner := errNotCalled
	err := m(ctx, call, func(ctx context.Context) error {
		inner = next(ctx)
		return inner
	})
	if err == nil {
		err = inner
	}
	return err
}

// wrapped calls do with the middleware of the repository. Do returns the events that it has saved.
func (r *Repository[S]) wrapped(
	ctx context.Context, call *Call, do func(context.Context) (Aggregate[S], aggregate.Events[S], error),
) (a Aggregate[S], err error) {
	err = r.config.Middleware.call(ctx, call, func(ctx context.Context) (err error) {
		var events aggregate.Events[S]
		a, events, err = do(ctx)
		if call.Repeated = a.Repeated; err == nil {
			call.Version = a.Version
		}
		if err == nil && !a.Repeated {
			for _, event := range events {
				call.EventTypes = append(call.EventTypes, event.EventType())
			}
		}
		return err
	})
	return a, err
}

// middleware returns the middleware of the first participant that has one, or nil.
func (all participants) middleware() Middleware {
	for _, p := range all {
		if m := p.middleware(); m != nil {
			return m
		}
	}
	return nil
}

// wrapped calls do with the middleware of a participant.
func (tx *Transaction) wrapped(
	ctx context.Context, middleware Middleware, decide func() error, do func(context.Context, func() error) error,
) error {
	call := &Call{Aggregates: tx.all.ids()}
	return middleware.call(ctx, call, func(ctx context.Context) error {
		err := do(ctx, func() error {
			call.Decisions++
			return decide()
		})
		for _, result := range tx.Results() {
			call.EventTypes = append(call.EventTypes, result.EventTypes...)
			call.Repeated = call.Repeated || result.Repeated
		}
		return err
	})
}
