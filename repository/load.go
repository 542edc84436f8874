package repository

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Load gives an aggregate as it is after its last event, strongly consistent: what was committed before Load
// was called is in it.
//
// It takes one GetItem for the head, one read unit for each 4 KB of the state in it. Nothing more if the
// snapshot there is up to date; one read by key for up to 8 events after it, one unit each (for up to 4 KB); for more,
// one Query for each MB of them, half a unit for each 4 KB.
//
// Errors: [*journal.NotFoundError] if the aggregate has no events, [*EventError], [*aggregate.InvalidIDError]
// and those of [journal.Journal.Head] and [journal.Journal.Events].
func (r *Repository[S]) Load(ctx context.Context, id string) (Aggregate[S], error) {
	name, err := r.definition.ID(id)
	if err != nil {
		return Aggregate[S]{}, err
	}
	return r.load(ctx, name)
}

func (r *Repository[S]) load(ctx context.Context, id aggregate.ID) (Aggregate[S], error) {
	head, err := r.journal.Head(ctx, id)
	if err != nil {
		return Aggregate[S]{}, fmt.Errorf("load: %w", err)
	}
	a := r.restore(head)
	var skipped skipped
	for record, err := range r.journal.Events(ctx, id, a.Version+1, head.Version) {
		if err != nil {
			return Aggregate[S]{}, fmt.Errorf("load: %w", err)
		}
		if err := r.replay(&a, record, &skipped); err != nil {
			return Aggregate[S]{}, fmt.Errorf("load: %w", &EventError{ID: id, Number: record.Number, Err: err})
		}
	}
	skipped.report(r.config.Logger, id, a.Version)
	return a, nil
}

// replay applies a stored event, or all events that stand for it today. One stored event is one version,
// whatever becomes of it.
func (r *Repository[S]) replay(a *Aggregate[S], record *journal.Record, skipped *skipped) (err error) {
	eventType := record.EventType
	if eventType == "" && r.config.EventType != nil {
		if eventType, err = r.config.EventType(record); err != nil {
			return err
		}
	}
	err = r.definition.Replay(&a.State, eventType, record.Payload)
	if unknown, ok := r.unknown(err); ok {
		skipped.add(record.Number, unknown)
		a.partial = true
	} else if err != nil {
		return err
	}
	a.Version = record.Number
	return nil
}
