package repository

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
)

// leastRepetition is the time that a repetition may take even if the retry budget is smaller.
const leastRepetition = time.Second

// command is a call of Execute. It holds the result of the call.
type command interface {
	// run decides and commits, with as many attempts as conflicts require.
	run(ctx context.Context) error
	// executed reports whether the command is known to have been executed, and sets the result if
	// so. With an error it is unknown.
	executed(ctx context.Context) (known bool, err error)
	// isFinal reports whether none of the commits with an unknown outcome can be written any more.
	// One of them may have been written.
	isFinal(ctx context.Context) bool
	// outcomes returns the unknown outcomes of all commits so far.
	outcomes() []*journal.OutcomeUnknownError
}

// untilKnown runs a command. If the command has an id, untilKnown repeats it while its outcome is
// unknown and the retry budget lasts. The id makes that safe: at most one of the command's commits
// can be written.
func untilKnown(ctx context.Context, c command, commandID string, budget time.Duration) error {
	err := c.run(retry.WithBudget(ctx, budget))
	if len(c.outcomes()) == 0 || commandID == "" {
		return err
	}
	more := max(budget, leastRepetition)
	bounded, cancel := context.WithTimeout(retry.WithBudget(ctx, more), more)
	defer cancel()
	pauses := retry.Pauses(5*time.Millisecond, time.Second, budget)
	first := c.outcomes()[0]
	for ctx.Err() == nil {
		if known, err := again(bounded, c); known {
			return err
		}
		if !retry.Sleep(bounded, pauses.NextBackOff()) {
			break
		}
	}
	last := *c.outcomes()[len(c.outcomes())-1]
	last.Err = first.Err // not the error of the bounded context
	if ended := ctx.Err(); ended != nil && !errors.Is(&last, ended) {
		return fmt.Errorf("execute: %w: %w", ended, &last)
	}
	return fmt.Errorf("execute: %w", &last)
}

// again runs the command once more, unless it was executed. Known reports whether its outcome is
// known now. If not, the error does not count.
func again(ctx context.Context, c command) (known bool, err error) {
	// Run the command again only if necessary. A decision passes results to its caller through
	// variables that it captures, and they must be about the run that was written.
	if known, err = c.executed(ctx); known || err != nil {
		return known, err
	}
	before := len(c.outcomes())
	if err = c.run(ctx); err == nil {
		return true, nil
	}
	// Once ctx has ended, the error may be that of ctx.
	if ctx.Err() != nil || len(c.outcomes()) > before || !c.isFinal(ctx) {
		return false, err
	}
	if known, failed := c.executed(ctx); failed != nil || known {
		return known, failed
	}
	return true, err
}

// dependsOnState reports whether a decision on another state could lead to another result. It
// returns false if the store or the context failed, if the store has compared the version, or if
// the aggregate was deleted, which is final.
func dependsOnState(ctx context.Context, err error) bool {
	switch {
	case err == nil:
		return true
	case ctx.Err() != nil:
		return false
	case isCallers(err):
		return true
	case storeFailed(ctx, err), errors.Is(err, journal.ErrConflict), errors.Is(err, journal.ErrOutcomeUnknown):
		return false
	}
	return !errors.As(err, new(*journal.DuplicateCommandError)) && !errors.As(err, new(*journal.DeletedError))
}

// storeFailed reports whether the store or the context failed, so that the same request may succeed
// later.
func storeFailed(ctx context.Context, err error) bool {
	return ctx.Err() != nil || slices.ContainsFunc([]error{
		journal.ErrThrottled, journal.ErrContended, journal.ErrUnavailable, journal.ErrTableMissing, journal.ErrAccess, journal.ErrRestored,
	}, func(failure error) bool { return errors.Is(err, failure) })
}

func (e *execution[S]) outcomes() []*journal.OutcomeUnknownError { return e.unresolved }

// isFinal compares the versions: the aggregate has passed the expected version of each commit, or
// was deleted.
func (e *execution[S]) isFinal(ctx context.Context) bool {
	version, err := e.journal.Version(ctx, e.id)
	if err != nil {
		return errors.As(err, new(*journal.DeletedError))
	}
	return !slices.ContainsFunc(e.unresolved, func(u *journal.OutcomeUnknownError) bool { return version < u.First })
}

// executed checks whether the aggregate knows the command. If the last run of the decision made the
// commit of the command, the result is the aggregate after this commit, as Execute usually returns
// it. Otherwise, or if that version cannot be loaded any more, the result is that of a repeated
// command.
func (e *execution[S]) executed(ctx context.Context) (known bool, err error) {
	command, known, err := e.journal.Command(ctx, e.id, e.options.commandID)
	if err != nil || !known {
		return false, err
	}
	if err := e.mismatched(command.CommitID); err != nil {
		return true, err
	}
	a, err := e.currentSince(ctx, e.id, command.Version)
	switch {
	case isGone(err, e.id):
		e.result = e.gone()
		return true, nil
	case err != nil:
		return false, err
	case command.CommitID != e.commitID:
	case command.Version == a.Version:
		e.result = a
		return true, nil
	default:
		after, err := e.byHead(ctx, e.id, func(head journal.Head) (Aggregate[S], error) {
			return e.loadAt(ctx, head, command.Version)
		})
		switch {
		case err == nil:
			e.result = after
			return true, nil
		case storeFailed(ctx, err):
			return false, err
		}
	}
	a.Repeated = true
	e.result = a
	return true, nil
}
