package repository

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// joint is one call of Parts.Execute.
type joint struct {
	parts   participants
	log     eventlog.Log
	decide  func() error
	options options
	unknown []*journal.OutcomeUnknownError // of the commits that this call may have written
	expects []map[aggregate.ID]uint64      // by each of them
	latest  string                         // the id of the commit, one of unknown, that the last run of decide made
}

type nothing = struct{}

func (e *joint) outcomes() []*journal.OutcomeUnknownError { return e.unknown }

func (e *joint) run(ctx context.Context) (nothing, error) {
	attempts := slices.Min(e.attemptsOf())
	pauses := conflictPauses()
	for attempt := 1; ; attempt++ {
		conflict, err := e.attempt(ctx, attempt == 1)
		if conflict == nil {
			return nothing{}, err
		}
		if attempt >= attempts {
			return nothing{}, &AttemptsError{ID: conflict.ID, Attempts: attempt, Err: conflict}
		}
		if err := pause(ctx, pauses.NextBackOff()); err != nil {
			return nothing{}, fmt.Errorf("execute on %s, nothing written: %w, after attempt %d: %w", e.parts, err, attempt, conflict)
		}
	}
}

func (e *joint) attemptsOf() []int {
	attempts := make([]int, len(e.parts))
	for i, p := range e.parts {
		attempts[i] = p.attempts()
	}
	return attempts
}

// attempt returns a conflict that is worth another one. It keeps those of its own commit apart from
// all other errors; that of a decision may be anything.
func (e *joint) attempt(ctx context.Context, first bool) (conflict *journal.ConflictError, err error) {
	if err := e.parts.each(func(p participant) error { return p.load(ctx, first) }); err != nil {
		return nil, e.orRepeated(ctx, fmt.Errorf("execute: %w", err))
	}
	done, refusal, err := e.act(ctx)
	if !done {
		conflict, failed := e.moved(ctx)
		if conflict != nil {
			return conflict, nil
		}
		if failed != nil && (err == nil || !errors.As(failed, new(*journal.TooLargeError))) {
			err = failed
		}
	}
	switch {
	case err == nil && refusal != nil:
		return nil, e.orKnown(ctx, refusal)
	case err == nil && !done:
		for _, p := range e.parts {
			p.unchanged()
		}
		return nil, nil
	case err == nil:
		return nil, nil
	case isCallers(err):
	case errors.As(err, &conflict):
		if e.isExpected(conflict.ID) {
			return nil, e.orKnown(ctx, fmt.Errorf("execute: %w", conflict))
		}
		return conflict, nil
	case errors.As(err, new(*journal.DuplicateCommandError)):
		return nil, e.repeated(ctx)
	}
	return nil, e.orRepeated(ctx, fmt.Errorf("execute: %w", err))
}

// isExpected reports whether the part of an aggregate is for one version alone.
func (e *joint) isExpected(id aggregate.ID) bool {
	return slices.ContainsFunc(e.parts, func(p participant) bool { return p.id() == id && p.isExpected() })
}

// act decides and commits. A refusal is the error of the decision, or the conflict with an expected
// version. Done reports that there was a commit.
func (e *joint) act(ctx context.Context) (done bool, refusal, err error) {
	for _, p := range e.parts {
		if refusal := p.conflict(); refusal != nil {
			return false, fmt.Errorf("execute: %w", refusal), nil
		}
	}
	e.latest = ""
	for _, p := range e.parts {
		if err := p.offer(); err != nil {
			return false, nil, err
		}
	}
	if refusal := e.decide(); refusal != nil {
		return false, &RefusedError{ID: e.parts[0].id(), Err: refusal}, nil
	}
	commit := eventlog.Joint{Parts: make([]eventlog.Commit, len(e.parts)), CommandID: e.options.commandID}
	expects, events := map[aggregate.ID]uint64{}, 0
	for i, p := range e.parts {
		if commit.Parts[i], err = p.draft(ctx, options{writes: e.options.writes}); err != nil {
			return false, nil, err
		}
		expects[p.id()] = p.version()
		events += len(commit.Parts[i].Events)
	}
	if events == 0 && e.options.commandID == "" {
		return false, nil, nil
	}
	receipts, err := e.log.AppendJoint(ctx, commit)
	var unknown *journal.OutcomeUnknownError
	if !isCallers(err) && errors.As(err, &unknown) {
		e.unknown, e.expects, e.latest = append(e.unknown, unknown), append(e.expects, expects), unknown.CommitID
	}
	if err != nil {
		done = ctx.Err() != nil || unknown != nil || errors.Is(err, journal.ErrConflict) || errors.As(err, new(*journal.DuplicateCommandError))
		return done, nil, err
	}
	at := map[aggregate.ID]int{}
	for i, p := range e.parts {
		at[p.id()] = i
	}
	return true, nil, e.parts.each(func(p participant) error {
		i := at[p.id()]
		p.written(ctx, commit.Parts[i], receipts[i])
		return nil
	})
}

// moved returns the conflict of a part that has moved since it was loaded, for a decision that no
// commit has checked. One part that was just read needs no other look.
func (e *joint) moved(ctx context.Context) (conflict *journal.ConflictError, err error) {
	if len(e.parts) == 1 && !e.parts[0].isKept() {
		return nil, nil
	}
	places := make([]eventlog.Place, len(e.parts))
	for i, p := range e.parts {
		places[i] = eventlog.Place{Aggregate: p.id(), Version: p.version(), Kept: p.isKept()}
	}
	err = e.log.Unchanged(ctx, places)
	if errors.As(err, &conflict) {
		return conflict, nil
	}
	return nil, err
}

// orRepeated returns success if one of the aggregates was deleted after the command was executed.
// It must not receive the error of a decision.
func (e *joint) orRepeated(ctx context.Context, reason error) error {
	var deleted *journal.DeletedError
	if isCallers(reason) || !errors.As(reason, &deleted) || !slices.Contains(e.parts.ids(), deleted.ID) {
		return reason
	}
	return e.orKnown(ctx, reason)
}

// orKnown returns success if the command was executed before, and otherwise the reason not to
// execute it. If that cannot be read, the reason does not count, and the error does not wrap it.
func (e *joint) orKnown(ctx context.Context, reason error) error {
	if e.options.commandID == "" {
		return reason
	}
	_, known, err := e.log.JointCommand(ctx, e.options.commandID)
	switch {
	case err != nil:
		return fmt.Errorf("execute: %w, after: %v", err, reason) //nolint:errorlint // see above
	case !known:
		return reason
	}
	return e.repeated(ctx)
}

// repeated sets the result of each part to its aggregate as it is now.
func (e *joint) repeated(ctx context.Context) error {
	if err := e.parts.each(func(p participant) error { return p.repeated(ctx) }); err != nil {
		return fmt.Errorf("execute: %w", err)
	}
	return nil
}

// executed reads the guard of the command. If the last run of the decision made the commit, the
// results are the aggregates after that commit. In all other cases, or if an aggregate cannot be
// loaded at that version any more, they are the aggregates as they are now.
func (e *joint) executed(ctx context.Context) (nothing, bool, error) {
	command, known, err := e.log.JointCommand(ctx, e.options.commandID)
	if err != nil || !known {
		return nothing{}, false, err
	}
	if command.CommitID == e.latest && e.after(ctx, command.Parts) == nil {
		return nothing{}, true, nil
	}
	if err := e.repeated(ctx); err != nil {
		return nothing{}, false, err
	}
	return nothing{}, true, nil
}

// after sets the result of each part to its aggregate after a commit. The commit is that of the
// last decision.
func (e *joint) after(ctx context.Context, written []eventlog.JointPart) error {
	return e.parts.each(func(p participant) error {
		i := slices.IndexFunc(written, func(w eventlog.JointPart) bool { return w.Aggregate == p.id() })
		if i < 0 {
			p.unchanged()
			return nil
		}
		return p.after(ctx, written[i].Version)
	})
}

// isSettled goes by the versions: where one of the aggregates of a commit has moved on, that commit
// can no longer be written.
func (e *joint) isSettled(ctx context.Context) bool {
	for _, expects := range e.expects {
		moved := false
		for id, expected := range expects {
			version, err := e.log.Version(ctx, id)
			deleted := errors.As(err, new(*journal.DeletedError))
			if moved = deleted || err == nil && version > expected; moved {
				break
			}
		}
		if !moved {
			return false
		}
	}
	return true
}
