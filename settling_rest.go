package millrace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// deferred returns the events that groups will try again (subscriber.Defer).
func (s *settling) deferred(ctx context.Context) (left []Unsettled, err error) {
	for _, g := range s.watched {
		if !g.defers || g.halted() != "" {
			continue
		}
		for e, err := range s.groups.Of(g.name, g.topic).Skipped(ctx, aggregate.ID{}, 0) {
			if errors.Is(err, groups.ErrNoGroup) {
				break
			}
			if err != nil {
				return nil, err
			}
			if e.Due.IsZero() {
				continue
			}
			reason := fmt.Sprintf("the event is deferred until %v: %s", e.Due.Format(time.RFC3339), e.Reason)
			left = append(left, g.unsettled(e.Aggregate, e.Number, reason))
		}
	}
	return left, nil
}

// due lets timeouts fire that are due, and returns those that are left, and commands that are not
// sent.
func (s *settling) due(ctx context.Context) (left []Unsettled, err error) {
	for _, p := range s.managers {
		if left, err = p.overdue(ctx, left); err != nil {
			return nil, err
		}
	}
	if len(left) > 0 && !s.inBursts {
		for _, p := range s.managers {
			_ = p.fire(ctx) // a failure is stored with the timeout or the commands
		}
	}
	return left, nil
}

// atRest returns what is being handled, and what the subscribers of this process know of that no
// read of the tail has shown.
func (s *settling) atRest(context.Context) (left []Unsettled, err error) {
	if err := s.handling.stillRunning(); err != nil {
		left = append(left, Unsettled{Reason: err.Error()})
	}
	for _, g := range s.watched {
		if g.sub == nil || g.status.Start.After(s.journal.Config().Now()) {
			continue
		}
		for _, shard := range g.sub.Shards() {
			if shard.Topic == g.topic && (!shard.CaughtUp || shard.Behind > 0 && shard.Parked == 0) {
				left = append(left, Unsettled{Group: g.name, Reason: fmt.Sprintf("shard %d of topic %q is not caught up", shard.Shard, g.topic)})
			}
		}
	}
	return left, nil
}

// manager is what Settle needs of a process manager.
type manager struct {
	processType string
	backlog     *process.Backlog
	now         func() time.Time
	retryAfter  time.Duration // an attempt that runs makes a row due so much later
	fire        func(context.Context) error
}

func (a *App) managerOf(processType string, c process.Config, fire func(context.Context) error) manager {
	m := manager{processType, process.NewBacklog(a.client, c.Table), c.Now, c.RetryAfter, fire}
	if m.now == nil {
		m.now = a.journal.Config().Now
	}
	return m
}

// overdue appends the timeouts that are due, and the commands that are not sent.
func (m manager) overdue(ctx context.Context, left []Unsettled) ([]Unsettled, error) {
	now := m.now()
	for p, err := range m.backlog.Due(ctx, m.processType, now.Add(m.retryAfter+time.Second)) {
		if err != nil {
			return nil, err
		}
		if p.Timeout != "" && p.At.After(now) {
			continue
		}
		what := "commands are not sent"
		if p.Timeout != "" {
			what = fmt.Sprintf("timeout %q is due since %v", p.Timeout, p.At.Format(time.RFC3339))
		}
		if p.Failure != "" {
			what = fmt.Sprintf("%s, attempt %d failed: %s", what, p.Attempts, p.Failure)
		}
		left = append(left, Unsettled{Group: m.processType, Aggregate: p.Process, Reason: what})
	}
	return left, nil
}
