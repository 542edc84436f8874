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
// Each attempt costs a load and a save: [Repository.Load], [Repository.Save].
//
// The error of a decision is returned as it is. All others are those of Load and Save, but for
// [journal.ErrNotFound]. With [journal.ErrOutcomeUnknown] the commit may have been written: ask
// [journal.Journal.Resolve] before executing the command again.
func (r *Repository[S]) Execute(ctx context.Context, id string, decide aggregate.Decision[S]) (Aggregate[S], error) {
	name, err := r.definition.ID(id)
	if err != nil {
		return Aggregate[S]{}, err
	}
	if decide == nil {
		return Aggregate[S]{}, fmt.Errorf("execute on %s: %w", name, ErrNilDecision)
	}
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(100*time.Millisecond),
		backoff.WithMaxElapsedTime(0), // attempts and context end it
	)
	for attempt := 1; ; attempt++ {
		a, conflict, err := r.attempt(ctx, name, decide)
		if conflict == nil {
			return a, err
		}
		if attempt >= r.config.MaxAttempts {
			return Aggregate[S]{}, &AttemptsError{ID: name, Attempts: attempt, Err: conflict}
		}
		if err := pause(ctx, pauses.NextBackOff()); err != nil {
			return Aggregate[S]{}, fmt.Errorf("execute on %s, nothing written: %w, after attempt %d: %w", name, err, attempt, conflict)
		}
	}
}

// attempt keeps conflicts of its own commit, which are worth another attempt, apart from all other errors;
// that of a decision may be anything.
func (r *Repository[S]) attempt(
	ctx context.Context, id aggregate.ID, decide aggregate.Decision[S],
) (a Aggregate[S], conflict *journal.ConflictError, err error) {
	var none Aggregate[S]
	a, err = r.load(ctx, id)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		a = Aggregate[S]{ID: id}
	case err != nil:
		return none, nil, fmt.Errorf("execute: %w", err)
	}
	own, err := r.copyOf(a)
	if err != nil {
		return none, nil, fmt.Errorf("execute: %w", err)
	}
	events, err := decide(own.State)
	if err != nil {
		return none, nil, err
	}
	if len(events) == 0 {
		return a, nil, nil
	}
	if err := r.commit(ctx, &a, events); errors.As(err, &conflict) {
		return none, conflict, nil
	} else if err != nil {
		return none, nil, fmt.Errorf("execute: %w", err)
	}
	return a, nil, nil
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
