package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// removals holds the things of which something was removed on purpose. It is safe for concurrent
// use.
type removals struct {
	mu     sync.Mutex
	things map[string]*removed
}

type removed struct {
	// Events before they were removed. Events never change.
	kept map[uint64]row
	// The highest truncation point that was requested.
	asked  uint64
	done   uint64 // events below it are removed
	doomed bool   // a deletion was requested
	// A writer got the error that it is deleted.
	gone   bool
	erased bool // a deletion has succeeded
}

// of calls a function with the removals of a thing.
func (r *removals) of(id string, do func(*removed)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.things == nil {
		r.things = map[string]*removed{}
	}
	if r.things[id] == nil {
		r.things[id] = &removed{kept: map[uint64]row{}}
	}
	do(r.things[id])
}

func nameOf(id string) aggregate.ID { return aggregate.ID{Type: things.Type(), Value: id} }

// truncate removes events that a snapshot includes, or tries to remove more.
func (w *writer) truncate() {
	id := w.thing(w.random)
	head, ok := w.toRemove(id)
	if !ok {
		return
	}
	most := head.Version + 1
	covered := head.Snapshot != nil && w.random.IntN(2) == 0
	if covered {
		most = head.Snapshot.Number + 1
	}
	before := 1 + w.random.Uint64N(most)
	if !w.keep(id, before) {
		return
	}
	w.removals.of(id, func(r *removed) { r.asked = max(r.asked, before) })
	told := w.mortal("Truncate", id)
	err := w.journal.Truncate(w.alive, nameOf(id), before, journal.RemoveOptions{})
	switch {
	case err == nil:
		w.truth.see("truncated")
		w.removals.of(id, func(r *removed) { r.done = max(r.done, before) })
	case errors.Is(err, journal.ErrNotCovered):
		w.truth.see("not covered")
		if covered {
			w.truth.report(Wrong, "Truncate of thing %s before %d: a snapshot that was there does not count: %v", id, before, err)
		}
	case errors.Is(err, journal.ErrConflict):
		w.truth.see("conflict of a removal")
		// The conflict is from one of many attempts, and says nothing about the current version.
		return
	case errors.Is(err, journal.ErrUnavailable):
		w.truth.see("removal failed")
	default:
		w.readError("Truncate", err)
	}
	told(err)
}

// remove deletes a thing, one that commands will soon leave alone anyway.
func (w *writer) remove() {
	id := fmt.Sprint(w.truth.count() / w.span)
	head, ok := w.toRemove(id)
	if !ok || !w.keep(id, head.Version+1) {
		return
	}
	w.removals.of(id, func(r *removed) { r.doomed = true })
	err := w.journal.Delete(w.alive, head.Aggregate, head.Version, journal.RemoveOptions{})
	switch {
	case err == nil:
		w.truth.see("deleted")
		w.removals.of(id, func(r *removed) { r.gone, r.erased = true, true })
	case errors.Is(err, journal.ErrConflict):
		w.truth.see("conflict of a removal")
	default:
		w.readError("Delete", err)
	}
}

// toRemove reads the head of an existing thing.
func (w *writer) toRemove(id string) (journal.Head, bool) {
	if !w.removes {
		return journal.Head{}, false
	}
	floor := w.truth.floor(id)
	head, err := w.journal.Head(w.alive, nameOf(id))
	switch {
	case err == nil:
		return head, head.DeletedAt.IsZero()
	case !errors.Is(err, journal.ErrNotFound) || floor > 0:
		w.readError("Head", err)
	}
	return head, false
}

// keep reads the existing events below a number, before they are removed. It reports whether it has
// all of them, since a reader may see only a part of a transaction.
func (w *writer) keep(id string, before uint64) (all bool) {
	rows, err := w.histories(w.alive, id)
	if err != nil {
		return false // of this reader; it is not a finding
	}
	w.removals.of(id, func(r *removed) {
		for _, one := range rows[id] {
			r.kept[one.number] = one
		}
		for n := uint64(1); n < before; n++ {
			if _, all = r.kept[n]; !all {
				return
			}
		}
		all = true
	})
	return all
}

// mortal begins a call on a thing, and returns a function that checks its error. A deletion is only
// reported for a reason. After a deletion is known, every call must report it.
func (w *writer) mortal(how, id string) (told func(error)) {
	var gone bool
	w.removals.of(id, func(r *removed) { gone = r.gone })
	return func(err error) {
		switch {
		case errors.As(err, new(*journal.DeletedError)):
			var doomed bool
			w.removals.of(id, func(r *removed) { doomed, r.gone = r.doomed, r.doomed })
			if !doomed {
				w.truth.report(Wrong, "%s: thing %s counts as deleted, which was not requested: %v", how, id, err)
			}
		case w.Layout == journal.Packed && errors.Is(err, journal.ErrConflict):
			// The item in the place of the commit shows the deletion, whatever the read of the last
			// item returns.
		case gone && (err == nil || errors.Is(err, journal.ErrConflict) || errors.Is(err, journal.ErrNotFound) || errors.As(err, new(*journal.TruncatedError))):
			w.truth.report(Wrong, "%s: thing %s was deleted before, but the result does not report it: %v", how, id, err)
		}
	}
}

// truncated reports whether an error is correct because the requested events from a number on
// include removed ones.
func (w *writer) truncated(id string, from uint64, err error) bool {
	var truncated *journal.TruncatedError
	if !errors.As(err, &truncated) {
		return false
	}
	w.truth.see("truncated events requested")
	var most uint64
	w.removals.of(id, func(r *removed) {
		if most = r.asked; r.doomed {
			most = uint64(len(r.kept)) + 1
		}
	})
	return from < truncated.Before && truncated.Before <= most
}

// finish completes deletions that ended early.
func (w *running) finish(ctx context.Context, j *journal.Journal) error {
	heads, err := w.heads(ctx)
	for id, h := range heads {
		if !h.deleted {
			continue
		}
		var again bool
		w.removals.of(id, func(r *removed) { again = !r.erased })
		if again {
			err = errors.Join(err, j.Delete(ctx, nameOf(id), h.version, journal.RemoveOptions{}))
		}
	}
	return err
}

// checkRemoved returns the events of a thing including the removed ones, and reports events that
// should have been removed.
func (w *running) checkRemoved(id string, rows []row, h head) (all []row) {
	w.removals.of(id, func(r *removed) {
		if r.done > 1 && h.truncatedBefore < r.done || h.truncatedBefore > r.asked && !h.deleted {
			w.truth.report(Wrong, "the head of thing %s says that it is truncated before %d, but %d was requested and %d acknowledged",
				id, h.truncatedBefore, r.asked, r.done)
		}
		if h.deleted != r.gone && (r.gone || !r.doomed) {
			w.truth.report(Wrong, "thing %s is deleted: %v, and a writer got that result: %v", id, h.deleted, r.gone)
		}
		if h.deleted && (len(rows) > 0 || h.states > 0) {
			w.truth.report(Wrong, "thing %s is deleted, and %d events and %d states are there", id, len(rows), h.states)
		}
		there := map[uint64]bool{}
		for _, one := range rows {
			there[one.number] = true
			if one.last < r.done {
				w.truth.report(Wrong, "event %d of thing %s is there, which was truncated before %d", one.number, id, r.done)
			}
			if kept, ok := r.kept[one.number]; ok && (kept.token != one.token || kept.commitID != one.commitID) {
				w.truth.report(Wrong, "event %d of thing %s is another than it was", one.number, id)
			}
		}
		// From the truncation point on, no event may be missing.
		for n := uint64(1); n < h.truncatedBefore; n++ {
			if one, ok := r.kept[n]; ok && !there[n] {
				all = append(all, one)
			}
		}
	})
	all = append(all, rows...)
	slices.SortStableFunc(all, func(a, b row) int { return cmp.Compare(a.number, b.number) })
	return all
}
