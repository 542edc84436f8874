package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Begin makes another generation, with the last of [Config].Forms. Programs that call [Model.Run]
// and know the form start to consume it within [Config].Refresh. A model from [OpenExisting]
// without forms begins a generation with the form of the serving one.
//
// Errors: [ErrChanged], and those of [Open].
func (m *Model) Begin(ctx context.Context) (Generation, error) {
	s, err := m.change(ctx, "begin a generation of", false, func(s state) (state, error) {
		return s.begin(m.newest(s)), nil
	})
	return m.generation(s, s.last), err
}

// Switch makes a generation serve, in one write. The generation that served before is kept up to
// date until it is dropped. If the generation serves already, Switch does nothing.
//
// Errors: [ErrNoGeneration], [*BehindError] if it lags by more than [Config].MaxLag or MaxDelay,
// [ErrChanged], and those of [Open] and of groups.Group.Lag.
func (m *Model) Switch(ctx context.Context, g Generation) error {
	if err := m.verify(ctx, g); err != nil {
		return err
	}
	_, err := m.change(ctx, "switch", false, func(s state) (state, error) {
		switch {
		case !m.isLive(s, g):
			return s, fmt.Errorf("%w: %s", ErrNoGeneration, g)
		case s.serving == g.Number:
			return s, errUnchanged
		}
		s.previous, s.serving = s.serving, g.Number
		return s, nil
	})
	return err
}

// verify returns an error for a generation that has not caught up.
func (m *Model) verify(ctx context.Context, g Generation) error {
	s, err := m.current(ctx)
	if err != nil {
		return err
	}
	if !m.isLive(s, g) {
		return fmt.Errorf("switch read model %q: %w: %s", m.config.Name, ErrNoGeneration, g)
	}
	if s.serving == g.Number {
		return nil
	}
	g = m.generation(s, g.Number)
	progress, err := m.Progress(ctx, g)
	if err == nil && !m.caughtUp(progress) {
		err = &BehindError{Generation: g, Progress: progress, MaxLag: m.config.MaxLag, MaxDelay: m.config.MaxDelay}
	}
	if err != nil {
		return fmt.Errorf("switch read model %q: %w", m.config.Name, err)
	}
	return nil
}

// Rollback undoes the switch to the generation from: the generation that served before it serves
// again, and from becomes the previous one. Rollback returns the serving generation. If from does
// not serve, Rollback does nothing, so it may be called again after an error.
//
// Errors: [ErrNoPrevious], [ErrChanged], and those of [Open].
func (m *Model) Rollback(ctx context.Context, from Generation) (Generation, error) {
	s, err := m.change(ctx, "roll back", false, func(s state) (state, error) {
		switch {
		case !m.names(from, s.serving):
			return s, errUnchanged
		case s.previous == 0:
			return s, ErrNoPrevious
		}
		s.previous, s.serving = s.serving, s.previous
		return s, nil
	})
	return m.generation(s, s.serving), err
}

// Drop removes a generation. Its consumers stop within [Config].Refresh and the time that they need
// to close, and then its groups are removed. Drop waits for that until ctx ends, so pass a context
// with a deadline. Drop may be called again.
//
// Two cases keep a group from being removed. A crashed member that was the last one blocks the
// removal permanently (ActiveError of package groups), unless options has Force. And a process that
// could not read the item for longer than twice Refresh may have started the group again.
//
// Queries that have read the generation within [Config].MaxAge may still be running. After that
// time its tables can be deleted; Drop does not delete them.
//
// Errors: [ErrServing], [ErrNoGeneration] if there never was a generation with that number,
// [ErrChanged], and those of [Open] and of groups.Group.Remove, except groups.ErrLeftovers, which
// it logs. If ctx ends while members are active, the error is that of ctx with a
// groups.ActiveError.
func (m *Model) Drop(ctx context.Context, g Generation, options groups.RemoveOptions) error {
	_, err := m.change(ctx, "drop a generation of", false, func(s state) (state, error) {
		switch {
		case m.names(g, s.serving):
			return s, fmt.Errorf("%w: %s", ErrServing, g)
		case g.Model != m.config.Name || g.Number == 0 || g.Number > s.last:
			return s, fmt.Errorf("%w: %s", ErrNoGeneration, g)
		case !m.isLive(s, g):
			return s, errUnchanged
		}
		return s.drop(g.Number), nil
	})
	if err != nil {
		return err
	}
	select { // until all processes have read the change
	case <-ctx.Done():
		return fmt.Errorf("drop generation %s: %w", g, ctx.Err())
	case <-time.After(2 * m.config.Refresh):
	}
	// Including topics that its consumers no longer use.
	topics, err := m.groups.Topics(ctx, g.Group())
	if err != nil {
		return fmt.Errorf("drop generation %s: %w", g, err)
	}
	topics = append(topics, m.config.Topics...)
	slices.Sort(topics)
	for _, topic := range slices.Compact(topics) {
		if err := m.removeGroup(ctx, g, topic, options); err != nil {
			return fmt.Errorf("drop generation %s: %w", g, err)
		}
	}
	return nil
}

// removeGroup waits until the members have left, and removes the group. Old rows that stay do not
// matter to the generation, so an error about them is only logged.
func (m *Model) removeGroup(ctx context.Context, g Generation, topic string, options groups.RemoveOptions) error {
	again := retry.Pauses(50*time.Millisecond, time.Second, 0)
	group := m.groups.Of(g.Group(), topic)
	var active error
	err := backoff.Retry(func() error {
		err := group.Remove(ctx, options)
		var members *groups.ActiveError
		switch {
		case errors.Is(err, groups.ErrLeftovers):
			m.config.Logger.Error("Cannot delete old rows of consumer groups that were removed, a later removal will try again", err, watermill.LogFields{"generation": g.String()})
			return nil
		case errors.Is(err, groups.ErrNoGroup):
			return nil
		case errors.As(err, &members):
			active = err
		case err != nil:
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(again, ctx))
	if err != nil && ctx.Err() != nil && active != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), active) // the members that it waits for
	}
	return err
}
