package projection

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// OnState returns a [RowReaction] that computes the row of an aggregate from its state. It reacts
// to events of all types, in runs as [NewBatchRows] does, and must be the only reaction. For each
// run it loads the aggregate, and write returns the change of its row. The aggregate includes the
// run, and may be newer. So write has to set all attributes that depend on the state, and must not
// add to them. It is not called for a deleted aggregate, whose row stays as it is.
//
// A row needs the last event only. With subscriber.Config.LatestOnly, which an App sets, a new
// group begins with the last event of each aggregate, and a load begins with the snapshot. So a
// read model is rebuilt without reading all events. But each run costs as much as
// repository.Repository.Load. So [OnRow] is cheaper if the events contain what the row needs.
//
// The repository applies its own upcasters and codec, and those of [Config] are not used.
func OnState[S any](aggregates *repository.Repository[S], write func(ctx context.Context, a repository.Aggregate[S]) (RowUpdate, error)) RowReaction {
	if aggregates == nil || write == nil {
		return RowReaction{} // NewRows refuses it
	}
	return RowReaction{ofState: func(ctx context.Context, records []*journal.Record) ([]Write, int, error) {
		last := records[len(records)-1]
		a, err := aggregates.Load(ctx, last.Aggregate.Value)
		switch {
		case errors.As(err, new(*journal.DeletedError)):
			return nil, 0, nil
		case err != nil:
			return nil, 0, err
		case a.ID != last.Aggregate:
			return nil, 0, &ConfigError{fmt.Sprintf("the repository of OnState loads %s for events of %s: pass the repository of the topic's aggregates", a.ID, last.Aggregate)}
		case a.Version < last.Number:
			// The commit of a later event of the run is not visible as a whole.
			return nil, 0, fmt.Errorf("load %s: its version is %d, before event %d: %w", a.ID, a.Version, last.Number, journal.ErrContended)
		}
		u, err := write(ctx, a)
		if err != nil {
			return nil, 0, err
		}
		writes, err := u.write(last)
		return writes, len(records), err
	}}
}
