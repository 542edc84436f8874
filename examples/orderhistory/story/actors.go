package story

import (
	"context"
)

// actors execute plans over the REST API.
type actors struct {
	api *apiClient
	// progress receives a value for each order.
	progress chan<- struct{}
}

func (a *actors) run(ctx context.Context, parallel int, plans []planned) error {
	return inParallel(ctx, parallel, plans, func(ctx context.Context, p planned) error {
		if err := a.api.command(ctx, p.create); err != nil {
			return err
		}
		err := inParallel(ctx, len(p.actors), p.actors, func(ctx context.Context, steps []step) error { return a.execute(ctx, steps) })
		if err == nil {
			err = a.execute(ctx, p.last)
		}
		a.progress <- struct{}{}
		return err
	})
}

func (a *actors) execute(ctx context.Context, steps []step) error {
	for _, step := range steps {
		if err := a.api.command(ctx, step); err != nil {
			return err
		}
	}
	return nil
}
