package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// WaitEnded waits until a process has ended ([Definition.EndsWhen]), and returns it. It also waits
// for a process that has not begun, since its first event may arrive later. So pass a context with
// a deadline. Any program that has the definition can call it, even if it does not run the manager.
//
// It loads the process at once, again after 10 ms, and then at increasing intervals of up to one
// second. Each load costs as much as the load of an aggregate: one read unit for each 4 KB of
// state. A throttled or unreachable database does not end the wait. A load is cancelled after ten
// seconds.
//
// Errors: [ErrNotEnded] with the context's error, [*ConfigError] if the definition has no EndsWhen,
// and those of repository.Repository.Load, such as [*journal.DeletedError].
func (m *Manager[S]) WaitEnded(ctx context.Context, id string) (repository.Aggregate[S], error) {
	if m.definition.ended == nil {
		return repository.Aggregate[S]{}, &ConfigError{"definition", fmt.Sprintf("of %s has no EndsWhen: none of its processes ever ends", m.definition.Type())}
	}
	pauses := retry.Pauses(10*time.Millisecond, time.Second, 0)
	for {
		process, err := m.processes.Load(ctx, id)
		switch {
		case err == nil && m.definition.Ended(process.State):
			return process, nil
		case err == nil, errors.Is(err, journal.ErrNotFound), errors.Is(err, journal.ErrThrottled),
			errors.Is(err, journal.ErrContended), errors.Is(err, journal.ErrUnavailable), ctx.Err() != nil:
		default:
			return process, fmt.Errorf("wait for the end of process %s %q: %w", m.definition.Type(), id, err)
		}
		if !retry.Sleep(ctx, pauses.NextBackOff()) {
			return process, fmt.Errorf("wait for the end of process %s %q: %w: %w", m.definition.Type(), id, ErrNotEnded, ctx.Err())
		}
	}
}
