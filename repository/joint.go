package repository

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// joint is one call of Transaction.Execute.
type joint struct {
	all     participants
	journal *engine.Engine
	decide  func() error
	options options
	unknown []*journal.OutcomeUnknownError // of the commits that this call may have written
	expects [][]storage.Place              // the expectations of each of them
	// latest is the id of the commit that the last run of decide made, if its outcome is unknown.
	latest string

	compared bool // moved has read the versions
}

func (e *joint) outcomes() []*journal.OutcomeUnknownError { return e.unknown }

func (e *joint) run(ctx context.Context) error {
	most := e.all[0].maxAttempts()
	for _, p := range e.all {
		most = min(most, p.maxAttempts())
	}
	return untilNoConflict(ctx, e.all, most, func(last *journal.ConflictError, _ bool) (*journal.ConflictError, error) {
		return e.attempt(ctx, last == nil)
	})
}

// attempt loads and decides once. It returns a conflict that is worth another attempt. A conflict
// of its own commit is returned apart from all other errors; the decision may return any error.
func (e *joint) attempt(ctx context.Context, first bool) (*journal.ConflictError, error) {
	if err := e.all.each(func(_ int, p participant) error { return p.load(ctx, first) }); err != nil {
		return nil, e.orRepeated(ctx, fmt.Errorf("execute: %w", err))
	}
	commit, refusal, err := e.draft(ctx)
	if commit != nil {
		if err = e.append(ctx, commit); err == nil {
			return nil, nil
		}
	}
	if dependsOnState(ctx, err) { // no commit has checked the cached versions
		conflict, failed := e.moved(ctx)
		switch {
		case conflict != nil:
			return conflict, nil
		case failed != nil && (err == nil || !errors.As(failed, new(*journal.TooLargeError))):
			err = failed
		}
	}
	var conflict *journal.ConflictError
	var duplicate *journal.DuplicateCommandError
	switch {
	case err == nil && refusal != nil:
		return nil, e.orKnown(ctx, refusal)
	// An earlier execution of this command may be the reason for the error.
	case err != nil && dependsOnState(ctx, err):
		return nil, e.orKnown(ctx, fmt.Errorf("execute: %w", err))
	case err == nil:
		for _, p := range e.all {
			p.endUnchanged()
		}
		return nil, nil
	case isCallers(err):
	case errors.As(err, &conflict):
		if e.isForVersion(conflict.ID) {
			return nil, e.orKnown(ctx, fmt.Errorf("execute: %w", conflict))
		}
		return conflict, nil
	case errors.As(err, &duplicate):
		if err := e.mismatched(duplicate.CommitID); err != nil {
			return nil, err
		}
		return nil, e.orKnown(ctx, fmt.Errorf("execute: %w", err))
	}
	return nil, e.orRepeated(ctx, fmt.Errorf("execute: %w", err))
}

// isForVersion reports whether the participant for an aggregate has the option WithExpectedVersion.
func (e *joint) isForVersion(id aggregate.ID) bool {
	return slices.ContainsFunc(e.all, func(p participant) bool { return p.id() == id && p.isForVersion() })
}

// draft decides, and returns the commit, or nil if there is nothing to write. A refusal is the
// error of the decision, or the conflict with an expected version.
func (e *joint) draft(ctx context.Context) (commit *storage.Joint, refusal, err error) {
	for _, p := range e.all {
		if refusal := p.conflict(); refusal != nil {
			return nil, fmt.Errorf("execute: %w", refusal), nil
		}
	}
	e.latest = ""
	for _, p := range e.all {
		if err := p.reset(); err != nil {
			return nil, nil, err
		}
	}
	refusal = e.decide()
	for _, p := range e.all {
		p.countDecision(refusal != nil)
	}
	if refusal != nil {
		return nil, &RefusedError{ID: e.all[0].id(), Err: refusal}, nil
	}
	commit = &storage.Joint{Parts: make([]storage.Commit, len(e.all)), CommandID: e.options.commandID}
	events := 0
	for i, p := range e.all {
		commit.Parts[i], err = p.draft(ctx, options{writes: e.options.writes, jointCommandID: e.options.commandID, fingerprint: e.options.fingerprint})
		if err != nil {
			return nil, nil, err
		}
		events += len(commit.Parts[i].Events)
	}
	if events == 0 && e.options.commandID == "" {
		return nil, nil, nil
	}
	return commit, nil, nil
}

// append writes the commit and sets the result of each participant.
func (e *joint) append(ctx context.Context, commit *storage.Joint) error {
	begun := time.Now()
	receipts, err := e.journal.AppendJoint(ctx, *commit)
	for i, participant := range commit.Parts {
		if len(participant.Events) > 0 {
			e.all[i].countCommit(len(participant.Events), begun, err)
		}
	}
	var unknown *journal.OutcomeUnknownError
	if errors.As(err, &unknown) {
		e.unknown, e.expects, e.latest = append(e.unknown, unknown), append(e.expects, e.places()), unknown.CommitID
	}
	if err != nil {
		return err
	}
	return e.all.each(func(i int, p participant) error {
		p.endCommitted(ctx, commit.Parts[i], receipts[i])
		return nil
	})
}

func (e *joint) places() []storage.Place {
	places := make([]storage.Place, len(e.all))
	for i, p := range e.all {
		places[i] = p.place()
	}
	return places
}

// moved returns the conflict of a participant that has changed since it was loaded. A single
// participant that was just loaded is not read again, except for the first refusal of a command
// with an id: see [execution.orMoved].
func (e *joint) moved(ctx context.Context) (conflict *journal.ConflictError, err error) {
	places := e.places()
	if len(places) == 1 && !places[0].Kept && (e.compared || e.options.commandID == "" || e.all[0].isForVersion()) {
		return nil, nil
	}
	// A cached version may be several commits old. The read has only waited for the next of them.
	e.compared = e.compared || !slices.ContainsFunc(places, func(p storage.Place) bool { return p.Kept })
	err = e.journal.Unchanged(ctx, places)
	if errors.As(err, &conflict) {
		return conflict, nil
	}
	return nil, err
}

// orRepeated returns success if one of the aggregates is gone and the command was executed before.
// Do not pass it the error of a decision.
func (e *joint) orRepeated(ctx context.Context, reason error) error {
	if isCallers(reason) || !slices.ContainsFunc(e.all.ids(), func(id aggregate.ID) bool { return isGone(reason, id) }) {
		return reason
	}
	return e.orKnown(ctx, reason)
}

// orKnown returns success if the command was executed before, and otherwise reason. If that cannot
// be read, the error does not wrap the reason.
func (e *joint) orKnown(ctx context.Context, reason error) error {
	if e.options.commandID == "" {
		return reason
	}
	command, known, err := e.journal.JointCommand(ctx, e.options.commandID)
	switch {
	case err != nil:
		return fmt.Errorf("execute: %w, after: %v", err, reason) //nolint:errorlint // see above
	case !known:
		return reason
	case e.mismatched(command.CommitID) != nil:
		return e.mismatched(command.CommitID)
	case command.CommitID == e.latest: // it arrived late, and nothing has decided since
		if known, err := e.executed(ctx); err != nil {
			return fmt.Errorf("execute: %w", err)
		} else if known {
			return nil
		}
	}
	return e.repeated(ctx, command)
}

// mismatched returns an error if the command that was executed had another content.
func (e *joint) mismatched(commitID string) error {
	if err := e.options.mismatch(e.all[0].id(), commitID); err != nil {
		return fmt.Errorf("execute: %w", err)
	}
	return nil
}

// repeated sets the result of each participant to the current aggregate.
func (e *joint) repeated(ctx context.Context, command storage.JointCommand) error {
	if err := e.all.each(func(_ int, p participant) error { return p.endRepeated(ctx, command.VersionOf(p.id())) }); err != nil {
		return fmt.Errorf("execute: %w", err)
	}
	return nil
}

// executed reads the guard of the command. If the last run of the decision made the commit, the
// results are the aggregates after that commit. Otherwise, or if an aggregate cannot be loaded at
// that version any more, the results are the current aggregates.
func (e *joint) executed(ctx context.Context) (bool, error) {
	command, known, err := e.journal.JointCommand(ctx, e.options.commandID)
	if err != nil || !known {
		return false, err
	}
	if err := e.mismatched(command.CommitID); err != nil {
		return true, err
	}
	if command.CommitID == e.latest {
		err := e.all.each(func(_ int, p participant) error {
			if version := command.VersionOf(p.id()); version > 0 {
				return p.endCommittedAt(ctx, version)
			}
			p.endUnchanged()
			return nil
		})
		if err == nil || storeFailed(ctx, err) {
			return err == nil, err
		}
	}
	err = e.repeated(ctx, command)
	return err == nil, err
}

// isFinal reports whether each commit has an aggregate that has moved past the expected version.
// Such a commit can no longer be written.
func (e *joint) isFinal(ctx context.Context) bool {
	for _, places := range e.expects {
		moved := slices.ContainsFunc(places, func(p storage.Place) bool {
			version, err := e.journal.Version(ctx, p.Aggregate)
			return errors.As(err, new(*journal.DeletedError)) || err == nil && version > p.Version
		})
		if !moved {
			return false
		}
	}
	return true
}
