package repository

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// Participant is an aggregate of a decision over several; see [Transaction]. [Repository.AddTo]
// makes it.
type Participant[S any] struct {
	aggregate.Participant[S]

	name       aggregate.ID // not the ID of aggregate.Participant, which a decision may change
	repository *Repository[S]
	expected   *uint64      // see WithExpectedVersion
	invalid    error        // the error of the id or of an option
	loaded     Aggregate[S] // the aggregate to decide on
	kept       bool         // loaded comes from the cache and may be old
	next       Aggregate[S] // the aggregate after the commit
	after      Aggregate[S] // what Aggregate returns
	written    []string     // the types of the events that were written
}

// AddTo adds the aggregate with an id to the participants of a decision, and returns it. It makes
// no request: [Transaction.Execute] loads the aggregate, and returns the error for an id that is
// not valid. A participant accepts only the option [WithExpectedVersion].
func (r *Repository[S]) AddTo(tx *Transaction, id string, given ...Option) *Participant[S] {
	p := &Participant[S]{repository: r}
	options, err := optionsOf(given)
	if err == nil && (options.commandID != "" || len(options.writes) > 0) {
		err = fmt.Errorf("%w: a participant accepts only WithExpectedVersion: pass the other options to Execute", journal.ErrInvalidCommit)
	}
	p.expected, p.invalid = options.expected, err
	if p.name, err = r.definition.ID(id); err != nil {
		p.invalid = err
	}
	p.ID = p.name
	tx.all = append(tx.all, p)
	return p
}

// Aggregate returns the aggregate after [Transaction.Execute], as [Repository.Execute] would return
// it. After an error only its ID is set.
func (p *Participant[S]) Aggregate() Aggregate[S] { return p.after }

// Result reports what [Transaction.Execute] did to one participant. Package tracing uses it.
type Result struct {
	ID         aggregate.ID // the aggregate
	Version    uint64       // after the call
	EventTypes []string     // of the events that were appended, in their order
	Repeated   bool         // see [Aggregate]
}

// result returns the result of the last [Transaction.Execute].
func (p *Participant[S]) result() Result {
	return Result{ID: p.name, Version: p.after.Version, EventTypes: slices.Clone(p.written), Repeated: p.after.Repeated}
}

// participant is a [Participant] of any state type.
type participant interface {
	result() Result

	id() aggregate.ID
	journal() *engine.Engine
	maxAttempts() int
	middleware() Middleware
	// check returns the error of an invalid id or option.
	check() error

	// load reads the aggregate. For the first attempt it uses the cache if possible.
	load(ctx context.Context, first bool) error
	// place returns the version that was loaded.
	place() storage.Place
	// isForVersion reports whether the participant has WithExpectedVersion.
	isForVersion() bool
	// conflict returns an error if the participant expects another version than the loaded one.
	conflict() error
	// reset prepares the participant for another decision.
	reset() error
	// draft makes the commit of the participant.
	draft(ctx context.Context, options options) (storage.Commit, error)

	// endCommitted ends the call with the aggregate after the commit.
	endCommitted(ctx context.Context, commit storage.Commit, receipt storage.Receipt)
	// endCommittedAt ends the call with the aggregate at the version of the commit, which it loads.
	endCommittedAt(ctx context.Context, version uint64) error
	// endUnchanged ends the call with the aggregate as it was loaded.
	endUnchanged()
	// endRepeated ends the call with the current aggregate, at the version of the command or later.
	endRepeated(ctx context.Context, version uint64) error
	// fail ends the call without an aggregate.
	fail(err error)

	countDecision(refused bool)
	countCommit(events int, begun time.Time, err error)
}

func (p *Participant[S]) id() aggregate.ID        { return p.name }
func (p *Participant[S]) journal() *engine.Engine { return p.repository.journal }
func (p *Participant[S]) maxAttempts() int        { return p.repository.config.MaxAttempts }
func (p *Participant[S]) middleware() Middleware  { return p.repository.config.Middleware }
func (p *Participant[S]) check() error            { return p.invalid }
func (p *Participant[S]) isForVersion() bool      { return p.expected != nil }

func (p *Participant[S]) place() storage.Place {
	return storage.Place{Aggregate: p.name, Version: p.loaded.Version, Kept: p.kept}
}

func (p *Participant[S]) load(ctx context.Context, first bool) (err error) {
	if first {
		if p.loaded, p.kept = p.repository.cache.get(p.name); p.kept {
			p.repository.counters.cacheHits.Add(1)
			return nil
		}
	}
	p.kept = false
	p.loaded, err = p.repository.currentOrNew(ctx, p.name)
	return err
}

func (p *Participant[S]) conflict() error {
	return options{expected: p.expected}.conflict(p.name, p.loaded.Version)
}

func (p *Participant[S]) reset() error {
	own, err := p.repository.ownCopy(&p.loaded)
	if err != nil {
		return err
	}
	p.Participant = aggregate.Participant[S]{ID: p.name, State: own.State, Version: own.Version}
	return nil
}

func (p *Participant[S]) draft(ctx context.Context, options options) (storage.Commit, error) {
	// The decision had a copy of the state, so it has not changed this one.
	p.next = p.loaded
	commit, _, err := p.repository.draft(ctx, &p.next, true, p.Events, options)
	return commit, err
}

func (p *Participant[S]) endCommitted(ctx context.Context, commit storage.Commit, receipt storage.Receipt) {
	p.repository.written(ctx, &p.next, commit, receipt)
	p.repository.cache.put(&p.next)
	p.end(p.next)
	p.noteWritten()
}

func (p *Participant[S]) endCommittedAt(ctx context.Context, version uint64) error {
	a, err := p.repository.currentSince(ctx, p.name, version)
	if err == nil && a.Version != version {
		a, err = p.repository.byHead(ctx, p.name, func(head journal.Head) (Aggregate[S], error) {
			return p.repository.loadAt(ctx, head, version)
		})
	}
	if err != nil {
		return err
	}
	p.end(a)
	p.noteWritten()
	return nil
}

func (p *Participant[S]) noteWritten() {
	for _, event := range p.Events {
		p.written = append(p.written, event.EventType())
	}
}

func (p *Participant[S]) endUnchanged() { p.end(p.next) }

func (p *Participant[S]) endRepeated(ctx context.Context, version uint64) error {
	a, err := p.repository.currentSince(ctx, p.name, version)
	switch {
	case isGone(err, p.name):
		a = Aggregate[S]{ID: p.name}
	case err != nil:
		return err
	}
	a.Repeated = true
	p.end(a)
	return nil
}

func (p *Participant[S]) end(a Aggregate[S]) { p.after, p.written = p.repository.sealed(a), nil }

func (p *Participant[S]) fail(err error) {
	p.after, p.written = Aggregate[S]{ID: p.name}, nil
	p.repository.cache.forgetOld(p.name, err)
}

func (p *Participant[S]) countDecision(refused bool) {
	c := &p.repository.counters
	if c.decisions.Add(1); refused {
		c.refused.Add(1)
	}
}

func (p *Participant[S]) countCommit(events int, begun time.Time, err error) {
	p.repository.counters.commit(events, begun, err)
}
