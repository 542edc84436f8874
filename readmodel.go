package millrace

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
)

// ReadModel adds a read model that can be rebuilt while it serves, and returns it for queries.
// While the App runs it keeps each generation up to date: it calls build, which creates the
// generation's tables if they are missing and returns the reactions that write to them, and
// projects events in the generation's consumer group. See package readmodel for how to rebuild it.
//
// If config leaves them out, Journal and Logger are those of the App, and the table is Prefix +
// "readmodel", which is created. An error of build is logged, and build is called again after
// config.Refresh. The consumer groups of generations are not among [App.Components].
//
// Errors: [*ConfigError], [ErrStarted], those of readmodel.CreateTable and readmodel.Open.
func (a *App) ReadModel(
	ctx context.Context, config readmodel.Config, build func(context.Context, readmodel.Generation) ([]projection.Reaction, error),
) (*readmodel.Model, error) {
	if err := a.mayAdd(); err != nil {
		return nil, err
	}
	if build == nil {
		return nil, &ConfigError{"build", fmt.Sprintf("of read model %q is nil; pass a function that returns its reactions", config.Name)}
	}
	name := "read model " + config.Name
	if slices.ContainsFunc(a.workers, func(other Part) bool { return other.Name == name }) {
		return nil, &ConfigError{"Name", fmt.Sprintf("%q is that of another read model; choose another name", config.Name)}
	}
	if config.Journal == nil {
		config.Journal = a.journal
	}
	if config.Logger == nil {
		config.Logger = a.config.Logger
	}
	if config.Table == "" {
		config.Table = a.ReadModelTable()
	}
	if !a.config.ExistingTables {
		if err := readmodel.CreateTable(ctx, a.client, config.Table); err != nil {
			return nil, err
		}
	}
	model, err := readmodel.Open(ctx, a.client, config)
	if err != nil {
		return nil, err
	}
	topics, definitions := slices.Clone(config.Topics), slices.Clone(a.definitions)
	a.handled(topics)
	a.workers = append(a.workers, Part{Name: name, Run: func(ctx context.Context) error {
		return model.Run(ctx, func(ctx context.Context, g readmodel.Generation) error {
			reactions, err := safely(ctx, g, build)
			if err != nil {
				return err
			}
			return a.project(ctx, Group{Name: g.Group(), Topics: topics}, definitions, reactions)
		})
	}})
	return model, nil
}

// safely calls build, and returns a panic as an error, as the App does with that of a handler.
func safely(
	ctx context.Context, g readmodel.Generation, build func(context.Context, readmodel.Generation) ([]projection.Reaction, error),
) (reactions []projection.Reaction, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("build panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return build(ctx, g)
}

// project runs a projection until ctx ends.
func (a *App) project(ctx context.Context, g Group, definitions []aggregate.AnyDefinition, reactions []projection.Reaction) error {
	p, err := projection.New(a.client, projection.Config{Definitions: definitions}, reactions...)
	if err != nil {
		return err
	}
	sub, err := a.configured(g.with(storeSoon))
	if err != nil {
		return err
	}
	router, err := a.config.newRouter()
	if err != nil {
		return err
	}
	for _, topic := range g.Topics {
		router.AddConsumerHandler(g.handlerName(topic), topic, sub, p.Handle)
	}
	return errors.Join(router.Run(ctx), sub.Close())
}
