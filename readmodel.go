package millrace

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
)

// ReadModel adds a read model that can be rebuilt while it serves queries, and returns it. Each
// rebuild makes a new generation: a set of tables, and a consumer group that fills them. See
// package readmodel for how to rebuild.
//
// While the App runs, it keeps each generation up to date. It calls build for the generation, and
// projects events with the reactions that build returns. build has to create the tables of the
// generation if they are missing. An error or a panic of build is logged, and build is called again
// after config.Refresh.
//
// If config leaves them out, Journal and Logger are the App's, and the table is Prefix +
// "readmodel". ReadModel creates this table if it is missing. [App.Components] does not yield the
// subscribers of generations.
//
// Errors: [*ConfigError], [ErrStarted], and the errors of readmodel.CreateTable and readmodel.Open.
func (a *App) ReadModel(
	ctx context.Context, config readmodel.Config, build func(context.Context, readmodel.Generation) ([]projection.Reaction, error),
) (*readmodel.Model, error) {
	if build == nil {
		return nil, noBuild(config)
	}
	return a.readModel(ctx, config, func(ctx context.Context, g readmodel.Generation, definitions []aggregate.AnyDefinition) (settings, message.NoPublishHandlerFunc, error) {
		reactions, err := build(ctx, g)
		if err != nil {
			return settings{}, nil, err
		}
		p, err := projection.New(a.client, projection.Config{Definitions: definitions}, reactions...)
		if err != nil {
			return settings{}, nil, err
		}
		return ofProjection, p.Handle, nil
	})
}

func noBuild(config readmodel.Config) error {
	return &ConfigError{"build", fmt.Sprintf("of read model %q is nil; pass a function that returns its reactions", config.Name)}
}

// generationHandler returns the handler of the projection of a generation, and the settings of its
// subscriber.
type generationHandler func(context.Context, readmodel.Generation, []aggregate.AnyDefinition) (settings, message.NoPublishHandlerFunc, error)

func (a *App) readModel(ctx context.Context, config readmodel.Config, handler generationHandler) (*readmodel.Model, error) {
	if err := a.checkNotStarted(); err != nil {
		return nil, err
	}
	name := "read model " + config.Name
	if slices.ContainsFunc(a.workers, func(other Service) bool { return other.Name == name }) {
		return nil, &ConfigError{"Name", fmt.Sprintf("%q is the name of another read model; choose another name", config.Name)}
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
	ctx = a.config.starting(ctx)
	if !a.config.ExistingTables {
		if err := readmodel.CreateTable(ctx, a.client, config.Table); err != nil {
			return nil, err
		}
	}
	model, err := readmodel.Open(ctx, a.client, config)
	if err != nil {
		return nil, err
	}
	config.Topics = slices.Clone(config.Topics)
	definitions := slices.Clone(a.definitions)
	a.handled(config.Topics)
	wire := func(ctx context.Context, g readmodel.Generation, router *message.Router) error {
		s, handle, err := handler(ctx, g, definitions)
		if err != nil {
			return err
		}
		return a.project(Group{Name: g.Group(), Topics: config.Topics}, s, handle, router)
	}
	live := liveModel{model, config}
	a.readModels = append(a.readModels, live)
	a.models = append(a.models, live.wiring(wire))
	a.workers = append(a.workers, Service{Name: name, Run: func(ctx context.Context) error {
		return model.Run(ctx, func(ctx context.Context, g readmodel.Generation) error {
			router, err := a.newRouter(a.config.Logger)
			if err != nil {
				return err
			}
			if err := wire(ctx, g, router); err != nil {
				return err
			}
			defer a.dropped(g.Group())
			return router.Run(ctx)
		})
	}})
	return model, nil
}

// liveModel is a read model with its configuration. No forms means all.
type liveModel struct {
	model  *readmodel.Model
	config readmodel.Config
}

// has reports whether a consumer group is that of a generation.
func (l liveModel) has(group string) bool {
	number, ok := strings.CutPrefix(group, l.config.Name+".")
	_, err := strconv.ParseUint(number, 10, 64)
	return ok && err == nil
}

// generations returns the generations that this program consumes. A release that knows the form has
// to consume the others.
func (l liveModel) generations(ctx context.Context) ([]readmodel.Generation, error) {
	generations, err := l.model.Generations(ctx)
	return slices.DeleteFunc(generations.Live, func(g readmodel.Generation) bool {
		return len(l.config.Forms) > 0 && !slices.Contains(l.config.Forms, g.Form)
	}), err
}

// wiring returns a function that adds the projections of the generations.
func (l liveModel) wiring(add func(context.Context, readmodel.Generation, *message.Router) error) func(context.Context, *message.Router) error {
	return func(ctx context.Context, router *message.Router) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("read model: build panicked: %v", r)
			}
		}()
		generations, err := l.generations(ctx)
		if err != nil {
			return err
		}
		for _, g := range generations {
			if err := add(ctx, g, router); err != nil {
				return fmt.Errorf("read model %s: %w", g, err)
			}
		}
		return nil
	}
}

// dropped forgets the subscriber of a generation that no longer runs.
func (a *App) dropped(group string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.subscriberOf, group)
	delete(a.external, group)
}

// project adds a projection to a router, which closes its subscriber.
func (a *App) project(g Group, s settings, handle message.NoPublishHandlerFunc, router *message.Router) error {
	config, err := a.configure(g, s)
	if err != nil {
		return err
	}
	sub, err := a.subscriber(g, config)
	if err != nil {
		return err
	}
	for _, topic := range g.Topics {
		router.AddConsumerHandler(g.handlerName(topic), topic, sub, handle)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.subscriberOf[g.Name] = sub
	a.setExternal(g, config)
	return nil
}
