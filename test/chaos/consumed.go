//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
)

// consumed waits until all events in the journal are consumed, or there is no progress any more.
func (w *world) consumed(ctx context.Context) error {
	var failed error
	err := w.meanwhile(ctx, func(ctx context.Context) { failed = w.await(ctx) })
	return errors.Join(err, failed)
}

func (w *world) await(ctx context.Context) error {
	written, _, err := w.writers.history(ctx)
	if err != nil {
		return err
	}
	w.written = written
	moved, finished := time.Now(), 0
	for time.Since(moved) < w.Patience {
		complete, now, err := w.progress(ctx)
		if err != nil || complete {
			return err
		}
		if now != finished {
			finished, moved = now, time.Now()
		}
		if !retry.Sleep(ctx, 250*time.Millisecond) {
			return ctx.Err()
		}
	}
	w.stuck = true
	_, _ = fmt.Fprintf(w.Notes, "chaos: no progress for %v\n", w.Patience)
	return nil
}

// progress reports whether all events are consumed, and how many events were acked or committed so
// far.
func (w *world) progress(ctx context.Context) (complete bool, finished int, err error) {
	complete = true
	for name, log := range w.logs {
		if err := log.read(); err != nil {
			return false, 0, err
		}
		if name == plain {
			acked := placesOf(log.entries, ack)
			finished += len(acked)
			complete = complete && hasAll(acked, w.written)
			continue
		}
		finished += len(placesOf(log.entries, done))
		model, err := readEffects(ctx, w.client)
		if err != nil {
			return false, 0, err
		}
		complete = complete && model.has(w.written)
	}
	return complete, finished, nil
}
