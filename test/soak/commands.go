package soak

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/draw"
)

// command is an action of a writer. Weight is its relative frequency.
type command struct {
	name   string
	weight int
	run    func(*writer)
}

var commands = []command{
	{"execute", 25, (*writer).execute},
	{"save", 45, (*writer).save},
	{"order", 12, (*writer).order},
	{"together", 10, (*writer).together},
	{"repeat", 4, (*writer).repeat},
	{"create", 2, (*writer).create},
	{"publish", 18, (*writer).publish},
	{"load", 6, func(w *writer) { w.load(w.thing(w.random)) }},
	{"past", 2, (*writer).past},
	{"replay", 2, (*writer).replay},
	{"resolve", 3, (*writer).resolve},
	{"truncate", 3, (*writer).truncate},
	{"delete", 1, (*writer).remove},
	{"crash", 1, (*writer).crash},
}

func choose(r *rand.Rand) command {
	sum := 0
	for _, c := range commands {
		sum += c.weight
	}
	n := r.IntN(sum)
	for _, c := range commands {
		if n -= c.weight; n < 0 {
			return c
		}
	}
	panic("soak: unreachable")
}

var errRefused = errors.New("refused by the decision")

// events draws the number of events of a command, and makes them.
func (w *writer) events(r *rand.Rand, command uint64, n int) aggregate.Events[state] {
	list := make(aggregate.Events[state], n)
	for i := range list {
		size, ballast := r.IntN(60), r.IntN(20) == 0
		switch {
		case w.heavy && r.IntN(4) == 0:
			size, ballast = r.IntN(300_000), r.IntN(2) == 0
		case ballast:
			size *= r.IntN(3)
		case r.IntN(50) == 0:
			size = r.IntN(8_000)
		}
		list[i] = newEvent(tokenOf(command, i, n), size, ballast)
	}
	return list
}

// size draws the number of events of a command.
func (w *writer) size() int {
	switch n := w.random.IntN(1000); {
	case n < 750:
		return 1
	case n < 980:
		return w.random.IntN(5)
	case n < 995:
		return 5 + w.random.IntN(20)
	default:
		return 95 + w.random.IntN(7) // sometimes more than a commit can have
	}
}

// execute runs a decision that depends on the state, and that changes its copy, which a decision
// must not do.
func (w *writer) execute() {
	id := w.thing(w.random)
	o := &order{id: id, command: w.truth.command(id), size: w.size(), seed: w.random.Uint64()}
	_, _, _ = w.decide("execute", o) // the truth has the outcome already
}

// decided holds the results of the decisions of one call: how often they ran, the number of events
// and the version of the last one, and the largest number of events.
type decided struct {
	runs, count, most int
	version           uint64
}

// decide executes a command and reports its outcome to the truth.
func (w *writer) decide(how string, o *order, options ...repository.Option) (a repository.Aggregate[state], d decided, err error) {
	id, n, command, floor := o.id, o.size, o.command, w.truth.floor(o.id)
	latest := floor
	if w.cached || w.Layout == journal.Packed {
		// A decision may see a cached state, or that of an eventually consistent read. The
		// condition of the commit checks it.
		latest = 0
	}
	told := w.mortal(how, id)
	a, err = w.repo.Execute(w.alive, id, func(s state) (aggregate.Events[state], error) {
		w.seen("a decision", id, s.Count, s, latest)
		d.runs++
		d.count, d.version = 0, s.Count
		if s.Sum%8 == 1 {
			return nil, errRefused
		}
		d.count = n + int(s.Sum%2)*min(n, 1) //nolint:gosec // 0 or 1
		d.most = max(d.most, d.count)
		for i := range s.Recent {
			s.Recent[i] = 0
		}
		return w.events(draw.New(o.seed, s.Sum), command, d.count), nil
	}, options...)
	// A command without events may be the first of all.
	if err == nil && a.Repeated && a.Version == 0 && floor > 0 {
		w.truth.see("repeated on a tombstone")
		told(&journal.DeletedError{}) // Execute reports a deletion like this
		return a, d, nil
	}
	told(err)
	if err == nil {
		w.seen("Execute", id, a.Version, a.State, floor)
		w.held[id] = a
	}
	// Nothing else checks the state of a decision without a commit.
	if refused := errors.Is(err, errRefused); d.version < floor && (refused || err == nil && !a.Repeated && d.count == 0) {
		w.truth.report(Wrong, "%s ended without a commit by a decision on thing %s at version %d, which was at %d before", how, id, d.version, floor)
	}
	switch {
	case a.Repeated:
	case len(options) > 0 && d.runs > 1 && errors.Is(err, journal.ErrOutcomeUnknown):
		// Each run may have made a commit. At most one was written, and it is unknown which.
		w.truth.see("outcome of several runs unknown")
		w.truth.record(command, outcome{maybe: d.most})
	default:
		w.recordOutcome(command, how, d.count, a.Version-uint64(d.count)+1, err) //nolint:gosec // not negative
	}
	return a, d, err
}

// save appends to an aggregate that may be outdated by now.
func (w *writer) save() {
	id := w.thing(w.random)
	a, ok := w.held[id]
	if !ok || w.random.IntN(8) == 0 {
		if a, ok = w.load(id); !ok {
			return
		}
	}
	w.saveTo(a)
}

// create saves an aggregate under an id that may be in use.
func (w *writer) create() {
	a, err := w.repo.NewAggregate(w.thing(w.random))
	if err != nil {
		w.truth.report(Wrong, "NewAggregate: %v", err)
		return
	}
	w.saveTo(a)
}

func (w *writer) saveTo(a repository.Aggregate[state]) {
	id, n := a.ID.Value, max(1, w.size())
	command, before := w.truth.command(id), a.State.digest()
	told := w.mortal("save", id)
	next, err := w.repo.Save(w.alive, a, w.events(w.random, command, n))
	told(err)
	w.recordOutcome(command, "save", n, a.Version+1, err)
	if a.State.digest() != before {
		w.truth.report(Wrong, "Save changed the aggregate that it was passed, thing %s", id)
	}
	switch {
	case err == nil:
		w.seen("Save", id, next.Version, next.State, a.Version+uint64(n)) //nolint:gosec // not negative
		w.held[id] = next
	case next.Version != a.Version || next.State.digest() != before:
		w.truth.report(Wrong, "Save failed and returned another aggregate than it was passed, thing %s", id)
	case w.random.IntN(3) > 0:
		delete(w.held, id)
	}
}

// load loads an aggregate.
func (w *writer) load(id string) (a repository.Aggregate[state], ok bool) {
	floor := w.truth.floor(id)
	told := w.mortal("Load", id)
	a, err := w.repo.Load(w.alive, id)
	told(err)
	switch {
	case err == nil:
		w.seen("Load", id, a.Version, a.State, floor)
		w.held[id] = a
		return a, true
	case errors.Is(err, journal.ErrNotFound):
		w.truth.see("not found")
		if floor > 0 {
			w.truth.report(Wrong, "Load found nothing of thing %s, which is at version %d at least", id, floor)
		}
		a, err = w.repo.NewAggregate(id)
		return a, err == nil
	}
	w.readError("Load", err)
	return a, false
}

// seen records a state that the library returned. Floor is the version that the aggregate had
// reached when the call began.
func (w *writer) seen(how, id string, version uint64, s state, floor uint64) {
	if version < floor {
		w.truth.report(Wrong, "%s returned thing %s at version %d, which was at %d before", how, id, version, floor)
	}
	w.truth.observe(how, id, version, s)
}

func (w *writer) readError(how string, err error) {
	switch {
	case w.crashed(err), readFailed(err), errors.Is(err, journal.ErrThrottled), errors.Is(err, journal.ErrContended):
		w.truth.see("read failed")
	case errors.As(err, new(*journal.DeletedError)): // see mortal
	default:
		w.truth.report(Wrong, "%s: an error that is not documented: %v", how, err)
	}
}

// past loads an aggregate at an earlier version. It may save to the result, which succeeds only if
// the version is the latest.
func (w *writer) past() {
	id := w.thing(w.random)
	floor := w.truth.floor(id)
	if floor == 0 {
		return
	}
	number := w.random.Uint64N(floor + 1)
	told := w.mortal("LoadAtVersion", id)
	a, err := w.repo.LoadAtVersion(w.alive, id, number)
	told(err)
	if w.truncated(id, 1, err) {
		return
	}
	if err != nil {
		w.readError("LoadAtVersion", err)
		return
	}
	if a.Version != number {
		w.truth.report(Wrong, "LoadAtVersion returned thing %s at version %d, asked for %d", id, a.Version, number)
	}
	w.truth.observe("LoadAtVersion", id, number, a.State)
	if w.random.IntN(2) == 0 {
		w.truth.see("saved to an earlier version")
		w.saveTo(a)
	}
}

// replay reads events without a repository, and applies them if it reads all.
func (w *writer) replay() {
	id := w.thing(w.random)
	floor := w.truth.floor(id)
	told := w.mortal("Head", id)
	head, err := w.journal.Head(w.alive, nameOf(id))
	if errors.Is(err, journal.ErrNotFound) && floor == 0 {
		return
	}
	if err != nil {
		w.readError("Head", err)
		return
	}
	if !head.DeletedAt.IsZero() {
		told(&journal.DeletedError{ID: head.Aggregate, Version: head.Version})
		return
	}
	told(nil)
	if head.Version < floor {
		w.truth.report(Wrong, "Head returned thing %s at version %d, which was at %d before", id, head.Version, floor)
	}
	from := uint64(1)
	if w.random.IntN(2) == 0 {
		from += w.random.Uint64N(head.Version)
	}
	var s state
	next := from
	for record, err := range w.journal.Events(w.alive, head.Aggregate, from, head.Version) {
		if w.truncated(id, next, err) {
			return
		}
		if err != nil {
			w.readError("Events", err)
			return
		}
		if record.Number != next {
			w.truth.report(Gap, "Events returned number %d of thing %s after %d", record.Number, id, next-1)
			return
		}
		next++
		if from > 1 {
			continue
		}
		event, err := things.Decode(record.EventType, record.Payload)
		if err != nil {
			w.truth.report(Wrong, "Events returned event %d of thing %s with unknown bytes: %v", record.Number, id, err)
			return
		}
		event.Apply(&s)
		w.truth.observe("Events", id, record.Number, s)
	}
	if next != head.Version+1 {
		w.truth.report(Wrong, "Events of thing %s ended at %d without an error, the head is at %d", id, next-1, head.Version)
	}
}

// resolve asks for the outcome of commits with an unknown outcome. Only a yes is final.
func (w *writer) resolve() {
	w.unknown = slices.DeleteFunc(w.unknown, func(u uncertain) bool {
		done, err := w.journal.Resolve(w.alive, u.err)
		if err != nil {
			w.readError("Resolve", err)
			return false
		}
		if done {
			w.truth.see("resolved as written")
			w.resolved(u)
		}
		return done
	})
}

// resolved records that a command was written. A command with an id may have been written by a
// repetition, with another number of events and other sequence numbers.
func (w *writer) resolved(u uncertain) {
	switch {
	case u.err.CommandID == "":
		w.truth.record(u.command, outcome{sure: u.count, first: u.err.First})
	case w.truth.outcome(u.command).sure == 0:
		w.truth.record(u.command, outcome{sure: min(u.count, 1), maybe: u.count})
	}
}

// crash ends the process soon, whatever it does then.
func (w *writer) crash() { w.wire.light(1+w.random.IntN(20), w.kill) }
