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
		before := len(e.unknown)
		a, err = e.run(bounded)
		if err == nil {
			return a, nil
		}
		if len(e.unknown) == before && e.isSettled(bounded) {
			if a, known, failed := e.executed(bounded); failed == nil && known {
				return a, nil
			} else if failed == nil {
				return Aggregate[S]{}, err
			}
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

// executed returns the aggregate if it knows the command. An error leaves that open.
func (e *execution[S]) executed(ctx context.Context) (a Aggregate[S], known bool, err error) {
	command, known, err := e.journal.Command(ctx, e.id, e.options.commandID)
	if err != nil || !known {
		return Aggregate[S]{}, known, err
	}
	if a, err = e.currentOrNew(ctx, e.id); e.isDeleted(err) {
		return e.deleted(command), true, nil
	}
	a.Repeated = !e.isOwn(command.CommitID)
	return a, true, err
}

// isOwn reports whether this call made a commit, so that its command is not repeated.
func (e *execution[S]) isOwn(commitID string) bool {
	return slices.ContainsFunc(e.unknown, func(u *journal.OutcomeUnknownError) bool { return u.CommitID == commitID })
}
