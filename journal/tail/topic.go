package tail

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// shardsAtOnce is the number of shards that are read at the same time.
const shardsAtOnce = 8

// topic is the state of the live reads and the trailing reads.
//
// If a live read finds an event less than Config.TrailingDelay after its time, earlier events may
// still be missing from the index. So a trailing read repeats the times from trailFrom up to
// TrailingDelay ago, and skips the events in delivered. Times that a live read covers later than
// that need no trailing read.
type topic struct {
	config  Config
	each    func([]*journal.Record) error
	stopped error // the error that each returned

	shards    []*shard
	trailFrom time.Time
	nextTrail time.Time
	// delivered holds the events from trailFrom that were passed on. It also holds the events that
	// the last trailing read found, because the next live read may find them too.
	delivered map[place]time.Time
}

// place identifies an event.
type place struct {
	aggregate aggregate.ID
	number    uint64
}

// shard is a logical shard, with its records that were read but not delivered yet.
type shard struct {
	number   int
	cursor   storage.Cursor
	buffered []*journal.Record
	more     bool
	until    time.Time // the latest time that live reads have covered; zero before the first
}

func newTopic(c Config, each func([]*journal.Record) error) *topic {
	t := &topic{config: c, each: each, delivered: map[place]time.Time{}, trailFrom: c.Since.Truncate(time.Millisecond)}
	var from storage.Cursor
	if !c.Since.IsZero() {
		from = storage.CursorAt(c.Since)
	}
	for n := range c.Journal.Shards() {
		t.shards = append(t.shards, &shard{number: n, cursor: from})
	}
	return t
}

// poll makes a live read, and a trailing read if one is due.
func (t *topic) poll(ctx context.Context) error {
	now := t.config.Now()
	before := now.Add(-t.config.TrailingDelay).Truncate(time.Millisecond)
	// At the start, after an outage, or after a long backlog.
	if covered := t.covered(); covered.Before(before) {
		if err := t.finish(ctx, covered); err != nil {
			return err
		}
		// The next live read covers the times before this so late that it also sees delayed events.
		// So trailing reads need not cover those times.
		t.advance(before)
		t.nextTrail = now.Add(t.config.TrailingDelay / 2)
	}
	// An event with a time far in the future must not move the cursor past later events.
	if err := t.live(ctx, now.Add(t.config.TrailingDelay)); err != nil {
		return err
	}
	if now.Before(t.nextTrail) {
		return nil
	}
	if err := t.trail(ctx, before); err != nil {
		return err
	}
	t.nextTrail = now.Add(t.config.TrailingDelay / 2)
	return nil
}

// covered returns the latest time that live reads have covered in any shard.
func (t *topic) covered() (latest time.Time) {
	for _, s := range t.shards {
		if s.until.After(latest) {
			latest = s.until
		}
	}
	return latest
}

// finish completes the reads of the times that live reads have covered.
func (t *topic) finish(ctx context.Context, covered time.Time) error {
	if covered.IsZero() {
		return nil
	}
	if err := t.live(ctx, covered); err != nil { // it may have failed in some shards
		return err
	}
	return t.trail(ctx, covered)
}

// advance moves trailFrom forward.
func (t *topic) advance(to time.Time) {
	if to.After(t.trailFrom) {
		t.trailFrom = to
	}
}

// live reads to the end of all shards, but not beyond until unless that is zero. It delivers
// records up to the time that all shards have reached, so that the batches are in order too.
func (t *topic) live(ctx context.Context, until time.Time) error {
	for _, s := range t.shards {
		s.more = true
	}
	for {
		corrupt, err := t.readPages(ctx, t.shards, until)
		for _, item := range corrupt {
			t.config.OnError(item)
		}
		if err != nil {
			return err
		}
		batch, more := t.merge()
		if err := t.deliver(batch); err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
}

// readPages reads a page of each shard that has no buffered records and may have more.
func (t *topic) readPages(ctx context.Context, shards []*shard, until time.Time) (corrupt []*journal.CorruptItemError, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(shardsAtOnce)
	found := make([][]*journal.CorruptItemError, len(shards))
	for i, s := range shards {
		if !s.more || len(s.buffered) > 0 {
			continue
		}
		group.Go(func() error {
			// A page may have only items that cannot be decoded.
			for s.more && len(s.buffered) == 0 {
				page, err := t.config.Journal.Internal().TailShard(ctx, storage.TailQuery{
					AggregateType: t.config.Topic, Shard: s.number, After: s.cursor, Until: until,
				})
				if err != nil {
					return err
				}
				s.buffered, s.more, s.cursor = page.Records, page.More, page.Next
				if until.After(s.until) {
					s.until = until
				}
				found[i] = append(found[i], page.Corrupt...)
			}
			return nil
		})
	}
	err = group.Wait()
	return slices.Concat(found...), err
}

// merge takes the records of all shards that are older than every unread one.
func (t *topic) merge() (batch []*journal.Record, more bool) {
	var limit time.Time
	for _, s := range t.shards {
		if !s.more {
			continue
		}
		if last := s.buffered[len(s.buffered)-1].WrittenAt; !more || last.Before(limit) {
			limit = last
		}
		more = true
	}
	for _, s := range t.shards {
		n := len(s.buffered)
		if more {
			n, _ = slices.BinarySearchFunc(s.buffered, limit, func(r *journal.Record, limit time.Time) int {
				if r.WrittenAt.After(limit) {
					return 1
				}
				return -1
			})
		}
		batch = append(batch, s.buffered[:n]...)
		s.buffered = s.buffered[n:]
	}
	return batch, more
}

// deliver passes a batch on, without the events that were delivered earlier.
func (t *topic) deliver(batch []*journal.Record) error {
	batch = slices.DeleteFunc(batch, func(r *journal.Record) bool {
		_, before := t.delivered[placeOf(r)]
		return before
	})
	if len(batch) == 0 {
		return nil
	}
	slices.SortFunc(batch, func(a, b *journal.Record) int {
		return cmp.Or(a.WrittenAt.Compare(b.WrittenAt), strings.Compare(a.Aggregate.Value, b.Aggregate.Value), cmp.Compare(a.Number, b.Number))
	})
	if t.config.Follow {
		for _, r := range batch {
			if !r.WrittenAt.Before(t.trailFrom) {
				t.delivered[placeOf(r)] = r.WrittenAt
			}
		}
	}
	t.stopped = t.each(batch)
	return t.stopped
}

func placeOf(r *journal.Record) place { return place{r.Aggregate, r.Number} }

// trail reads the times from trailFrom up to until for the last time.
func (t *topic) trail(ctx context.Context, until time.Time) error {
	if until.Before(t.trailFrom) {
		return nil
	}
	t.prune()
	shards := make([]*shard, len(t.shards))
	for i := range shards {
		shards[i] = &shard{number: i, cursor: storage.CursorAt(t.trailFrom), more: true}
	}
	for len(shards) > 0 {
		// The live read has reported corrupt items.
		if _, err := t.readPages(ctx, shards, until); err != nil {
			return err
		}
		var late []*journal.Record
		for _, s := range shards {
			late = append(late, s.buffered...)
			s.buffered = nil
		}
		if err := t.deliver(late); err != nil {
			return err
		}
		shards = slices.DeleteFunc(shards, func(s *shard) bool { return !s.more })
	}
	t.advance(until.Add(time.Millisecond))
	return nil
}

// prune removes the events before trailFrom. A live read came after the trailing read that found
// them, so no read finds them again.
func (t *topic) prune() {
	for p, at := range t.delivered {
		if at.Before(t.trailFrom) {
			delete(t.delivered, p)
		}
	}
}
