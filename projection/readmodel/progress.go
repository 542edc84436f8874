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

// Progress reports how far a generation is.
type Progress struct {
	Begun bool   // its consumers have begun, on all topics
	Left  uint64 // number of events that are not handled yet
	// AtLeast reports that there may be more than Left, because [Model.Estimate] has not read
	// further.
	AtLeast bool
	// Skipped is the number of events that it has skipped (groups.Group.Skipped). They are not in
	// Left, but their effects are missing, so check them before it serves. 1,000 means 1,000 or
	// more.
	Skipped uint64
	// Paused are the topics on which its group is paused until an operator resumes it
	// (groups.Group.Resume). Stopped are those of them on which an event that kept failing has
	// stopped it (groups.Status.Stopped).
	Paused, Stopped []string
	// Parked is the number of events in Left that wait until an operator decides
	// (groups.Group.Parked).
	Parked uint64
	// Oldest is the time of the oldest event in Left that is not parked. It is zero if there is
	// none, and if there are more than [Config].MaxLag.
	Oldest time.Time
	// Rate is the decrease of Left since the last poll of [Model.CatchUp], in events per second. It
	// is 0 if unknown or if Left increased.
	Rate float64
}

// Remaining returns how long it takes to handle Left at that rate, or 0 if unknown.
func (p Progress) Remaining() time.Duration {
	if p.Rate <= 0 {
		return 0
	}
	return time.Duration(float64(p.Left) / p.Rate * float64(time.Second))
}

// Progress reports exactly how far a generation is. It costs as much as groups.Group.Lag, and
// returns its errors. For Paused and Stopped it reads each group. For Skipped it reads about 20 of
// the records with one read unit, at least one unit for each shard. If no more than [Config].MaxLag
// events are left, it reads the next ones.
func (m *Model) Progress(ctx context.Context, g Generation) (Progress, error) {
	var waiting []groups.BehindAggregate
	p, topics, err := m.lag(ctx, g, func(topic string) (groups.GroupLag, error) {
		lag, err := m.groups.Of(g.Group(), topic).Lag(ctx, groups.LagOptions{OldestOf: -1, Behind: func(b groups.BehindAggregate) {
			if b.Parked == nil && uint64(len(waiting)) < m.config.MaxLag {
				waiting = append(waiting, b)
			}
		}})
		lag.AtLeast = false // here it is about the oldest event
		return lag, err
	})
	if err == nil && p.Left <= m.config.MaxLag {
		p.Oldest, err = m.oldest(ctx, waiting)
	}
	return m.withGroups(ctx, g, p, topics, err)
}

// oldest returns the time of the oldest of the next events of some aggregates.
func (m *Model) oldest(ctx context.Context, waiting []groups.BehindAggregate) (first time.Time, err error) {
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

// caughtUp reports whether a generation may serve.
func (m *Model) caughtUp(p Progress) bool {
	now := m.config.Journal.Config().Now()
	return p.Begun && p.Left <= m.config.MaxLag && (p.Oldest.IsZero() || now.Sub(p.Oldest) <= m.config.MaxDelay)
}

// Estimate estimates how far a generation is, at a low cost. It costs as much as
// groups.Group.Estimate, and returns its errors. Paused, Stopped and Skipped cost as in Progress.
func (m *Model) Estimate(ctx context.Context, g Generation) (Progress, error) {
	p, topics, err := m.estimate(ctx, g)
	return m.withGroups(ctx, g, p, topics, err)
}

func (m *Model) estimate(ctx context.Context, g Generation) (p Progress, topics []string, err error) {
	return m.lag(ctx, g, func(topic string) (groups.GroupLag, error) { return m.groups.Of(g.Group(), topic).Estimate(ctx) })
}

// lag returns the lag on all topics, and the topics on which the group has begun.
func (m *Model) lag(ctx context.Context, g Generation, read func(topic string) (groups.GroupLag, error)) (p Progress, begun []string, err error) {
	topics, err := m.topics(ctx, g)
	if err != nil {
		return Progress{}, nil, err
	}
	for _, topic := range topics {
		lag, err := read(topic)
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

// withGroups adds the data of the groups other than their lag, unless there was an error.
func (m *Model) withGroups(ctx context.Context, g Generation, p Progress, topics []string, err error) (Progress, error) {
	for _, topic := range topics {
		if err == nil {
			err = m.addGroup(ctx, g, topic, &p)
		}
		if errors.Is(err, groups.ErrNoGroup) {
			p.Begun, err = false, nil // the group was removed at this moment
		}
	}
	if err != nil {
		return Progress{}, fmt.Errorf("progress of generation %s: %w", g, err)
	}
	return p, nil
}

const maxSkipped = 1000

func (m *Model) addGroup(ctx context.Context, g Generation, topic string, p *Progress) error {
	group := m.groups.Of(g.Group(), topic)
	status, err := group.Status(ctx)
	if err != nil {
		return err
	}
	if status.Paused {
		p.Paused = append(p.Paused, topic)
	}
	if status.Stopped != nil {
		p.Stopped = append(p.Stopped, topic)
	}
	for _, err := range group.Skipped(ctx, aggregate.ID{}, 0) {
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
