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

// Live adds a feed, which pushes changes of a read model to clients. If config leaves them out,
// Journal, Logger and the Definitions of its Subscriber are those of the App, and Topics are those
// of config.Group. Parts such as servers start when the feed observes events. When the App stops,
// the feed ends its streams before the servers stop.
//
// Errors: [*ConfigError] for a Group without Topics that the App does not have, [ErrStarted], those
// of live.New.
func (a *App) Live(config live.Config) (*live.Feed, error) {
	if err := a.mayAdd(); err != nil {
		return nil, err
	}
	if config.Group != "" && config.Topics == nil && a.topicsOf[config.Group] == nil {
		return nil, &ConfigError{"Group", fmt.Sprintf("%q is not one of this App; add its projection first, or name its Topics if another program has it", config.Group)}
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

// Consistent returns a middleware that has queries with a consistency token wait until a group of
// the App has applied what the token names. If config leaves them out, Topics are those of the
// group. See package consistency.
func (a *App) Consistent(group string, config consistency.Config) func(http.Handler) http.Handler {
	if config.Topics == nil {
		config.Topics = slices.Clone(a.topicsOf[group])
	}
	return consistency.Middleware(func(ctx context.Context, token aggregate.Token) error {
		return a.groups.WaitToken(ctx, group, token)
	}, config)
}
