package tail

import (
	"context"
	"errors"
	"time"

	"github.com/millrace-dev/millrace/journal"
)

// Config says what to show. Journal and Topic are required.
type Config struct {
	Journal *journal.Journal
	// Topic is an aggregate type.
	Topic string
	// Since is the time of the earliest event. The zero value is the beginning.
	Since time.Time
	// Follow goes on when the end is reached, until the context ends.
	Follow bool
	// Interval is the pause between two looks for new events. A look costs half a read unit for
	// each shard, and half of one for each 4 KB of events. Default: 1 second.
	Interval time.Duration
	// TrailingDelay is after what time the trailing pass reads the same again. Default: 10 seconds.
	TrailingDelay time.Duration
	// Trouble is told of items that are no events, and with Follow of reads that failed and will be
	// tried again.
	Trouble func(error)
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

func (c *Config) setDefaults() {
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.TrailingDelay == 0 {
		c.TrailingDelay = 10 * time.Second
	}
	if c.Trouble == nil {
		c.Trouble = func(error) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}

// Run returns the events in batches, sorted by time, with payloads as they are stored. An error of
// each ends it. It keeps at most one page, 1 MB, of each shard, and the places of the events of the
// last seconds.
//
// Errors: those of journal.Journal.Tail. With Follow only those that will not pass end it:
// ErrTableMissing, ErrAccess, the context's.
func Run(ctx context.Context, c Config, each func([]*journal.Record) error) error {
	c.setDefaults()
	t := newTopic(c)
	if !c.Follow {
		return t.live(ctx, time.Time{}, each)
	}
	var stopped error // what each wants
	deliver := func(batch []*journal.Record) error {
		stopped = each(batch)
		return stopped
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		err := t.look(ctx, deliver)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case stopped != nil:
			return stopped
		case errors.Is(err, journal.ErrTableMissing), errors.Is(err, journal.ErrAccess):
			return err
		case err != nil:
			c.Trouble(err)
		}
		timer.Reset(c.Interval)
	}
}
