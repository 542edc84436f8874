package readmodel

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
)

// Run consumes each generation that is kept up to date and whose form this program knows
// ([Config].Forms). It calls consume for each existing and each new generation, in a goroutine of
// its own. It ends the context of consume when the generation is dropped or ctx ends. Run returns
// the error of ctx when all calls have returned.
//
// Consume should run until its context ends. If it returns earlier, or panics, its error is logged,
// and it is called again after [Config].Refresh.
//
// Errors: [*ConfigError] if consume is nil, and the error of ctx.
func (m *Model) Run(ctx context.Context, consume func(ctx context.Context, g Generation) error) error {
	if consume == nil {
		return &ConfigError{"consume", "is nil: pass a function that runs a projection of the generation"}
	}
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	consumers := map[uint64]context.CancelFunc{}
	refresh := time.NewTicker(m.config.Refresh)
	defer refresh.Stop()
	for {
		s, err := m.current(ctx)
		if err != nil && ctx.Err() == nil {
			m.config.Logger.Error("Cannot read which generations there are, will try again", err, watermill.LogFields{"read_model": m.config.Name})
		}
		if err == nil {
			for number, stop := range consumers {
				if !s.isLive(number) {
					stop()
					delete(consumers, number)
				}
			}
			for _, number := range s.live {
				if consumers[number] != nil {
					continue
				}
				work, stop := context.WithCancel(ctx)
				consumers[number] = stop
				g := m.generation(s, number)
				// A release that knows the form has to consume it.
				if !m.knows(g.Form) {
					m.config.Logger.Info("Ignores a generation whose form this program does not know", watermill.LogFields{"generation": g.String(), "form": g.Form})
					continue
				}
				running.Add(1)
				go func() {
					defer running.Done()
					defer stop()
					m.consume(work, g, consume)
				}()
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-refresh.C:
		}
	}
}

func (m *Model) consume(ctx context.Context, g Generation, consume func(context.Context, Generation) error) {
	for ctx.Err() == nil {
		err := safely(ctx, g, consume)
		if ctx.Err() != nil {
			return
		}
		m.config.Logger.Error("A consumer of a read model has ended, will start it again", err, watermill.LogFields{"generation": g.String()})
		select {
		case <-ctx.Done():
		case <-time.After(m.config.Refresh):
		}
	}
}

// safely calls consume, and returns a panic as an error. Watermill's router does the same for
// handlers.
func safely(ctx context.Context, g Generation, consume func(context.Context, Generation) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return consume(ctx, g)
}
