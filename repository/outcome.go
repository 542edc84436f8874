package repository

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/journal"
)

// leastRepetition is how long a repetition may take, however small the retry budget is.
const leastRepetition = time.Second

// command is a call of Execute. It keeps its result.
type command interface {
	// run decides and commits, in as many attempts as conflicts take.
	run(ctx context.Context) error
	// executed reports whether the command is known to have been executed, and sets the result if
	// it was. An error leaves that open.
	executed(ctx context.Context) (known bool, err error)
	// isSettled reports whether none of the commits with an unknown outcome can be written any
	// more. One of them may have been written.
	isSettled(ctx context.Context) bool
	// outcomes are the unknown ones of all commits so far.
	outcomes() []*journal.OutcomeUnknownError
}

// untilKnown runs a command, and again while its outcome is unknown and the retry budget lasts, if
// it has an id. The id makes that safe: of all commits of the command one can be written.
func untilKnown(ctx context.Context, c command, commandID string, budget time.Duration) error {
	err := c.run(ctx)
	if len(c.outcomes()) == 0 || commandID == "" {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, max(budget, leastRepetition))
	defer cancel()
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(budget),
	)
	first := c.outcomes()[0]
	for ctx.Err() == nil {
		if known, err := again(bounded, c); known {
			return err
		}
		wait := pauses.NextBackOff()
		if wait == backoff.Stop || pause(bounded, wait) != nil {
			break
		}
	}
	last := *c.outcomes()[len(c.outcomes())-1]
	last.Err = first.Err // not that of the bounded context
	if ended := ctx.Err(); ended != nil && !errors.Is(&last, ended) {
		return fmt.Errorf("execute: %w: %w", ended, &last)
	}
	return fmt.Errorf("execute: %w", &last)
}

// again runs the command once more, unless it was executed. Known reports whether its outcome is
// known now; otherwise the error does not count.
func again(ctx context.Context, c command) (known bool, err error) {
	// Not before this is known to be necessary: what a decision passes to its caller, through
	// variables that it captures, has to be about the run that was written.
	if known, err = c.executed(ctx); known || err != nil {
		return known, err
	}
	before := len(c.outcomes())
	if err = c.run(ctx); err == nil {
		return true, nil
	}
	if len(c.outcomes()) > before || !c.isSettled(ctx) {
		return false, err
	}
	if known, failed := c.executed(ctx); failed != nil || known {
		return known, failed
	}
	return true, err
}

// untilNoConflict makes attempts until one returns no conflict, with pauses, at most a number of
// times. An attempt receives the conflict of the one before.
func untilNoConflict(
	ctx context.Context, target any, most int, attempt func(last *journal.ConflictError) (*journal.ConflictError, error),
) error {
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(100*time.Millisecond),
		backoff.WithMaxElapsedTime(0), // attempts and context end it
	)
	var conflict *journal.ConflictError
	for attempts := 1; ; attempts++ {
		var err error
		if conflict, err = attempt(conflict); conflict == nil {
			return err
		}
		if attempts >= most {
			return &AttemptsError{ID: conflict.ID, Attempts: attempts, Err: conflict}
		}
		if err := pause(ctx, pauses.NextBackOff()); err != nil {
			return fmt.Errorf("execute on %s, nothing written: %w, after attempt %d: %w", target, err, attempts, conflict)
		}
	}
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

// dependsOnState reports whether a decision on another state could lead to something else: not
// where the store or the context failed, nor where the store has compared the version.
func dependsOnState(ctx context.Context, err error) bool {
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil:
		return false
	case isCallers(err):
		return true
	}
	for _, other := range []error{
		journal.ErrConflict, journal.ErrOutcomeUnknown, journal.ErrThrottled, journal.ErrContended, journal.ErrUnavailable,
		journal.ErrTableMissing, journal.ErrAccess, journal.ErrRestored,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return !errors.As(err, new(*journal.DuplicateCommandError))
}

func (e *execution[S]) outcomes() []*journal.OutcomeUnknownError { return e.unknown }

// isSettled goes by the version: the aggregate has passed the one that a commit expects, or was
// deleted.
func (e *execution[S]) isSettled(ctx context.Context) bool {
	version, err := e.journal.Version(ctx, e.id)
	if err != nil {
		return errors.As(err, new(*journal.DeletedError))
	}
	return !slices.ContainsFunc(e.unknown, func(u *journal.OutcomeUnknownError) bool { return version < u.First })
}

// executed goes by the command that the aggregate knows. If the last run of the decision made the
// commit of the command, the result is the aggregate after this commit, as Execute returns it
// otherwise. In all other cases, or if that version cannot be loaded any more, the command is
// repeated.
func (e *execution[S]) executed(ctx context.Context) (known bool, err error) {
	command, known, err := e.journal.Command(ctx, e.id, e.options.commandID)
	if err != nil || !known {
		return false, err
	}
	a, err := e.currentSince(ctx, e.id, command.Version)
	switch {
	case e.isDeleted(err):
		e.result = e.deleted()
		return true, nil
	case err != nil:
		return false, err
	case command.CommitID != e.latest:
	case command.Version == a.Version:
		e.result = a
		return true, nil
	default:
		after, err := e.byHead(ctx, e.id, func(head journal.Head) (Aggregate[S], error) {
			return e.loadAt(ctx, head, command.Version)
		})
		if err == nil {
			e.result = after
			return true, nil
		}
	}
	a.Repeated = true
	e.result = a
	return true, nil
}
