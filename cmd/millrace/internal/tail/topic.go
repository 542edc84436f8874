package tail

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// concurrency is how many shards are read side by side.
const concurrency = 8

// topic is how far the passes have come.
type topic struct {
	config Config
	shards []*shard
	// settled is the time up to which the trailing pass is through; what was given from then on is
	// in given.
	settled   time.Time
	given     map[place]time.Time
	nextTrail time.Time
}

// place is where an event is, whatever the index says of it.
type place struct {
	aggregate aggregate.ID
	number    uint64
}

// shard is a logical shard and what is read of it and not yet given.
type shard struct {
	number int
	cursor eventlog.Cursor
	ahead  []*journal.Record
	more   bool
}

func newTopic(c Config) *topic {
	t := &topic{config: c, given: map[place]time.Time{}, settled: c.Now().Add(-c.TrailingDelay)}
	if c.Since.After(t.settled) {
		t.settled = c.Since
	}
	t.settled = t.settled.Truncate(time.Millisecond)
	var from eventlog.Cursor
	if !c.Since.IsZero() {
		from = eventlog.CursorAt(c.Since)
	}
	for n := range c.Journal.Shards() {
		t.shards = append(t.shards, &shard{number: n, cursor: from})
	}
	return t
}

// look is a live pass, and a trailing pass where one is due.
func (t *topic) look(ctx context.Context, each func([]*journal.Record) error) error {
	now := t.config.Now()
	// A time far ahead must not drag the cursor past all that is to come.
	if err := t.live(ctx, now.Add(t.config.TrailingDelay), each); err != nil {
		return err
	}
	if now.Before(t.nextTrail) {
		return nil
	}
	if err := t.trail(ctx, now.Add(-t.config.TrailingDelay).Truncate(time.Millisecond), each); err != nil {
		return err
	}
	t.nextTrail = now.Add(t.config.TrailingDelay / 2)
	return nil
}

// live reads on to the end of all shards; no further than until, if that is not zero. What is read
// is given up to the time that all shards have reached, so that batches are in order too.
func (t *topic) live(ctx context.Context, until time.Time, each func([]*journal.Record) error) error {
	for _, s := range t.shards {
		s.more = true
	}
	for {
		corrupt, err := t.fill(ctx, t.shards, until)
		for _, item := range corrupt {
			t.config.Trouble(item)
		}
		if err != nil {
			return err
		}
		batch, more := t.merge()
		if err := t.give(batch, each); err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
}

// fill reads a page of each shard that has nothing ahead and may have more.
func (t *topic) fill(ctx context.Context, shards []*shard, until time.Time) (corrupt []*journal.CorruptItemError, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrency)
	found := make([][]*journal.CorruptItemError, len(shards))
	for i, s := range shards {
		if !s.more || len(s.ahead) > 0 {
			continue
		}
		group.Go(func() error {
			for s.more && len(s.ahead) == 0 { // a page may have nothing but what cannot be read
				page, err := eventlog.Of(t.config.Journal).TailShard(ctx, eventlog.TailQuery{
					AggregateType: t.config.Topic, Shard: s.number, After: s.cursor, Until: until,
				})
				if err != nil {
					return err
				}
				s.ahead, s.more, s.cursor = page.Records, page.More, page.Next
				found[i] = append(found[i], page.Corrupt...)
			}
			return nil
		})
	}
	err = group.Wait()
	return slices.Concat(found...), err
}

// merge takes from all shards what comes before anything that is not yet read.
func (t *topic) merge() (batch []*journal.Record, more bool) {
	var limit time.Time
	for _, s := range t.shards {
		if !s.more {
			continue
		}
		if last := s.ahead[len(s.ahead)-1].WrittenAt; !more || last.Before(limit) {
			limit = last
		}
		more = true
	}
	for _, s := range t.shards {
		n := len(s.ahead)
		if more {
			n, _ = slices.BinarySearchFunc(s.ahead, limit, func(r *journal.Record, limit time.Time) int {
				if r.WrittenAt.After(limit) {
					return 1
				}
				return -1
			})
		}
		batch = append(batch, s.ahead[:n]...)
		s.ahead = s.ahead[n:]
	}
	return batch, more
}

// give leaves out what was given before.
func (t *topic) give(batch []*journal.Record, each func([]*journal.Record) error) error {
	batch = slices.DeleteFunc(batch, func(r *journal.Record) bool {
		_, before := t.given[placeOf(r)]
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
			if !r.WrittenAt.Before(t.settled) {
				t.given[placeOf(r)] = r.WrittenAt
			}
		}
	}
	return each(batch)
}

func placeOf(r *journal.Record) place { return place{r.Aggregate, r.Number} }

// trail reads again what lies between the time that is settled and until, for the last time.
func (t *topic) trail(ctx context.Context, until time.Time, each func([]*journal.Record) error) error {
	if until.Before(t.settled) {
		return nil
	}
	shards := make([]*shard, len(t.shards))
	for i := range shards {
		shards[i] = &shard{number: i, cursor: eventlog.CursorAt(t.settled), more: true}
	}
	for len(shards) > 0 {
		if _, err := t.fill(ctx, shards, until); err != nil { // the live pass has told what is corrupt
			return err
		}
		var late []*journal.Record
		for _, s := range shards {
			late = append(late, s.ahead...)
			s.ahead = nil
		}
		if err := t.give(late, each); err != nil {
			return err
		}
		shards = slices.DeleteFunc(shards, func(s *shard) bool { return !s.more })
	}
	t.settled = until.Add(time.Millisecond)
	for p, at := range t.given {
		if at.Before(t.settled) {
			delete(t.given, p)
		}
	}
	return nil
}
