package readmodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Progress is how far a generation is.
type Progress struct {
	Begun bool   // its consumers have begun, with all topics
	Left  uint64 // events that they have not handled
	// AtLeast: there may be more of them, as [Model.Estimate] has not looked further.
	AtLeast bool
	// Skipped are events that it has passed over (groups.Groups.Skipped). They are not in Left,
	// though what they should have changed is missing, so look at them before it serves. 1,000
	// stands for that many or more.
	Skipped uint64
	// Paused are the topics on which its group rests until somebody has it go on
	// (groups.Groups.Resume), and Stopped are those of them on which an event that kept failing has
	// stopped it (groups.Group.Stopped).
	Paused, Stopped []string
	// Parked are those of Left that wait until someone decides (groups.Groups.Parked).
	Parked uint64
	// Oldest is when the first of those of Left occurred that do not wait for a decision; zero
	// where there is none, and where there are more than [Config].MaxLag.
	Oldest time.Time
	// Rate is by how many events a second Left has fallen since the last look of [Model.CatchUp], 0
	// if unknown or if it rose.
	Rate float64
}

// Remaining is how long it takes at that rate, 0 if unknown.
func (p Progress) Remaining() time.Duration {
	if p.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(p.Left) / p.Rate * float64(time.Second))
}

// Progress reports how far a generation is, exactly: see groups.Groups.Lag for what that costs, and
// its errors. For what rests it reads each group, and for what was skipped some 20 of the records
// with a read unit, at least one for each shard. Where no more than [Config].MaxLag events are left
// it reads those that come next.
func (m *Model) Progress(ctx context.Context, g Generation) (Progress, error) {
	var waiting []groups.Behind
	p, topics, err := m.lag(ctx, g, func(topic string) (groups.GroupLag, error) {
		lag, err := m.groups.Lag(ctx, g.Group(), topic, groups.LagOptions{OldestOf: -1, Behind: func(b groups.Behind) {
			if b.Parked == nil && uint64(len(waiting)) < m.config.MaxLag {
				waiting = append(waiting, b)
			}
		}})
		lag.AtLeast = false // which is about the oldest one, here
		return lag, err
	})
	if err == nil && p.Left <= m.config.MaxLag {
		p.Oldest, err = m.oldest(ctx, waiting)
	}
	return m.withGroups(ctx, g, p, topics, err)
}

// oldest reports when the first of the next events of some aggregates occurred.
func (m *Model) oldest(ctx context.Context, waiting []groups.Behind) (first time.Time, err error) {
	for _, b := range waiting {
		for r, err := range m.config.Journal.Raw().Events(ctx, b.Aggregate, b.Next, b.Next) {
			switch {
			case errors.As(err, new(*journal.TruncatedError)):
			case err != nil:
				return time.Time{}, err
			case first.IsZero() || r.OccurredAt.Before(first):
				first = r.OccurredAt
			}
		}
	}
	return first, nil
}

// caughtUp reports that a generation may serve.
func (m *Model) caughtUp(p Progress) bool {
	now := m.config.Journal.Config().Now()
	return p.Begun && p.Left <= m.config.MaxLag && (p.Oldest.IsZero() || now.Sub(p.Oldest) <= m.config.MaxDelay)
}

// Estimate estimates cheaply how far a generation is: see groups.Groups.Estimate for what that
// costs, and its errors. What rests and was skipped costs as in Progress.
func (m *Model) Estimate(ctx context.Context, g Generation) (Progress, error) {
	p, topics, err := m.estimate(ctx, g)
	return m.withGroups(ctx, g, p, topics, err)
}

func (m *Model) estimate(ctx context.Context, g Generation) (p Progress, topics []string, err error) {
	return m.lag(ctx, g, func(topic string) (groups.GroupLag, error) { return m.groups.Estimate(ctx, g.Group(), topic) })
}

// lag returns what is left on all topics, and those that have begun.
func (m *Model) lag(ctx context.Context, g Generation, look func(topic string) (groups.GroupLag, error)) (p Progress, begun []string, err error) {
	topics, err := m.topics(ctx, g)
	if err != nil {
		return Progress{}, nil, err
	}
	for _, topic := range topics {
		lag, err := look(topic)
		if errors.Is(err, groups.ErrNoGroup) {
			continue
		}
		if err != nil {
			return Progress{}, nil, err
		}
		begun = append(begun, topic)
		p.Left += lag.Events
		p.Parked += lag.ParkedEvents
		p.AtLeast = p.AtLeast || lag.AtLeast
	}
	p.Begun = len(topics) > 0 && len(begun) == len(topics)
	return p, begun, nil
}

// withGroups adds what the groups tell beside their lag, unless there was an error.
func (m *Model) withGroups(ctx context.Context, g Generation, p Progress, topics []string, err error) (Progress, error) {
	for _, topic := range topics {
		if err == nil {
			err = m.addGroup(ctx, g, topic, &p)
		}
		if errors.Is(err, groups.ErrNoGroup) {
			p.Begun, err = false, nil // it was removed at this moment
		}
	}
	if err != nil {
		return Progress{}, fmt.Errorf("progress of generation %s: %w", g, err)
	}
	return p, nil
}

const maxSkipped = 1000

func (m *Model) addGroup(ctx context.Context, g Generation, topic string, p *Progress) error {
	group, err := m.groups.Get(ctx, g.Group(), topic)
	if err != nil {
		return err
	}
	if group.Paused {
		p.Paused = append(p.Paused, topic)
	}
	if group.Stopped != nil {
		p.Stopped = append(p.Stopped, topic)
	}
	for _, err := range m.groups.Skipped(ctx, g.Group(), topic, aggregate.ID{}, 0) {
		if err != nil {
			return err
		}
		if p.Skipped == maxSkipped {
			break
		}
		p.Skipped++
	}
	return nil
}
