package millrace

import (
	"context"
	"fmt"
	"maps"
	"math"
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
// Servers and other services start after the feed observes events. When the App stops, the feed
// ends its streams before the servers stop.
//
// Errors: [*ConfigError] if config leaves Topics out and the App does not have config.Group;
// [ErrStarted]; the errors of live.New.
func (a *App) Live(config live.Config) (*live.Feed, error) {
	if err := a.checkNotStarted(); err != nil {
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
// group has applied the events that the token names. See package consistency.
//
// If config leaves Topics out, they are the topics of the group, which may be added to the App
// later. If the App does not have the group when it starts, [App.Run] returns a [*ConfigError].
// Until then requests with a token fail with [ErrNotRunning]. Set Topics if another program runs
// the group.
//
// The name of a read model of the App ([App.ReadModel] and the like), without Topics, stands for
// the group of the generation that serves. In the query, readmodel.Model.Serving with the context
// of the request returns that generation.
func (a *App) Consistent(group string, config consistency.Config) func(http.Handler) http.Handler {
	own := len(config.Topics) == 0
	if own {
		a.mu.Lock()
		a.queried = append(a.queried, group)
		a.mu.Unlock()
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, config, group, failed := r.Context(), config, group, error(nil)
			if own {
				if ctx, group, config.Topics, failed = a.queriedBy(ctx, group); failed != nil {
					config.MaxAggregates = math.MaxInt // it is not known which of them count
				}
			}
			consistency.Middleware(func(ctx context.Context, token aggregate.Token) error {
				if failed != nil {
					return failed
				}
				return a.waitFor(ctx, group, token)
			}, config)(next).ServeHTTP(w, r.WithContext(ctx))
		})
	}
}

// queriedBy returns the group and the topics for which a query waits. Name is that of a group or of
// a read model. The context is for the query.
func (a *App) queriedBy(ctx context.Context, name string) (of context.Context, group string, topics []string, err error) {
	if err := a.hasStartedWith(name); err != nil {
		return ctx, name, nil, err
	}
	model, ok := a.readModelNamed(name)
	if !ok || a.topicsOf[name] != nil {
		return ctx, name, a.topicsOf[name], nil
	}
	if ctx, err = model.model.Pin(ctx); err != nil {
		return ctx, name, nil, err
	}
	serving, err := model.model.Serving(ctx)
	return ctx, serving.Group(), model.config.Topics, err
}

func (a *App) readModelNamed(name string) (liveModel, bool) {
	i := slices.IndexFunc(a.readModels, func(l liveModel) bool { return l.config.Name == name })
	if i < 0 {
		return liveModel{}, false
	}
	return a.readModels[i], true
}

// waitFor waits until a group has applied the events of a token, also of topics that it has not
// joined yet.
func (a *App) waitFor(ctx context.Context, group string, token aggregate.Token) error {
	g := a.groups
	for _, v := range token {
		if v.Version == 0 { // nothing was written
			continue
		}
		if err := g.WaitApplied(ctx, group, v.ID, v.Version); err != nil {
			return err
		}
	}
	return nil
}

// hasStartedWith returns an error if the App has not started, or does not have the group. A query
// that is added after the start was not checked there.
func (a *App) hasStartedWith(group string) error {
	if a.checkNotStarted() == nil {
		return ErrNotRunning
	}
	return a.hasGroups(group)
}

// hasGroups returns an error for the first of some groups of queries that the App lacks.
func (a *App) hasGroups(queried ...string) error {
	for _, group := range queried {
		if _, ok := a.readModelNamed(group); ok || a.topicsOf[group] != nil {
			continue
		}
		known := "no groups"
		if len(a.topicsOf) > 0 {
			known = fmt.Sprintf("the groups %q", slices.Sorted(maps.Keys(a.topicsOf)))
		}
		return &ConfigError{"Consistent", fmt.Sprintf("has queries of group %q, but this App has %s; correct the name, add its projection, "+
			"or set Topics if another program runs the group", group, known)}
	}
	return nil
}
