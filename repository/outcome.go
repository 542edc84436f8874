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

// untilKnown runs a command, and again while its outcome is unknown and the retry budget lasts, if
// it has an id. The id makes that safe: of all commits of the command one can be written.
func (e *execution[S]) untilKnown(ctx context.Context) (Aggregate[S], error) {
	a, err := e.run(ctx)
	if len(e.unknown) == 0 || e.options.commandID == "" {
		return a, err
	}
	budget := e.journal.Config().RetryBudget
	bounded, cancel := context.WithTimeout(ctx, max(budget, leastRepetition))
	defer cancel()
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(budget),
	)
	first := e.unknown[0]
	for ctx.Err() == nil {
		if a, known, err := e.again(bounded); known {
			return a, err
		}
		wait := pauses.NextBackOff()
		if wait == backoff.Stop || pause(bounded, wait) != nil {
			break
		}
	}
	last := *e.unknown[len(e.unknown)-1]
	last.Err = first.Err // not that of the bounded context
	if ended := ctx.Err(); ended != nil && !errors.Is(&last, ended) {
		return Aggregate[S]{}, fmt.Errorf("execute: %w: %w", ended, &last)
	}
	return Aggregate[S]{}, fmt.Errorf("execute: %w", &last)
}

// again runs the command once more, unless it was executed. Known reports whether its outcome is
// known now; otherwise the error does not count.
func (e *execution[S]) again(ctx context.Context) (a Aggregate[S], known bool, err error) {
	// Not before this is known to be necessary: what a decision passes to its caller, through
	// variables that it captures, has to be about the run that was written.
	if a, known, err = e.executed(ctx); known || err != nil {
		return a, known, err
	}
	before := len(e.unknown)
	if a, err = e.run(ctx); err == nil {
		return a, true, nil
	}
	if len(e.unknown) > before || !e.isSettled(ctx) {
		return a, false, err
	}
	executed, known, failed := e.executed(ctx)
	if failed != nil || known {
		return executed, known, failed
	}
	return Aggregate[S]{}, true, err
}

// isSettled reports whether none of the commits with an unknown outcome can be written any more,
// because the aggregate has passed the version that they expect or was deleted. One of them may
// have been written.
func (e *execution[S]) isSettled(ctx context.Context) bool {
	version, err := e.journal.Version(ctx, e.id)
	if err != nil {
		return errors.As(err, new(*journal.DeletedError))
	}
	return !slices.ContainsFunc(e.unknown, func(u *journal.OutcomeUnknownError) bool { return version < u.First })
}

// executed returns the aggregate if it knows the command. If the last run of the decision made the
// commit of the command, that is the aggregate after this commit, as Execute returns it otherwise.
// In all other cases, or if that version cannot be loaded any more, the command is repeated. An
// error leaves open whether the command is known.
func (e *execution[S]) executed(ctx context.Context) (a Aggregate[S], known bool, err error) {
	command, known, err := e.journal.Command(ctx, e.id, e.options.commandID)
	if err != nil || !known {
		return Aggregate[S]{}, false, err
	}
	a, err = e.currentOrNew(ctx, e.id)
	switch {
	case e.isDeleted(err):
		return e.deleted(), true, nil
	case err != nil:
		return Aggregate[S]{}, false, err
	case command.CommitID != e.latest:
	case command.Version == a.Version:
		return a, true, nil
	default:
		after, err := e.byHead(ctx, e.id, func(head journal.Head) (Aggregate[S], error) {
			return e.loadAt(ctx, head, command.Version)
		})
		if err == nil {
			return after, true, nil
		}
	}
	a.Repeated = true
	return a, true, nil
}
