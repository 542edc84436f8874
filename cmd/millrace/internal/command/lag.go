package command

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/output"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// lagLine is the lag of a group, in total or in a shard.
type lagLine struct {
	Events       uint64  `json:"events"`
	Aggregates   int     `json:"aggregates"`
	Parked       int     `json:"parked"`
	ParkedEvents uint64  `json:"parked_events"`
	Oldest       string  `json:"oldest,omitempty"`
	Seconds      float64 `json:"seconds"`  // age of the oldest event
	AtLeast      bool    `json:"at_least"` // there may be more events or older events
}

func newLagLine(l groups.Lag, now time.Time) *lagLine {
	return &lagLine{
		Events: l.Events, Aggregates: l.Aggregates, Parked: l.Parked, ParkedEvents: l.ParkedEvents, Oldest: output.Time(l.Oldest),
		Seconds: l.Age(now).Seconds(), AtLeast: l.AtLeast,
	}
}

func (l *lagLine) events() string {
	switch {
	case l == nil:
		return "-"
	case l.AtLeast:
		return output.Count(l.Events) + "+"
	}
	return output.Count(l.Events)
}

// text returns the lag as text, such as "1 event of 1 aggregate".
func (l *lagLine) text() string {
	noun := " events"
	if l.Events == 1 && !l.AtLeast {
		noun = " event"
	}
	return l.events() + noun + " of " + output.Counted(l.Aggregates, "aggregate", "aggregates")
}

func (l *lagLine) age() string {
	if l == nil || l.Oldest == "" {
		return "-"
	}
	return time.Duration(l.Seconds * float64(time.Second)).Round(time.Second).String()
}

func (l *lagLine) parked() string {
	if l == nil {
		return "-"
	}
	return output.Count(l.Parked)
}

func (l *lagLine) aggregates() string {
	if l == nil {
		return "-"
	}
	return output.Count(l.Aggregates)
}

// lag returns the exact lag or an estimate. It returns nil for a group with external positions.
func (a *app) lag(ctx context.Context, g *groups.Group, one groups.Status, exact bool) (*groups.GroupLag, error) {
	if one.ExternalPositions {
		return nil, nil
	}
	if !exact {
		lag, err := g.Estimate(ctx)
		return &lag, err
	}
	progress := a.showProgress()
	defer progress.Done()
	lag, err := g.Lag(ctx, groups.LagOptions{
		Corrupt: func(err *journal.CorruptItemError) { a.note("millrace: %v", err) },
		Progress: func(aggregates, shards int) {
			progress.Show(func(elapsed time.Duration) string {
				return fmt.Sprintf("%s on %s: %s, %d of %s", one.Name, one.Topic, output.Counted(aggregates, "aggregate", "aggregates"),
					shards, output.Counted(len(one.Shards), "shard", "shards"))
			})
		},
	})
	return &lag, err
}
