package readmodel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Begin makes another generation, of the last of [Config].Forms. Those who [Model.Run] and know the
// form begin to consume it within [Config].Refresh. What [OpenExisting] gave without forms begins
// one of the form that serves.
//
// Errors: [ErrChanged], those of [Open].
func (m *Model) Begin(ctx context.Context) (Generation, error) {
	s, err := m.change(ctx, "begin a generation of", false, func(s state) (state, error) {
		return s.begin(m.newest(s)), nil
	})
	return m.generation(s, s.last), err
}

// Switch has a generation serve, in one write. The one that served is kept up to date until it is
// dropped. To switch to what serves already does nothing.
//
// Errors: [ErrNoGeneration], [*BehindError] if it lags by more than [Config].MaxLag or MaxDelay,
// [ErrChanged], those of [Open] and of groups.Groups.Lag.
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

// verify refuses a generation that has not caught up.
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

// Rollback has the generation serve again that did before a generation, and returns what serves.
// The one that served is the previous one then. Where from does not serve any more it does nothing,
// so it may be called again after an error.
//
// Errors: [ErrNoPrevious], [ErrChanged], those of [Open].
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

// Drop abandons a generation: its consumers stop within [Config].Refresh and what they take to
// close, and then its groups are removed. It waits for that, as long as ctx lasts, so give it a
// deadline, and may be called again: a member that crashed is in the way for good if it was the
// last one (ActiveError of package groups), unless removal has Force, and a process that could not
// read the item for longer than twice Refresh may have begun the group again. Queries that read the
// generation within [Config].MaxAge may be under way still; then its tables can be deleted, which
// is left to the caller.
//
// Errors: [ErrServing], [ErrNoGeneration] if there never was one of that number, [ErrChanged],
// those of [Open] and of groups.Groups.Remove; when ctx ends while members are in the way, its
// error with a groups.ActiveError.
func (m *Model) Drop(ctx context.Context, g Generation, removal groups.Removal) error {
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
	select { // until everybody has seen it
	case <-ctx.Done():
		return fmt.Errorf("drop generation %s: %w", g, ctx.Err())
	case <-time.After(2 * m.config.Refresh):
	}
	topics, err := m.groups.Topics(ctx, g.Group()) // also those that its consumers have given up since
	if err != nil {
		return fmt.Errorf("drop generation %s: %w", g, err)
	}
	topics = append(topics, m.config.Topics...)
	slices.Sort(topics)
	for _, topic := range slices.Compact(topics) {
		if err := m.removeGroup(ctx, g, topic, removal); err != nil {
			return fmt.Errorf("drop generation %s: %w", g, err)
		}
	}
	return nil
}

// removeGroup waits until the members have left.
func (m *Model) removeGroup(ctx context.Context, g Generation, topic string, removal groups.Removal) error {
	again := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(50*time.Millisecond), backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0),
	)
	var active error
	err := backoff.Retry(func() error {
		err := m.groups.Remove(ctx, g.Group(), topic, removal)
		var members *groups.ActiveError
		switch {
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
		err = fmt.Errorf("%w: %w", ctx.Err(), active) // whom it has waited for
	}
	return err
}
