package repository

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Execute loads an aggregate, runs a decision on its state, appends the events that it returns in one
// transaction, and gives the aggregate as it is after them. An aggregate without events is decided upon too,
// with the zero state. A decision without events writes nothing, and the aggregate is returned as loaded. The
// events carry the metadata of the context; see [aggregate.ContextWithMetadata].
//
// When somebody else writes between load and append, nothing is written, and Execute starts over with the
// load; so the decision may run several times. An [*AttemptsError] ends this after [Config.MaxAttempts], and
// the context's end does: the error then is the context's and holds the last conflict too.
//
// Each attempt costs a load and a save: [Repository.Load], [Repository.Save]. With a [Config.Cache] that has the
// aggregate, the first attempt is the save alone, and another one reads only the events since.
//
// With a [CommandID] the command takes effect once. When it is executed again, nothing is written, and the aggregate comes
// with Repeated set, also where the decision would refuse the command by now. A decision without events is remembered too; one that
// refuses is not. Of an aggregate that was deleted since, only id and Repeated are given.
//
// The error of a decision is returned as it is. All others are those of Load and Save, but for
// [journal.ErrNotFound]. With [journal.ErrOutcomeUnknown] the commit may have been written: execute the command again if
// it has a CommandID, and ask [journal.Journal.Resolve] before that if it has none.
func (r *Repository[S]) Execute(ctx context.Context, id string, decide aggregate.Decision[S], given ...Option) (Aggregate[S], error) {
	name, err := r.definition.ID(id)
	if err != nil {
		return Aggregate[S]{}, err
	}
	if decide == nil {
		return Aggregate[S]{}, fmt.Errorf("execute on %s: %w", name, ErrNilDecision)
	}
	options, err := optionsOf(given)
	if err != nil {
		return Aggregate[S]{}, fmt.Errorf("execute on %s, nothing written: %w", name, err)
	}
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(100*time.Millisecond),
		backoff.WithMaxElapsedTime(0), // attempts and context end it
	)
	var conflict *journal.ConflictError
	for attempt := 1; ; attempt++ {
		var a Aggregate[S]
		a, conflict, err = r.attempt(ctx, name, decide, options, conflict)
		if conflict == nil {
			return r.orRepeated(ctx, a, err, options)
		}
		if attempt >= r.config.MaxAttempts {
			return Aggregate[S]{}, &AttemptsError{ID: name, Attempts: attempt, Err: conflict}
		}
		if err := pause(ctx, pauses.NextBackOff()); err != nil {
			return Aggregate[S]{}, fmt.Errorf("execute on %s, nothing written: %w, after attempt %d: %w", name, err, attempt, conflict)
		}
	}
}

// orRepeated makes success of the end of an aggregate that knows the command: it was executed before the aggregate was
// deleted.
func (r *Repository[S]) orRepeated(ctx context.Context, a Aggregate[S], err error, options options) (Aggregate[S], error) {
	var deleted *journal.DeletedError
	if options.commandID == "" || isCallers(err) || !errors.As(err, &deleted) {
		return a, err
	}
	_, known, failed := r.journal.Command(ctx, deleted.ID, options.commandID)
	switch {
	case failed != nil:
		return a, fmt.Errorf("%w: %w", err, failed)
	case !known:
		return a, err
	}
	return Aggregate[S]{ID: deleted.ID, Repeated: true}, nil
}

// attempt keeps conflicts of its own commit, which are worth another attempt, apart from all other errors;
// that of a decision may be anything. It gets the conflict of the attempt before.
func (r *Repository[S]) attempt(
	ctx context.Context, id aggregate.ID, decide aggregate.Decision[S], options options, last *journal.ConflictError,
) (a Aggregate[S], conflict *journal.ConflictError, err error) {
	var none Aggregate[S]
	a, latest, err := r.begin(ctx, id, last)
	if err != nil {
		return none, nil, fmt.Errorf("execute: %w", err)
	}
	next, settled, refusal, err := r.act(ctx, a, decide, options)
	if !settled && !latest {
		// No commit has told whether the state that was kept is the latest, and a newer one may lead elsewhere.
		now, failed := r.currentOrNew(ctx, id)
		switch {
		case failed != nil:
			return none, nil, fmt.Errorf("execute: %w", failed)
		case err == nil || now.Version != a.Version:
			next, _, refusal, err = r.act(ctx, now, decide, options)
		}
	}
	switch {
	case err == nil && refusal != nil:
		a, err = r.refused(ctx, next, refusal, options)
		return a, nil, err
	case err == nil:
		return next, nil, nil
	case isCallers(err):
	case errors.As(err, &conflict):
		return none, conflict, nil
	case errors.Is(err, journal.ErrDuplicateCommand):
		if a, err = r.currentOrNew(ctx, id); err == nil {
			a.Repeated = true
			return a, nil, nil
		}
	}
	return none, nil, fmt.Errorf("execute: %w", err)
}

func isCallers(err error) bool {
	var callers *callersError
	return errors.As(err, &callers)
}

// act decides on a state and writes what follows. A refusal is the decision's own error. Settled says that the commit has been
// written, or may have been, or that its conditions or the context's end are why it was not.
func (r *Repository[S]) act(
	ctx context.Context, a Aggregate[S], decide aggregate.Decision[S], options options,
) (next Aggregate[S], settled bool, refusal, err error) {
	own, err := r.copyOf(a)
	if err != nil {
		return a, false, nil, err
	}
	events, refusal := decide(own.State)
	if refusal != nil || len(events) == 0 && options.commandID == "" {
		return a, false, refusal, nil
	}
	if err = r.commit(ctx, &a, events, options); err == nil {
		r.cache.put(a)
	}
	settled = err == nil || ctx.Err() != nil || !isCallers(err) &&
		(errors.Is(err, journal.ErrConflict) || errors.Is(err, journal.ErrDuplicateCommand) || errors.Is(err, journal.ErrOutcomeUnknown))
	return a, settled, nil, err
}

// refused gives the aggregate if it knows the command: what refuses it may be what the same command has done before.
func (r *Repository[S]) refused(ctx context.Context, a Aggregate[S], refusal error, options options) (Aggregate[S], error) {
	if options.commandID == "" {
		return Aggregate[S]{}, refusal
	}
	command, known, err := r.journal.Command(ctx, a.ID, options.commandID)
	if err != nil {
		return Aggregate[S]{}, fmt.Errorf("execute: %w", errors.Join(err, refusal))
	}
	if !known {
		return Aggregate[S]{}, refusal
	}
	if command.Version > a.Version { // it was executed after the state was read
		if a, err = r.currentOrNew(ctx, a.ID); err != nil {
			return Aggregate[S]{}, fmt.Errorf("execute: %w", err)
		}
	}
	a.Repeated = true
	return a, nil
}

// begin gives the aggregate to decide on, and whether it was the latest version when it was read.
func (r *Repository[S]) begin(ctx context.Context, id aggregate.ID, last *journal.ConflictError) (a Aggregate[S], latest bool, err error) {
	a, kept := r.cache.get(id)
	if kept && last == nil {
		return a, false, nil
	}
	if kept && last.Actual >= a.Version {
		// The refusal has told what a read of the head would.
		if kept, err = r.catchUp(ctx, &a, last.Actual); kept && err == nil {
			return a, true, nil
		}
		r.cache.forget(id)
	}
	a, err = r.currentOrNew(ctx, id)
	return a, true, err
}

// pause waits, or returns the error of a context that ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
