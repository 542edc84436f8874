package readmodel

import (
	"context"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
)

// Run consumes each generation that is kept up to date and whose form this program knows
// ([Config].Forms): it calls consume for those that are there and that come, each in a goroutine of
// its own, and ends its context when the generation is dropped, or with ctx. It returns the
// context's error when all have returned.
//
// consume should run until its context ends. One that returns before is called again after
// [Config].Refresh, and its error is logged.
func (m *Model) Run(ctx context.Context, consume func(ctx context.Context, g Generation) error) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	consumers := map[uint64]context.CancelFunc{}
	look := time.NewTicker(m.config.Refresh)
	defer look.Stop()
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
				if !m.knows(g.Form) { // a release that does has to see to it
					m.config.Logger.Info("Leaves a generation alone whose form this program does not know", watermill.LogFields{"generation": g.String(), "form": g.Form})
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
		case <-look.C:
		}
	}
}

func (m *Model) consume(ctx context.Context, g Generation, consume func(context.Context, Generation) error) {
	for ctx.Err() == nil {
		err := consume(ctx, g)
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
