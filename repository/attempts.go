package repository

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
)

// untilNoConflict makes attempts, with pauses, until one returns no conflict or their number
// reaches most. Each attempt receives the conflict of the one before, and whether it is the last.
func untilNoConflict(
	ctx context.Context, target any, most int, attempt func(last *journal.ConflictError, final bool) (*journal.ConflictError, error),
) error {
	var conflict *journal.ConflictError
	for attempts := 1; ; attempts++ {
		var err error
		begun := time.Now()
		if conflict, err = attempt(conflict, attempts >= most); conflict == nil {
			return err
		}
		if attempts >= most {
			return &AttemptsError{ID: conflict.ID, Attempts: attempts, Err: conflict}
		}
		if !retry.Sleep(ctx, pauseAfter(conflict, time.Since(begun), attempts)) {
			return fmt.Errorf("execute on %s, nothing written: %w, after attempt %d: %w", target, ctx.Err(), attempts, conflict)
		}
	}
}

// mostPause is the longest pause between two attempts, without jitter.
const mostPause = 100 * time.Millisecond

// pauseAfter returns the pause after a conflict. It is as long as the attempt took, for each event
// that other writers have written meanwhile, and doubles with each attempt. So writers that compete
// find a rate at which most attempts succeed.
func pauseAfter(conflict *journal.ConflictError, took time.Duration, attempts int) time.Duration {
	rivals := uint64(1)
	if conflict.Actual > conflict.Expected {
		rivals = min(conflict.Actual-conflict.Expected, mostRivals)
	}
	first := min(max(took, leastPause)*time.Duration(rivals), mostPause) //nolint:gosec // rivals are few
	return retry.Jitter(retry.Backoff(first, mostPause, attempts))
}

const (
	leastPause = 2 * time.Millisecond
	mostRivals = 8
)
