package millrace

import (
	"context"
	"fmt"
	"slices"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// ProjectSQL adds a projection of the events of a group's topics to an SQL database. The statements
// of a reaction are committed together with the position of the group, which the store keeps. If
// the store has no Definitions, it uses the App's, so reactions receive upcast events. If an
// upcaster splits an event, its parts are applied in one transaction.
//
// Create the table of the store before (sqlprojection.Store.CreateTable). One store is enough for
// all groups. [App.Consistent], [App.Groups] and [App.Settle] read the positions of the group from
// the store, and [App.Components] yields a sqlprojection.Projection for metrics.
//
// Errors: [*ConfigError], [ErrStarted], and the errors of sqlprojection.Store.React and
// subscriber.NewSubscriber.
func (a *App) ProjectSQL(g Group, store *sqlprojection.Store, reactions ...sqlprojection.Reaction) error {
	p, err := projectSQL(g.Name, store, slices.Clone(a.definitions), reactions)
	if err != nil {
		return err
	}
	if err := a.checkTopics(g, p.EventTypes()); err != nil {
		return err
	}
	if err := a.add(g, ofStore(store), p.Handle); err != nil {
		return err
	}
	a.addComponent(g.Name, p)
	return nil
}

func projectSQL(
	group string, store *sqlprojection.Store, definitions []aggregate.AnyDefinition, reactions []sqlprojection.Reaction,
) (*sqlprojection.Projection, error) {
	switch {
	case store == nil:
		return nil, noStore(group)
	case len(reactions) == 0:
		return nil, &ConfigError{"reactions", fmt.Sprintf("of group %q are missing; add one for each type of event", group)}
	}
	return store.Project(definitions, reactions...)
}

func noStore(group string) error {
	return &ConfigError{"store", fmt.Sprintf("of group %q is nil; make one with sqlprojection.New", group)}
}

// ofStore returns the settings for projections whose positions are in an SQL database.
func ofStore(store *sqlprojection.Store) settings {
	s := ofProjection
	s.fixed = func(c *subscriber.Config) { c.Definitions, c.Positions = nil, store }
	return s
}

// SQLReadModel is like [App.ReadModel], for a read model in an SQL database, as [App.ProjectSQL]
// fills. The function build creates the tables of the generation if they are missing, and returns
// the reactions. readmodel.Generation.Table returns names for them. If config leaves it out,
// Positions is the store.
//
// Errors: as ReadModel.
func (a *App) SQLReadModel(
	ctx context.Context, config readmodel.Config, store *sqlprojection.Store,
	build func(context.Context, readmodel.Generation) ([]sqlprojection.Reaction, error),
) (*readmodel.Model, error) {
	switch {
	case build == nil:
		return nil, noBuild(config)
	case store == nil:
		return nil, noStore(config.Name)
	}
	if config.Positions == nil {
		config.Positions = store
	}
	return a.readModel(ctx, config, func(ctx context.Context, g readmodel.Generation, definitions []aggregate.AnyDefinition) (settings, message.NoPublishHandlerFunc, error) {
		reactions, err := build(ctx, g)
		if err != nil {
			return settings{}, nil, err
		}
		p, err := projectSQL(g.Group(), store, definitions, reactions)
		if err != nil {
			return settings{}, nil, err
		}
		return ofStore(store), p.Handle, nil
	})
}

// storedPositions reads the positions that groups of an App keep outside of the journal's tables.
type storedPositions struct{ app *App }

// Position implements groups.Positions.
func (p storedPositions) Position(ctx context.Context, group subscriber.GroupKey, id aggregate.ID) (position uint64, found bool, err error) {
	store := p.app.positionsOf(group.Name)
	if store == nil {
		return 0, false, fmt.Errorf("%w: the App does not have group %q: make Groups with WithPositions and its store", groups.ErrExternalPositions, group.Name)
	}
	return store.Position(ctx, group, id)
}

// positionsOf returns the store of a group's positions, also of a generation that this program does
// not consume; nil if it is not known.
func (a *App) positionsOf(group string) groups.Positions {
	a.mu.Lock()
	defer a.mu.Unlock()
	if store := a.external[group]; store != nil {
		return store
	}
	for _, model := range a.readModels {
		if model.has(group) {
			return model.config.Positions
		}
	}
	return nil
}

// checkPositions returns an error if the handlers of a group commit positions, but receive some
// events as several messages, which have no position.
func checkPositions(g Group, config subscriber.Config) error {
	if config.Positions == nil {
		return nil
	}
	for _, d := range config.Definitions {
		if d != nil && d.Splits() && slices.Contains(g.Topics, d.Type()) {
			return &ConfigError{"Group.Subscriber", fmt.Sprintf("of %q sets Positions, but an upcaster may split an event of %q into several messages, "+
				"which have no position; use App.ProjectSQL, or set its Definitions to nil and let the handler upcast events", g.Name, d.Type())}
		}
	}
	return nil
}
