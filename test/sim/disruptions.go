package sim

import (
	"context"
	"fmt"
	"sync"

	"github.com/millrace-dev/millrace/test/draw"
)

// disruptions are the running disruptions of a world.
type disruptions struct {
	// lasting are the disruptions that end by themselves. The storm, which is the time with
	// trouble, lasts at least as long.
	lasting sync.WaitGroup
	// endless are the disruptions that end with their context.
	endless sync.WaitGroup
}

// disrupt starts all disruptions.
func (w *world) disrupt(ctx context.Context, clocks []*clock) (*disruptions, error) {
	d := &disruptions{}
	plan, r := &w.plan.disruption, w.disturbance
	for _, t := range plan.throttles {
		own := draw.Derive(r)
		d.last(func() { t.happen(ctx, w, own) })
	}
	if plan.has(Suspension) {
		for _, p := range w.processes {
			own := draw.Derive(r)
			d.goOn(func() { p.suspend(ctx, plan.suspends, own) })
		}
	}
	if plan.has(Edits) {
		for place := range editors {
			editor, err := w.newOperator(ctx, fmt.Sprint("editor", place+1), r)
			if err != nil {
				return d, err
			}
			d.goOn(func() { editor.edit(ctx, place, plan.edits) })
		}
	}
	if plan.has(Clocks) {
		for _, p := range w.processes {
			// A saga compares the times of its events and timeouts.
			if !p.group.handlers.sagas {
				clocks = append(clocks, p.clock)
			}
		}
		for n, c := range clocks {
			if own := draw.Derive(r); own.IntN(2) == 0 {
				d.goOn(func() { c.wander(ctx, w, fmt.Sprint("clock ", n+1), own) })
			}
		}
	}
	if plan.imports > 0 {
		importer, err := w.newImporter(ctx, draw.Derive(r))
		if err != nil {
			return d, err
		}
		d.last(func() { importer.run(ctx, plan.imports) })
	}
	if plan.removals() != nil {
		for place := range removers {
			remover, err := w.newRemover(ctx, fmt.Sprint("remover", place+1), draw.Derive(r))
			if err != nil {
				return d, err
			}
			d.goOn(func() { remover.run(ctx, plan.removes) })
		}
	}
	if plan.exports > 0 {
		exporter, err := w.newExporter(ctx, draw.Derive(r))
		if err != nil {
			return d, err
		}
		d.last(func() { exporter.run(ctx, plan.exports) })
	}
	if plan.rebuilds > 0 {
		rebuilder, err := w.newRebuilder(ctx, draw.Derive(r))
		if err != nil {
			return d, err
		}
		d.last(func() { rebuilder.run(ctx, plan.rebuilds) })
	}
	if plan.outage > 0 {
		// The outages continue for a while after the last event was written.
		d.last(func() { pauseFor(ctx, w.plan.duration+2*plan.outage) })
	}
	return d, nil
}

func (d *disruptions) last(do func()) { begin(&d.lasting, do) }

func (d *disruptions) goOn(do func()) { begin(&d.endless, do) }

func begin(group *sync.WaitGroup, do func()) {
	group.Add(1)
	go func() {
		defer group.Done()
		do()
	}()
}
