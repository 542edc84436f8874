package soak

import (
	"errors"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/draw"
)

// pair is a decision over two things, with one command for each.
type pair [2]uint64

// together decides on two things at once, and depends on a third one.
func (w *writer) together() {
	ids := map[string]bool{}
	var participants []*repository.Participant[state]
	var tx repository.Transaction
	for range 20 {
		if id := w.thing(w.random); !ids[id] && len(participants) < 3 {
			ids[id] = true
			participants = append(participants, w.repo.AddTo(&tx, id))
		}
	}
	if len(participants) < 3 {
		return
	}
	one, other, n, seed := participants[0], participants[1], 1+w.random.IntN(3), w.random.Uint64()
	commands := pair{w.truth.command(one.ID.Value), w.truth.command(other.ID.Value)}
	w.truth.pair(commands)
	floors := map[string]uint64{}
	told := map[string]func(error){}
	for id := range ids {
		if !w.cached {
			floors[id] = w.truth.floor(id)
		}
		told[id] = w.mortal("together", id)
	}
	err := tx.Execute(w.alive, func() error {
		sum := uint64(0)
		for _, p := range participants {
			w.seen("a decision over several", p.ID.Value, p.State.Count, p.State, floors[p.ID.Value])
			sum += p.State.Sum
			for i := range p.State.Recent {
				p.State.Recent[i] = 0
			}
		}
		if sum%32 == 1 {
			return errRefused
		}
		r := draw.New(seed, sum)
		one.Append(w.events(r, commands[0], n)...)
		other.Append(w.events(r, commands[1], n)...)
		return nil
	})
	var deleted *journal.DeletedError
	switch {
	case errors.As(err, &deleted):
		told[deleted.ID.Value](err)
	case err == nil:
		for _, p := range participants {
			a := p.Aggregate()
			told[p.ID.Value](nil)
			w.seen("Execute over several", p.ID.Value, a.Version, a.State, floors[p.ID.Value])
			w.held[p.ID.Value] = a
		}
	}
	for i, p := range participants[:2] {
		w.recordOutcome(commands[i], "together", n, p.Version+1, errorOf(err, p))
	}
}

// errorOf returns the error as it concerns one of the participants. The error of any of them says
// whether the commit was written.
func errorOf(err error, p *repository.Participant[state]) error {
	var unknown *journal.OutcomeUnknownError
	if !errors.As(err, &unknown) {
		return err
	}
	own := *unknown
	own.ID, own.First = p.ID, p.Version+1
	return &own
}

// pair records that either both commands are written or neither.
func (t *truth) pair(commands pair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pairs = append(t.pairs, commands)
}

// checkPairs checks that both commands of a decision were written, in one commit, or neither.
func (w *running) checkPairs(found map[uint64][]row) {
	for _, p := range w.truth.pairs {
		one, other := found[p[0]], found[p[1]]
		switch {
		case len(one) == 0 && len(other) == 0:
		case len(one) != len(other):
			w.truth.report(Wrong, "commands %d and %d are of one decision: %d events of one and %d of the other are there", p[0], p[1], len(one), len(other))
		case one[0].commitID != other[0].commitID:
			w.truth.report(Wrong, "commands %d and %d are of one decision, and were written by two commits", p[0], p[1])
		default:
			w.truth.see("written together")
		}
	}
}
