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

// Execute loads an aggregate, runs a decision on its state, appends the returned events in one
// atomic write, and returns the aggregate after them. It also decides on an aggregate without
// events, with the zero state. If the decision returns no events, Execute writes nothing and
// returns the aggregate as loaded. The events carry the metadata of the context; see
// [aggregate.ContextWithMetadata].
//
// If another writer commits between load and append, nothing is written, and Execute starts again
// with the load, so the decision may run several times. After [Config.MaxAttempts] attempts it
// returns an [*AttemptsError]. If the context ends first, the error wraps the context's error and
// the last conflict. With [WithExpectedVersion], Execute does not start again.
//
// Each attempt costs a load and a save: see [Repository.Load] and [Repository.Save]. If the
// aggregate is in the [Config.Cache], the first attempt costs the save only. In the layout
// journal.Packed the first load is eventually consistent, for half of the units, and a further
// attempt reads only new events. The state may be old, as one of the cache may be. The condition of
// the commit detects that. If a decision on such a state refuses, or writes nothing, Execute reads
// what has followed, for one unit or more. If there is a new version, it decides again in the same
// attempt. Execute loads with strong consistency if there are [WithExpectedVersion] or
// [WithWrites], in a handler of the aggregate's own events, and for 5 seconds after a stale read of
// the aggregate.
//
// Calls on one aggregate of one repository run one after the other, because only one of them could
// succeed. The next call does not wait longer than 500 ms for one, or twice the time of the last
// call, up to 5 seconds. With calls that arrive faster than they can run, a call waits until its
// context ends: set a deadline.
//
// With [WithCommandID] the command takes effect once. If it was executed before, Execute writes
// nothing and returns the aggregate with Repeated set, even if the decision would refuse the
// command now. A decision without events is recorded too; a refusal is not. If the aggregate was
// deleted since, or its key was destroyed, only ID and Repeated are set.
//
// Before Execute returns the refusal of a command with an id, it reads the next place in a
// transaction, once for each call. This read waits for a commit in progress, which may contain the
// event that caused the command. If the version has changed, Execute decides again. If the read
// fails, Execute returns that error and not the refusal. With [WithExpectedVersion] it does not
// read. docs/reference/cost.md has the costs.
//
// A [*RefusedError] wraps the error of a decision. All other errors are those of Load and Save,
// except [journal.ErrNotFound]. With [journal.ErrOutcomeUnknown] the commit may have been written.
// For a command with an id, Execute then checks whether it was executed, and runs it again if
// not. It does that until the outcome is known or the RetryBudget of [journal.Config] has passed
// once more. If it still returns ErrOutcomeUnknown, execute the command again. Without a CommandID,
// call [journal.Journal.Resolve] first.
func (r *Repository[S]) Execute(ctx context.Context, id string, decide aggregate.Decision[S], given ...Option) (Aggregate[S], error) {
	name, err := r.definition.ID(id)
	if err != nil {
		return Aggregate[S]{}, err
	}
	if decide == nil {
		return Aggregate[S]{}, fmt.Errorf("execute on %s: %w", name, ErrNilDecision)
	}
	if r.config.Middleware == nil {
		return r.execute(ctx, name, decide, given)
	}
	call := &Call{Aggregates: []aggregate.ID{name}}
	return r.wrapped(ctx, call, func(ctx context.Context) (a Aggregate[S], last aggregate.Events[S], err error) {
		a, err = r.execute(ctx, name, func(state S) (events aggregate.Events[S], err error) {
			call.Decisions++
			events, err = decide(state)
			last = events
			return events, err
		}, given)
		return a, last, err
	})
}

// execute is Execute without the middleware.
func (r *Repository[S]) execute(ctx context.Context, name aggregate.ID, decide aggregate.Decision[S], given []Option) (Aggregate[S], error) {
	options, err := optionsOf(given)
	if err != nil {
		return Aggregate[S]{}, fmt.Errorf("execute on %s, nothing written: %w", name, err)
	}
	defer r.turns.take(ctx, name)()
	e := &execution[S]{Repository: r, id: name, decide: decide, options: options}
	if err := untilKnown(ctx, e, options.commandID, r.journal.Config.RetryBudget); err != nil {
		r.cache.forgetOld(name, err)
		return Aggregate[S]{}, err
	}
	return r.sealed(e.result), nil
}

// execution is one call of Execute.
type execution[S any] struct {
	*Repository[S]
	id         aggregate.ID
	decide     aggregate.Decision[S]
	options    options
	result     Aggregate[S]
	unresolved []*journal.OutcomeUnknownError // of the commits that this call may have written
	// commitID is the id of the commit that the last run of decide made, if its outcome is unknown.
	commitID string

	base     Aggregate[S] // on which the last run of decide has decided
	peeked   time.Time    // when base was read, if eventually consistent
	compared bool         // a read in a transaction has confirmed the version
	final    bool         // there is no further attempt
}

// reading says how the aggregate of an attempt was read.
type reading int

const (
	latest     reading = iota // with strong consistency
	eventually                // some time ago or now
	cached                    // some time ago
)

// run loads and decides until there is no conflict.
func (e *execution[S]) run(ctx context.Context) error {
	return untilNoConflict(ctx, e.id, e.config.MaxAttempts, func(last *journal.ConflictError, final bool) (conflict *journal.ConflictError, err error) {
		e.final = final
		e.result, conflict, err = e.attempt(ctx, last)
		if conflict != nil && e.options.expected != nil {
			e.result, err = e.orKnown(ctx, nil, fmt.Errorf("execute: %w", conflict))
			return nil, err
		}
		return conflict, err
	})
}

// attempt loads and decides once. Last is the conflict of the attempt before. It has one of three
// results:
//   - an aggregate: the events were written, there were none, or the command was executed before
//   - a conflict: another writer was faster, so another attempt may succeed
//   - an error, which is final. The decision and a function passed to WithWrites may return any
//     error, also a conflict, so act returns the former apart, and callersError marks the latter.
func (e *execution[S]) attempt(ctx context.Context, last *journal.ConflictError) (Aggregate[S], *journal.ConflictError, error) {
	a, read, err := e.begin(ctx, last)
	again := last != nil
	for {
		if err != nil {
			a, err = e.orRepeated(ctx, fmt.Errorf("execute: %w", err))
			return a, nil, err
		}
		if again {
			known, err := e.isKnown(ctx, a)
			switch {
			case err != nil:
				return Aggregate[S]{}, nil, fmt.Errorf("execute: %w", err)
			case known:
				e.counters.repeated.Add(1)
				a.Repeated = true
				return a, nil, nil
			}
		}
		next, done, refusal, failed := e.act(ctx, a)
		if done {
			return e.end(ctx, next, refusal, failed)
		}
		// A refusal counts only on the latest version, and no commit has checked this one.
		version := a.Version
		if a, err = e.newer(ctx, read, refusal); err == nil && a.Version == version {
			return e.end(ctx, a, refusal, failed)
		}
		read, again = latest, true
	}
}

// end returns the result of an attempt, from the results of act.
func (e *execution[S]) end(ctx context.Context, next Aggregate[S], refusal, err error) (a Aggregate[S], conflict *journal.ConflictError, _ error) {
	var duplicate *journal.DuplicateCommandError
	switch {
	case err == nil && refusal != nil:
		a, err = e.orKnown(ctx, &next, refusal)
		if err != nil && !e.compared {
			conflict, err = e.orMoved(ctx, next, err)
		}
		return a, conflict, err
	case err == nil:
		return next, nil, nil
	// An earlier execution of this command may be the reason for the error.
	case dependsOnState(ctx, err):
		a, err = e.orKnown(ctx, nil, fmt.Errorf("execute: %w", err))
		return a, nil, err
	case isCallers(err): // it may wrap a conflict or a duplicate of another aggregate
	case errors.As(err, &conflict):
		return a, conflict, nil
	case errors.As(err, &duplicate):
		if err := e.mismatched(duplicate.CommitID); err != nil {
			return Aggregate[S]{}, nil, err
		}
		if a, err = e.repeated(ctx, duplicate.Version); err == nil {
			a.Repeated = true
			return a, nil, nil
		}
	}
	a, err = e.orRepeated(ctx, fmt.Errorf("execute: %w", err))
	return a, nil, err
}

// newer returns the aggregate of the last decision at its current version, as far as a decision
// without a commit must know it.
func (e *execution[S]) newer(ctx context.Context, read reading, refusal error) (a Aggregate[S], err error) {
	a = e.base
	if read == cached {
		if a, err = e.currentOrNew(ctx, e.id); err != nil || a.Version != e.base.Version {
			return a, err
		}
	}
	switch {
	case e.mustCompare(refusal) && e.canGoOn(a):
		e.compared = true
		there, err := e.journal.Next(ctx, e.id, a.Version)
		if err != nil {
			return a, fmt.Errorf("%w, after: %v", err, refusal) //nolint:errorlint // the refusal does not count
		}
		if there {
			return e.goOn(ctx, a)
		}
	case read == eventually:
		return e.goOn(ctx, a)
	}
	return a, nil
}

// goOn brings an aggregate to its current version. If an eventually consistent read has missed a
// commit, such reads are not used for some time.
func (e *execution[S]) goOn(ctx context.Context, a Aggregate[S]) (Aggregate[S], error) {
	return e.Repository.goOn(ctx, a, func(record *journal.Record) {
		if record.WrittenAt.Before(e.peeked) {
			e.recent.distrust(e.id, e.journal.Config.Now())
		}
	})
}

// orMoved returns a conflict if the aggregate has changed since it was loaded, and otherwise the
// refusal. A reader can see the event that caused a command before the aggregate shows it. The read
// in a transaction waits for that commit. One such read for each call is enough, because the commit
// of that event began before the call.
func (e *execution[S]) orMoved(ctx context.Context, a Aggregate[S], refusal error) (*journal.ConflictError, error) {
	if !e.mustCompare(refusal) {
		// orKnown has returned this refusal, and there is nothing more to check.
		return nil, refusal
	}
	e.compared = true
	var conflict *journal.ConflictError
	err := e.journal.Unchanged(ctx, []storage.Place{{Aggregate: a.ID, Version: a.Version}})
	switch {
	case err == nil:
		return nil, refusal
	case errors.As(err, &conflict):
		return conflict, nil
	default:
		return nil, fmt.Errorf("execute: %w, after: %v", err, refusal) //nolint:errorlint // the refusal does not count
	}
}

// mustCompare reports whether a read in a transaction must confirm the version before a refusal is
// returned: see orMoved.
func (e *execution[S]) mustCompare(refusal error) bool {
	return e.options.commandID != "" && e.options.expected == nil && !e.compared && errors.As(refusal, new(*RefusedError))
}

func isCallers(err error) bool {
	var callers *callersError
	return errors.As(err, &callers)
}

// act decides on a state and writes the events. A refusal is the error of the decision, or the
// conflict with an expected version. Done reports that the result does not depend on an old state:
// see dependsOnState.
func (e *execution[S]) act(ctx context.Context, a Aggregate[S]) (next Aggregate[S], done bool, refusal, err error) {
	e.base = a
	if refusal := e.options.conflict(a.ID, a.Version); refusal != nil {
		return a, false, fmt.Errorf("execute: %w", refusal), nil
	}
	own, err := e.ownCopy(&a)
	if err != nil {
		return a, false, nil, err
	}
	e.base, e.commitID = a, ""
	e.counters.decisions.Add(1)
	events, refusal := e.decide(own.State)
	if refusal != nil {
		e.counters.refused.Add(1)
		return a, false, &RefusedError{ID: a.ID, Err: refusal}, nil
	}
	if len(events) == 0 && e.options.commandID == "" {
		return a, false, nil, nil
	}
	options := e.options
	options.readsOn = !e.final && e.options.expected == nil && e.canGoOn(a)
	if _, err = e.commit(ctx, &a, true, events, options); err == nil {
		e.cache.put(&a)
		return a, true, nil, nil
	}
	var unknown *journal.OutcomeUnknownError
	if !isCallers(err) && errors.As(err, &unknown) {
		e.unresolved, e.commitID = append(e.unresolved, unknown), unknown.CommitID
	}
	return a, !dependsOnState(ctx, err), nil, err
}
