package subscriber

import (
	"context"
	"time"

	"github.com/millrace-dev/millrace/internal/eventlog"
)

// trailingRead reads again, after a delay, what the read before it has passed: the live read, or an
// earlier trailing read. The tail index shows events out of order, most by less than a second, and
// a clock may be behind. So what is late comes with the first trailing read, as a rule, and what is
// very late with the last one. What that has passed is final.
type trailingRead struct {
	delay time.Duration
	at    eventlog.Cursor // it has read up to here
	next  time.Time       // not again before
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

// trail is the place up to which the tail is final.
func (s *source) trail() eventlog.Cursor { return s.trailing[len(s.trailing)-1].at }

// setCursors has all reads go on from one place.
func (s *source) setCursors(at eventlog.Cursor) {
	s.live = at
	for i := range s.trailing {
		s.trailing[i].at = at
	}
}

// advance notes a page of the live read, which was asked for after now. A trailing read that has
// read all that was before the page goes along up to its horizon. What is dated before that was
// older than the delay when the page was read, so it is not read again: history is read once. In a
// unit longer than milliseconds, events of the horizon's own unit are read again.
func (s *source) advance(page eventlog.TailPage, now time.Time) {
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
			r.at = eventlog.CursorAt(horizon)
			r.next = time.Now().Add(r.delay / 2) // up to there the live read has just read
		}
	}
	s.live = page.Next
}

// readTrailing does a page of each trailing read, or all that is due. It follows each page of the
// live read, so that a backlog does not postpone it.
func (s *source) readTrailing(ctx context.Context, now time.Time, all bool) error {
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

// readAgain reads a page of what others have passed, and reports whether there is more.
func (s *source) readAgain(ctx context.Context, r *trailingRead, passed eventlog.Cursor, now time.Time) (more bool, err error) {
	if r.at == passed || time.Now().Before(r.next) {
		return false, nil
	}
	until := min(now.Add(-r.delay).UnixMilli(), passed.OccurredAt)
	if until >= r.at.OccurredAt {
		page, err := s.page(ctx, eventlog.TailQuery{
			AggregateType: s.topic, Shard: s.number, After: r.at, Until: time.UnixMilli(until), NumbersOnly: true,
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
			r.at = eventlog.Cursor{OccurredAt: until + 1}
		}
		for _, record := range s.sequencer.observe(page.Records, byTrailing, s.trail().OccurredAt) {
			s.noteMissed(record)
		}
		if page.More {
			return true, nil
		}
	}
	r.next = time.Now().Add(r.delay / 2)
	return false, nil
}
