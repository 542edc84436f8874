package millrace

import (
	"fmt"
	"slices"

	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/subscriber"
)

// Forward adds a group that publishes the events of its topics to other systems, as public messages
// (package forward), and returns it. The messages of each aggregate are published in the order of
// its events, at least once, and always with the same UUID.
//
// If config leaves them out, the Definitions are the App's. The App does not close
// config.Publisher: close it after [App.Run]. A reset of the group needs groups.WithReplay, because
// old events would go out again. A new group begins with the first event, unless Group.Subscriber
// sets another Start.
//
// Errors: [*ConfigError], [ErrStarted], and the errors of forward.New and subscriber.NewSubscriber.
func (a *App) Forward(g Group, config forward.Config, mappings ...forward.Mapping) (*forward.Forwarder, error) {
	if err := a.checkNotStarted(); err != nil {
		return nil, err
	}
	if config.Definitions == nil {
		config.Definitions = slices.Clone(a.definitions)
	}
	f, err := forward.New(config, mappings...)
	if err != nil {
		return nil, fmt.Errorf("group %q: %w", g.Name, err)
	}
	if err := a.checkTopics(g, f.EventTypes()); err != nil {
		return nil, err
	}
	s := settings{
		fixed:   func(c *subscriber.Config) { c.Definitions, c.NoReplay = nil, true },
		ordered: "messages to other systems keep the order of events",
	}
	if err := a.add(g, s, f.Handle); err != nil {
		return nil, err
	}
	a.addComponent(g.Name, f)
	return f, nil
}
