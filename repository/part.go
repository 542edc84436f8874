package repository

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// Part is an aggregate of a decision over several; see [Parts]. A Part is for one call at a time.
type Part[S any] struct {
	aggregate.Part[S]

	repository *Repository[S]
	expected   *uint64      // see ExpectVersion
	invalid    error        // of the id or of an option
	loaded     Aggregate[S] // what the decision is made on
	kept       bool         // loaded comes from the cache, and may be old
	next       Aggregate[S] // what the commit leads to
	result     Aggregate[S]
	committed  bool // the events were written
}

// Part returns a part for the aggregate with an id, which [Parts.Execute] loads. It makes no
// request. An id that is not valid is an error of Execute. Of the options, a part takes
// [ExpectVersion].
func (r *Repository[S]) Part(id string, given ...Option) *Part[S] {
	p := &Part[S]{repository: r}
	options, err := optionsOf(given)
	if err == nil && (options.commandID != "" || len(options.writes) > 0) {
		err = fmt.Errorf("%w: a part takes the option ExpectVersion alone: give the others to Execute", journal.ErrInvalidCommit)
	}
	p.expected, p.invalid = options.expected, err
	if p.ID, err = r.definition.ID(id); err != nil {
		p.invalid = err
	}
	return p
}

// Aggregate returns the aggregate as it is after [Parts.Execute], with what [Repository.Execute]
// returns.
func (p *Part[S]) Aggregate() Aggregate[S] { return p.result }

// Result is what [Parts.Execute] has done with one part, for those who report it.
type Result struct {
	ID         aggregate.ID
	Version    uint64   // after the call
	EventTypes []string // of the events that were appended, in their order
	Repeated   bool     // see [Aggregate]
}

// Result returns what the last [Parts.Execute] has done.
func (p *Part[S]) Result() Result {
	if p == nil {
		return Result{}
	}
	result := Result{ID: p.ID, Version: p.result.Version, Repeated: p.result.Repeated}
	if !p.committed {
		return result
	}
	for _, event := range p.Events {
		result.EventTypes = append(result.EventTypes, event.EventType())
	}
	return result
}

// Participant is a [*Part] of any state.
type Participant interface {
	Result() Result
	participant() participant
}

func (p *Part[S]) participant() participant {
	if p == nil || p.repository == nil {
		return nil
	}
	return p
}

// participant is a part as Execute uses it.
type participant interface {
	id() aggregate.ID
	log() eventlog.Log
	attempts() int
	check() error
	isExpected() bool

	// load reads the aggregate, or takes it from the cache for a first attempt.
	load(ctx context.Context, first bool) error
	// version returns the version that was loaded.
	version() uint64
	// isKept reports whether the version comes from the cache, so it may not be the latest.
	isKept() bool
	// conflict returns an error if the part is for another version than the loaded one.
	conflict() error
	// offer resets the part for another decision.
	offer() error
	// draft makes the commit of the part.
	draft(ctx context.Context, options options) (eventlog.Commit, error)
	// written ends the call with the aggregate after the commit.
	written(ctx context.Context, commit eventlog.Commit, receipt eventlog.Receipt)
	// unchanged ends the call with the aggregate as it was loaded.
	unchanged()
	// repeated ends the call with the aggregate as it is now.
	repeated(ctx context.Context) error
	// after ends the call with the aggregate at a version that it has passed.
	after(ctx context.Context, version uint64) error
	// fail ends the call without an aggregate.
	fail()
}

func (p *Part[S]) id() aggregate.ID  { return p.ID }
func (p *Part[S]) log() eventlog.Log { return p.repository.journal }
func (p *Part[S]) attempts() int     { return p.repository.config.MaxAttempts }
func (p *Part[S]) check() error      { return p.invalid }
func (p *Part[S]) isExpected() bool  { return p.expected != nil }
func (p *Part[S]) version() uint64   { return p.loaded.Version }
func (p *Part[S]) isKept() bool      { return p.kept }

func (p *Part[S]) load(ctx context.Context, first bool) (err error) {
	if first {
		if p.loaded, p.kept = p.repository.cache.get(p.ID); p.kept {
			return nil
		}
	}
	p.kept = false
	p.loaded, err = p.repository.currentOrNew(ctx, p.ID)
	return err
}

func (p *Part[S]) conflict() error {
	return options{expected: p.expected}.conflict(p.ID, p.loaded.Version)
}

func (p *Part[S]) offer() error {
	own, err := p.repository.ownCopy(p.loaded)
	if err != nil {
		return err
	}
	p.State, p.Version, p.Events = own.State, own.Version, nil
	return nil
}

func (p *Part[S]) draft(ctx context.Context, options options) (eventlog.Commit, error) {
	p.next = p.loaded // whose state the decision did not get
	commit, _, err := p.repository.draft(ctx, &p.next, true, p.Events, options)
	return commit, err
}

func (p *Part[S]) written(ctx context.Context, commit eventlog.Commit, receipt eventlog.Receipt) {
	p.repository.written(ctx, &p.next, commit, receipt)
	p.repository.cache.put(&p.next)
	p.finish(p.next)
	p.committed = true
}

func (p *Part[S]) unchanged() { p.finish(p.next) }

func (p *Part[S]) repeated(ctx context.Context) error {
	a, err := p.repository.currentOrNew(ctx, p.ID)
	var deleted *journal.DeletedError
	switch {
	case errors.As(err, &deleted) && deleted.ID == p.ID:
		a = Aggregate[S]{ID: p.ID}
	case err != nil:
		return err
	}
	a.Repeated = true
	p.finish(a)
	return nil
}

func (p *Part[S]) after(ctx context.Context, version uint64) error {
	a, err := p.repository.currentOrNew(ctx, p.ID)
	if err == nil && a.Version != version {
		a, err = p.repository.byHead(ctx, p.ID, func(head journal.Head) (Aggregate[S], error) {
			return p.repository.loadAt(ctx, head, version)
		})
	}
	if err != nil {
		return err
	}
	p.finish(a)
	p.committed = true
	return nil
}

func (p *Part[S]) finish(a Aggregate[S]) { p.result, p.committed = p.repository.sealed(a), false }

func (p *Part[S]) fail() { p.result, p.committed = Aggregate[S]{ID: p.ID}, false }

// ownCopy returns an aggregate whose state shares no memory with that of a.
func (r *Repository[S]) ownCopy(a Aggregate[S]) (Aggregate[S], error) {
	if own, ok := r.decoded(a); ok {
		return own, nil
	}
	return r.copyOf(a)
}
