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

// command is a call of Execute.
type command[R any] interface {
	// run decides and commits, in as many attempts as conflicts take.
	run(ctx context.Context) (R, error)
	// executed returns what run does, if the command is known to have been executed. An error
	// leaves that open.
	executed(ctx context.Context) (result R, known bool, err error)
	// isSettled reports whether none of the commits with an unknown outcome can be written any
	// more. One of them may have been written.
	isSettled(ctx context.Context) bool
	// outcomes are the unknown ones of all commits so far.
	outcomes() []*journal.OutcomeUnknownError
}

// untilKnown runs a command, and again while its outcome is unknown and the retry budget lasts, if
// it has an id. The id makes that safe: of all commits of the command one can be written.
func untilKnown[R any](ctx context.Context, c command[R], commandID string, budget time.Duration) (R, error) {
	var none R
	result, err := c.run(ctx)
	if len(c.outcomes()) == 0 || commandID == "" {
		return result, err
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
		if result, known, err := again(bounded, c); known {
			return result, err
		}
		wait := pauses.NextBackOff()
		if wait == backoff.Stop || pause(bounded, wait) != nil {
			break
		}
	}
	last := *c.outcomes()[len(c.outcomes())-1]
	last.Err = first.Err // not that of the bounded context
	if ended := ctx.Err(); ended != nil && !errors.Is(&last, ended) {
		return none, fmt.Errorf("execute: %w: %w", ended, &last)
	}
	return none, fmt.Errorf("execute: %w", &last)
}

// again runs the command once more, unless it was executed. Known reports whether its outcome is
// known now; otherwise the error does not count.
func again[R any](ctx context.Context, c command[R]) (result R, known bool, err error) {
	var none R
	// Not before this is known to be necessary: what a decision passes to its caller, through
	// variables that it captures, has to be about the run that was written.
	if result, known, err = c.executed(ctx); known || err != nil {
		return result, known, err
	}
	before := len(c.outcomes())
	if result, err = c.run(ctx); err == nil {
		return result, true, nil
	}
	if len(c.outcomes()) > before || !c.isSettled(ctx) {
		return result, false, err
	}
	executed, known, failed := c.executed(ctx)
	if failed != nil || known {
		return executed, known, failed
	}
	return none, true, err
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
