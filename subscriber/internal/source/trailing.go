package source

import (
	"context"
	"time"

	"github.com/millrace-dev/millrace/internal/storage"
)

// trailingRead reads a part of the tail again after a delay. The live read, or an earlier trailing
// read, has passed that part before. The tail index shows events out of order, mostly by less than
// a second, and a clock may be behind. So most late events are found by the first trailing read,
// and very late ones by the last. The part that the last one has passed is final.
type trailingRead struct {
	delay time.Duration
	at    storage.Cursor // the place up to which it has read
	next  time.Time      // the time of the next read
}

// firstTrailingDelay is the delay of the first trailing read. The second one has
// Config.TrailingDelay.
const firstTrailingDelay = 500 * time.Millisecond

func newTrailingReads(last time.Duration) []trailingRead {
	if last < 2*firstTrailingDelay {
		return []trailingRead{{delay: last}}
	}
	return []trailingRead{{delay: firstTrailingDelay}, {delay: last}}
}

// trail returns the place up to which the tail is final.
func (s *Source) trail() storage.Cursor { return s.trailing[len(s.trailing)-1].at }

// setCursors moves all reads to one place.
func (s *Source) setCursors(at storage.Cursor) {
	s.live = at
	for i := range s.trailing {
		s.trailing[i].at = at
	}
}

// advance records a page of the live read, which was requested after now. A trailing read that has
// read everything before the page moves along, up to its horizon. Events with earlier dates were
// older than the delay when the page was read, so they are not read again: history is read once. If
// the unit of times is longer than milliseconds, events in the unit of the horizon are read again.
func (s *Source) advance(page storage.TailPage, now time.Time) {
	for i := range s.trailing {
		r := &s.trailing[i]
		if r.at != s.live {
			continue
		}
		horizon := now.Add(-r.delay)
		if page.Next.OccurredAt < horizon.UnixMilli() {
			r.at = page.Next
			continue
		}
		if horizon.UnixMilli() > r.at.OccurredAt {
			r.at = storage.CursorAt(horizon)
			// The live read has just read the part before it.
			r.next = time.Now().Add(r.delay / 2)
		}
	}
	s.live = page.Next
}

// readTrailing reads one page of each trailing read, or all pages that are due. It runs after each
// page of the live read, so a backlog does not postpone it.
func (s *Source) readTrailing(ctx context.Context, now time.Time, all bool) error {
	passed := s.live
	for i := range s.trailing {
		r := &s.trailing[i]
		for more := true; more; {
			var err error
			if more, err = s.readAgain(ctx, r, passed, now); err != nil {
				return err
			}
			more = more && all
		}
		passed = r.at
	}
	return nil
}

// readAgain reads a page of a part that another read has passed, and reports whether there are more
// pages.
func (s *Source) readAgain(ctx context.Context, r *trailingRead, passed storage.Cursor, now time.Time) (more bool, err error) {
	if r.at == passed || time.Now().Before(r.next) {
		return false, nil
	}
	until := min(now.Add(-r.delay).UnixMilli(), passed.OccurredAt)
	if until >= r.at.OccurredAt {
		page, err := s.page(ctx, storage.TailQuery{
			AggregateType: s.Key.Topic, Shard: s.Key.Number, After: r.at, Until: time.UnixMilli(until), NumbersOnly: true,
		})
		if err != nil {
			r.next = time.Now().Add(r.delay / 2)
			return false, err
		}
		switch {
		case page.More:
			r.at = page.Next
		case until == passed.OccurredAt:
			r.at = passed
		default:
			r.at = storage.Cursor{OccurredAt: until + 1}
		}
		for _, record := range s.Sequencer.ObserveTail(page.Records, s.trail().OccurredAt) {
			s.noteMissed(record)
		}
		if page.More {
			return true, nil
		}
	}
	r.next = time.Now().Add(r.delay / 2)
	return false, nil
}
