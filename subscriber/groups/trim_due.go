package groups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

const (
	// mostDue is about the number of tail entries that a pass of TrimDue visits, divided among the
	// shards, and leastDue the number for a shard.
	mostDue, leastDue = 1000, 50
	// duePage is the number of tail entries that are read at once.
	duePage = 250
	// dueOverlap is visited again by the next pass: the tail is eventually consistent, and the
	// clocks of writers differ.
	dueOverlap = time.Minute
)

// dueInterval returns the time from one pass of TrimDue to the next.
func dueInterval(keep time.Duration) time.Duration {
	return max(minKeep, min(keep/24, time.Hour))
}

// TrimDue does what [Groups.Trim] does, but reads only the messages that have become older than
// TrimOptions.Keep since the last pass, of any process. Call it as often as you like: a stored row
// for each topic decides when a pass is due, and only one caller makes it. A pass is due each hour,
// or after a twenty-fourth of Keep if that is shorter.
//
// A pass visits up to about 1,000 messages, or 50 of each shard if there are more than 20 shards.
// If more are left, Trimmed.More is set and the next pass is due at once. Messages that a group has
// not handled stay. A pass visits them again after a seventh of Keep. TrimDue finds messages by the
// time at which they were written. So messages that an archive has brought need Trim, and so do
// those of a stream that was longer blocked for other reasons.
//
// It refuses TrimOptions.DryRun, because it stores how far it has come. It removes what interrupted
// passes have left, without ResumeInterrupted.
//
// A call that makes no pass costs half a read unit. A pass also costs two write units, half a read
// unit for each 4 KB of the tail and at least for each shard, a read unit for the list of groups,
// and one for each group. Each stream that it visits costs two to five read units for its head, and
// what it costs in Trim.
//
// Errors: those of Trim. After an error the next pass begins where this one began.
func (g *Groups) TrimDue(ctx context.Context, topic string, options TrimOptions) (Trimmed, error) {
	options.ResumeInterrupted = false
	d := due{trim: trim{groups: g, topic: topic, options: options, sum: Trimmed{Topic: topic, HeldBy: map[string]int{}}}}
	err := d.options.validate()
	switch {
	case err == nil && options.DryRun:
		err = errDryRun
	case err == nil:
		err = d.run(ctx)
	}
	if errors.Is(err, checkpoint.ErrFenced) {
		err = nil // another process makes the pass
	}
	if err != nil {
		return d.sum, fmt.Errorf("trim topic %q: %w", topic, err)
	}
	return d.sum, nil
}

var errDryRun = errors.New("TrimDue has no dry run, because it stores how far it has come: use Trim for that")

// due is a pass of TrimDue.
type due struct {
	trim
	from time.Time // the time from which messages are visited
	held time.Time // of the earliest message that a later pass visits again
}

func (d *due) run(ctx context.Context) error {
	store, now := d.groups.store, d.groups.journal.Config.Now().Truncate(time.Millisecond)
	seen, err := store.ReadRetention(ctx, d.topic)
	if err != nil {
		return err
	}
	interval := dueInterval(d.options.Keep)
	if age := now.Sub(seen.Pass); !seen.Pass.IsZero() && age.Abs() < interval {
		return nil
	}
	if err := store.ClaimRetention(ctx, d.topic, seen, now); err != nil {
		return err
	}
	if _, err := d.consumers(ctx); err != nil {
		return err
	}
	d.from, d.until = seen.UpTo, now.Add(-d.options.Keep)
	again := !seen.Held.IsZero() && !now.Before(seen.Again)
	if again && seen.Held.Before(d.from) {
		d.from = seen.Held
	}
	next := checkpoint.Retention{Pass: now, UpTo: d.until.Add(-dueOverlap)}
	for number := range d.groups.journal.Config.Shards {
		upTo, err := d.shard(ctx, number)
		if err != nil {
			return err
		}
		if !upTo.IsZero() {
			next.UpTo, d.sum.More = earlier(next.UpTo, upTo), true
		}
	}
	if d.sum.More {
		next.Pass = now.Add(-interval)
	}
	next.Held, next.Again = d.held, now.Add(d.options.Keep/7)
	if !again && !seen.Held.IsZero() {
		next.Held, next.Again = earlier(seen.Held, next.Held), seen.Again
	}
	return store.SaveRetention(ctx, d.topic, now, next)
}

// earlier returns the earlier one of two times. A zero time counts as none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// shard visits the streams of a shard whose messages have become old. It returns a time if it has
// visited only those before that time.
func (d *due) shard(ctx context.Context, number int) (upTo time.Time, err error) {
	q := storage.TailQuery{AggregateType: d.topic, Shard: number, NumbersOnly: true, Until: d.until}
	if !d.from.IsZero() {
		q.After = storage.CursorAt(d.from)
	}
	left := max(mostDue/d.groups.journal.Config.Shards, leastDue)
	for {
		if q.Limit = duePage; left > 0 {
			q.Limit = min(left, duePage)
		}
		var page storage.TailPage
		err := patiently(ctx, func() (err error) {
			page, err = d.groups.journal.Raw().TailShard(ctx, q)
			return err
		})
		if err != nil {
			return upTo, err
		}
		for _, corrupt := range page.Corrupt {
			d.options.Corrupt(corrupt)
		}
		if err := d.visit(ctx, number, page.Records); err != nil {
			return upTo, err
		}
		left -= len(page.Records) + len(page.Corrupt)
		if q.After = page.Next; !page.More {
			return time.Time{}, nil
		}
		// A pass ends between two milliseconds, since the next one begins with all messages of one.
		if upTo = time.UnixMilli(q.After.OccurredAt); left <= 0 && upTo.After(d.from) {
			return upTo, nil
		}
	}
}

// visit trims the streams of records of the tail.
func (d *due) visit(ctx context.Context, shard int, records []*journal.Record) error {
	first := map[aggregate.ID]*journal.Record{}
	var ids []aggregate.ID
	for _, r := range records {
		if before := first[r.Aggregate]; before == nil {
			first[r.Aggregate], ids = r, append(ids, r.Aggregate)
		} else if r.Number < before.Number {
			first[r.Aggregate] = r
		}
	}
	heads := make([]journal.Head, len(ids))
	err := inParallel(readers, len(ids), func(i int) error {
		return d.unlessLeftAlone(patiently(ctx, func() (err error) {
			heads[i], err = d.groups.journal.Raw().Head(ctx, ids[i])
			return err
		}))
	})
	if err != nil {
		return err
	}
	var some, interrupted []journal.Head
	for i, head := range heads {
		if head.Version == 0 {
			continue // it was left alone
		}
		some = append(some, head)
		if first[ids[i]].Number < head.TruncatedBefore {
			interrupted = append(interrupted, head)
		}
	}
	d.sum.Aggregates += len(some)
	if err := d.resumeRemovals(ctx, interrupted); err != nil {
		return err
	}
	queues, err := d.page(ctx, shard, some)
	for _, q := range queues {
		if q.stays {
			d.held = earlier(d.held, first[q.head.Aggregate].WrittenAt)
		}
	}
	d.report()
	return err
}
