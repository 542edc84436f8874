package repository

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// isKnown reports whether a new commit, read after a decision, has executed the command.
func (e *execution[S]) isKnown(ctx context.Context, a Aggregate[S]) (bool, error) {
	if e.options.commandID == "" || e.options.expected != nil || !e.canGoOn(a) {
		return false, nil
	}
	command, known, err := e.journal.Executed(ctx, e.id, a.from().commands, e.options.commandID)
	if err == nil && known {
		err = e.options.mismatch(e.id, command.CommitID)
	}
	return known, err
}

// repeated returns the aggregate at the version of an earlier execution of the command, or later.
func (e *execution[S]) repeated(ctx context.Context, version uint64) (Aggregate[S], error) {
	if e.canGoOn(e.base) {
		if a, err := e.goOn(ctx, e.base); err != nil || a.Version >= version {
			return a, err
		}
	}
	return e.currentSince(ctx, e.id, version)
}

// orRepeated returns success if the aggregate is gone and has executed the command before. Do not
// pass it the error of a decision, which may report that some other aggregate is gone.
func (e *execution[S]) orRepeated(ctx context.Context, reason error) (Aggregate[S], error) {
	if isCallers(reason) || !isGone(reason, e.id) {
		return Aggregate[S]{}, reason
	}
	if _, err := e.known(ctx, nil, reason); err != nil {
		return Aggregate[S]{}, err
	}
	return e.gone(), nil
}

// orKnown returns the aggregate if it has executed the command before. Otherwise it returns reason,
// the error for which the command was not executed. The command itself may have caused that error
// if it was executed before. Read is the aggregate if it was read, or nil. If it does not include
// the command, orKnown loads the aggregate.
func (e *execution[S]) orKnown(ctx context.Context, read *Aggregate[S], reason error) (Aggregate[S], error) {
	command, err := e.known(ctx, read, reason)
	if err != nil {
		return Aggregate[S]{}, err
	}
	if command.CommitID == e.commitID { // it arrived late, and nothing has decided since
		switch known, err := e.executed(ctx); {
		case err != nil:
			return Aggregate[S]{}, fmt.Errorf("execute: %w", err)
		case known:
			return e.result, nil
		}
	}
	var a Aggregate[S]
	if read != nil && command.Version <= read.Version {
		a = *read
	} else if a, err = e.currentSince(ctx, e.id, command.Version); isGone(err, e.id) {
		return e.gone(), nil
	} else if err != nil {
		return Aggregate[S]{}, fmt.Errorf("execute: %w", err)
	}
	a.Repeated = true
	return a, nil
}

// known returns the command if the aggregate has executed it, and otherwise reason. If that cannot
// be read, the error does not wrap the reason. Read is as in orKnown.
func (e *execution[S]) known(ctx context.Context, read *Aggregate[S], reason error) (storage.Command, error) {
	if e.options.commandID == "" {
		return storage.Command{}, reason
	}
	command, known, err := e.command(ctx, read)
	switch {
	case err != nil:
		return command, fmt.Errorf("execute: %w, after: %v", err, reason) //nolint:errorlint // see above
	case !known:
		return command, reason
	}
	return command, e.mismatched(command.CommitID)
}

// mismatched returns an error if the command that was executed had another content.
func (e *execution[S]) mismatched(commitID string) error {
	if err := e.options.mismatch(e.id, commitID); err != nil {
		return fmt.Errorf("execute: %w", err)
	}
	return nil
}

// command searches for the command of the call. If the version of the aggregate was compared, the
// ids that its load has found are complete.
func (e *execution[S]) command(ctx context.Context, read *Aggregate[S]) (storage.Command, bool, error) {
	if read != nil && e.compared && e.canGoOn(*read) {
		return e.journal.Executed(ctx, e.id, read.from().commands, e.options.commandID)
	}
	return e.journal.Command(ctx, e.id, e.options.commandID)
}

// isGone reports whether an error says that an aggregate was deleted, or that its key was
// destroyed.
func isGone(err error, id aggregate.ID) bool {
	var deleted *journal.DeletedError
	var unreadable *journal.EncodingError
	return errors.As(err, &deleted) && deleted.ID == id ||
		errors.As(err, &unreadable) && unreadable.Aggregate == id && errors.Is(unreadable, journal.ErrKeyDestroyed)
}

// gone returns the result of Execute for an aggregate that is gone, and has executed the command.
func (e *execution[S]) gone() Aggregate[S] { return Aggregate[S]{ID: e.id, Repeated: true} }

// begin returns the aggregate to decide on.
func (e *execution[S]) begin(ctx context.Context, last *journal.ConflictError) (a Aggregate[S], read reading, err error) {
	if last != nil && e.canGoOn(e.base) {
		a, err = e.goOn(ctx, e.base)
		return a, latest, err
	}
	a, kept := e.cache.get(e.id)
	if kept && last == nil {
		e.counters.cacheHits.Add(1)
		return a, cached, nil
	}
	if kept && last.Actual >= max(a.Version, e.handledVersion(ctx, e.id)) {
		// The conflict holds the version, so the head need not be read.
		if kept, err = e.catchUp(ctx, &a, last.Actual); kept && err == nil {
			return a, latest, nil
		}
		e.cache.forget(e.id)
	}
	if last == nil && e.options.expected == nil && len(e.options.writes) == 0 {
		e.peeked = e.journal.Config.Now()
		if a, ok, err := e.peek(ctx, e.id); ok || err != nil {
			return a, eventually, err
		}
		e.peeked = time.Time{}
	}
	a, err = e.currentOrNew(ctx, e.id)
	return a, latest, err
}
