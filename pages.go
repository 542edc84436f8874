package millrace

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/live"
)

// Live adds a feed, which pushes changes of a read model to clients, and returns it. If config
// leaves them out, Journal, Logger and the Definitions of its Subscriber are the App's, and Topics
// are the topics of config.Group.
//
// Servers and other parts start after the feed observes events. When the App stops, the feed ends
// its streams before the servers stop.
//
// Errors: [*ConfigError] if config leaves Topics out and the App does not have config.Group;
// [ErrStarted]; the errors of live.New.
func (a *App) Live(config live.Config) (*live.Feed, error) {
	if err := a.mayAdd(); err != nil {
		return nil, err
	}
	if config.Group != "" && config.Topics == nil && a.topicsOf[config.Group] == nil {
		return nil, &ConfigError{"Group", fmt.Sprintf("%q is not a group of this App; add its projection first, or set Topics if another program runs the group", config.Group)}
	}
	if config.Journal == nil {
		config.Journal = a.journal
	}
	if config.Topics == nil {
		config.Topics = slices.Clone(a.topicsOf[config.Group])
	}
	if config.Logger == nil {
		config.Logger = a.config.Logger
	}
	if config.Subscriber.Definitions == nil {
		config.Subscriber.Definitions = slices.Clone(a.definitions)
	}
	feed, err := live.New(config)
	if err != nil {
		return nil, err
	}
	a.feeds = append(a.feeds, feed)
	return feed, nil
}

// Consistent returns a middleware for queries. A request with a consistency token waits until the
// group has applied the events that the token names. If config leaves Topics out, they are the
// topics of the group. See package consistency.
func (a *App) Consistent(group string, config consistency.Config) func(http.Handler) http.Handler {
	if config.Topics == nil {
		config.Topics = slices.Clone(a.topicsOf[group])
	}
	return consistency.Middleware(func(ctx context.Context, token aggregate.Token) error {
		return a.groups.WaitToken(ctx, group, token)
	}, config)
}
