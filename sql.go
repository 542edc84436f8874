package millrace

import (
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/subscriber"
)

// ProjectSQL adds a projection of the events of a group's topics to an SQL database. The statements
// of a reaction are committed together with the position of the group, which the store keeps. If
// the store has no Definitions, it uses the App's, so reactions receive upcast events. If an
// upcaster splits an event, its parts are applied in one transaction.
//
// Create the table of the store before (sqlprojection.Store.CreateTable). One store is enough for
// all groups. [App.Consistent] reads the positions of the group from the store. [App.Groups] does
// not read them, so use groups.New with groups.WithPositions to operate the group.
//
// Errors: [*ConfigError], [ErrStarted], and the errors of sqlprojection.Store.React and
// subscriber.NewSubscriber.
func (a *App) ProjectSQL(g Group, store *sqlprojection.Store, reactions ...sqlprojection.Reaction) error {
	switch {
	case store == nil:
		return &ConfigError{"store", fmt.Sprintf("of group %q is nil; make one with sqlprojection.New", g.Name)}
	case len(reactions) == 0:
		return &ConfigError{"reactions", fmt.Sprintf("of group %q are missing; add one for each type of event", g.Name)}
	}
	handle, err := store.ReactWith(slices.Clone(a.definitions), reactions...)
	if err != nil {
		return err
	}
	var eventTypes []string
	for _, r := range reactions {
		eventTypes = append(eventTypes, r.EventType())
	}
	if err := a.checkTopics(g, eventTypes); err != nil {
		return err
	}
	return a.add(g, settings{defaults: ofProjection.defaults, fixed: func(c *subscriber.Config) { c.Definitions, c.Positions = nil, store }}, handle)
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
