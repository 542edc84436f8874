package tail

import (
	"context"
	"errors"
	"time"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
)

// maxPause bounds the pause after failed reads, unless Config.Interval is longer.
const maxPause = 30 * time.Second

// Run reads a topic and passes its events to each, in batches that are sorted by Record.WrittenAt.
// The payloads are in stored form; journal.Journal.Decode decodes them. If each returns an error,
// Run ends and returns it. Without [Config].Follow, Run returns nil at the end of the topic.
//
// Errors: [*ConfigError], *aggregate.InvalidIDError for the topic, journal.ErrTableMissing,
// journal.ErrAccess, and the error of ctx. Without Follow, Run also returns journal.ErrThrottled
// and journal.ErrUnavailable. With Follow, it passes these to [Config].OnError and tries again.
func Run(ctx context.Context, c Config, each func([]*journal.Record) error) error {
	if err := c.validate(); err != nil {
		return err
	}
	c.setDefaults()
	t := newTopic(c, each)
	if !c.Follow {
		return t.live(ctx, time.Time{})
	}
	return t.follow(ctx)
}

// follow polls until the context ends or an error is final.
func (t *topic) follow(ctx context.Context) error {
	pause := t.config.Interval
	timer := time.NewTimer(retry.Soon)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		err := t.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case t.stopped != nil:
			return t.stopped
		case errors.Is(err, journal.ErrTableMissing), errors.Is(err, journal.ErrAccess):
			return err
		case err != nil:
			t.config.OnError(err)
			timer.Reset(pause)
			pause = min(2*pause, max(maxPause, t.config.Interval))
		default:
			pause = t.config.Interval
			timer.Reset(pause)
		}
	}
}
