package millrace

import (
	"context"
	"fmt"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber"
)

// CreateTables creates the tables of projections that are missing, and compares the others, see
// projection.CreateTable. With [Config].ExistingTables it does nothing.
//
// Errors: those of projection.CreateTable.
func (a *App) CreateTables(ctx context.Context, tables ...projection.Table) error {
	if a.config.ExistingTables {
		return nil
	}
	ctx = a.config.starting(ctx)
	for _, table := range tables {
		if err := projection.CreateTable(ctx, a.client, table); err != nil {
			return err
		}
	}
	return nil
}

// ProjectRows adds a projection with one row for each aggregate, and returns it. The row is the
// position of the group too, so an event costs one write unit (projection.Rows). Create the table
// before, by [App.CreateTables]. The positions of events without effect are stored as by
// [App.Project].
//
// Errors: [*ConfigError], [ErrStarted], and the errors of projection.NewRows and
// subscriber.NewSubscriber.
func (a *App) ProjectRows(g Group, table projection.RowTable, reactions ...projection.RowReaction) (*projection.Rows, error) {
	if err := a.checkNotStarted(); err != nil {
		return nil, err
	}
	if len(reactions) == 0 {
		return nil, &ConfigError{"reactions", fmt.Sprintf("of group %q are missing; add one for each type of event", g.Name)}
	}
	rows, err := projection.NewRows(a.client, table, projection.Config{Definitions: slices.Clone(a.definitions)}, reactions...)
	if err != nil {
		return nil, err
	}
	if err := a.checkTopics(g, rows.EventTypes()); err != nil {
		return nil, err
	}
	for _, c := range a.components {
		if other, ok := c.value.(*projection.Rows); ok && other.PositionRows() == rows.PositionRows() {
			return nil, &ConfigError{"table", fmt.Sprintf("has the rows of group %q and of %q; set another Table, Prefix or Sort", c.name, g.Name)}
		}
	}
	if err := a.add(g, ofRows(rows), rows.Handle); err != nil {
		return nil, err
	}
	a.addComponent(g.Name, rows)
	return rows, nil
}

// ofRows returns the settings for projections whose rows are the positions.
func ofRows(rows *projection.Rows) settings {
	s := ofProjection
	s.fixed = func(c *subscriber.Config) { c.Definitions, c.Positions, c.LatestOnly = nil, rows, rows.LatestOnly() }
	return s
}

// RowReadModel is like [App.ReadModel], for a read model with one row for each aggregate, as
// [App.ProjectRows] makes. The function build returns the table of the generation, and the
// reactions. The generations need different tables or prefixes.
//
// Errors: as ReadModel.
func (a *App) RowReadModel(
	ctx context.Context, config readmodel.Config,
	build func(context.Context, readmodel.Generation) (projection.RowTable, []projection.RowReaction, error),
) (*readmodel.Model, error) {
	if build == nil {
		return nil, noBuild(config)
	}
	return a.readModel(ctx, config, func(ctx context.Context, g readmodel.Generation, definitions []aggregate.AnyDefinition) (settings, message.NoPublishHandlerFunc, error) {
		table, reactions, err := build(ctx, g)
		if err != nil {
			return settings{}, nil, err
		}
		rows, err := projection.NewRows(a.client, table, projection.Config{Definitions: definitions}, reactions...)
		if err != nil {
			return settings{}, nil, err
		}
		return ofRows(rows), rows.Handle, nil
	})
}
