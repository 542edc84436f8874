package readmodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/groups"
)

// Progress is how far a generation is.
type Progress struct {
	Begun bool   // its consumers have begun, with all topics
	Left  uint64 // events that they have not handled
	// AtLeast: there may be more of them, as [Model.Estimate] has not looked further.
	AtLeast bool
	// Parked are those of Left that wait until someone decides (groups.Groups.Parked).
	Parked uint64
	// Rate is by how many events a second Left has fallen since the last look of [Model.CatchUp], 0 if unknown or if it rose.
	Rate float64
}

// Remaining is how long it takes at that rate, 0 if unknown.
func (p Progress) Remaining() time.Duration {
	if p.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(p.Left) / p.Rate * float64(time.Second))
}

// Progress tells how far a generation is, exactly: see groups.Groups.Lag for what that costs, and its errors.
func (m *Model) Progress(ctx context.Context, g Generation) (Progress, error) {
	return m.progress(ctx, g, func(topic string) (groups.GroupLag, error) {
		lag, err := m.groups.Lag(ctx, g.Group(), topic, groups.LagOptions{OldestOf: -1})
		lag.AtLeast = false // which is about the oldest one, here
		return lag, err
	})
}

// Estimate tells cheaply about how far a generation is: see groups.Groups.Estimate for what that costs, and its errors.
func (m *Model) Estimate(ctx context.Context, g Generation) (Progress, error) {
	return m.progress(ctx, g, func(topic string) (groups.GroupLag, error) { return m.groups.Estimate(ctx, g.Group(), topic) })
}

func (m *Model) progress(ctx context.Context, g Generation, look func(topic string) (groups.GroupLag, error)) (Progress, error) {
	topics, err := m.topics(ctx, g)
	if err != nil {
		return Progress{}, fmt.Errorf("progress of generation %s: %w", g, err)
	}
	p := Progress{Begun: len(topics) > 0}
	for _, topic := range topics {
		lag, err := look(topic)
		if errors.Is(err, groups.ErrNoGroup) {
			p.Begun = false
			continue
		}
		if err != nil {
			return Progress{}, fmt.Errorf("progress of generation %s: %w", g, err)
		}
		p.Left += lag.Events
		p.Parked += lag.ParkedEvents
		p.AtLeast = p.AtLeast || lag.AtLeast
	}
	return p, nil
}
