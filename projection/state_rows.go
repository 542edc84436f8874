package projection

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// NewStateRows returns a projection to the rows of a table that computes each row from the state of
// its aggregate. It handles events of all types, in runs as [NewBatchRows] does. For each run it
// loads the aggregate, and write returns the change of its row. The aggregate includes the run, and
// may be newer. So write has to set all attributes that depend on the state, and must not add to
// them. It is not called for a deleted aggregate, whose row stays as it is.
//
// A row needs the last event only. With subscriber.Config.LatestOnly a new group begins with the
// last event of each aggregate, and a load begins with the snapshot. So a read model is rebuilt
// without reading all events. A load costs as much as repository.Repository.Load, for each run. So
// [NewRows] is cheaper for a read model whose events contain what its rows need.
//
// The repository applies its own upcasters and codec, so config.Definitions and config.Codec are
// not used.
//
// Errors: [*ConfigError].
func NewStateRows[S any](
	client RowClient, table RowTable, aggregates *repository.Repository[S], config Config,
	write func(ctx context.Context, a repository.Aggregate[S]) (RowUpdate, error),
) (*Rows, error) {
	switch {
	case aggregates == nil:
		return nil, &ConfigError{"the repository is nil"}
	case write == nil:
		return nil, &ConfigError{"the function that writes is nil"}
	}
	p, err := newProjection(config)
	if err != nil {
		return nil, err
	}
	p.ofStates = true
	p.run = func(ctx context.Context, records []*journal.Record) ([]Write, int, error) {
		last := records[len(records)-1]
		a, err := aggregates.Load(ctx, last.Aggregate.Value)
		switch {
		case errors.As(err, new(*journal.DeletedError)):
			return nil, 0, nil
		case err != nil:
			return nil, 0, err
		case a.ID != last.Aggregate:
			return nil, 0, &ConfigError{fmt.Sprintf("the repository loads %s for events of %s", a.ID, last.Aggregate)}
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
	}
	return newRows(client, table, p)
}
