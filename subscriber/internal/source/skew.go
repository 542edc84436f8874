package source

import (
	"errors"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// skew measures how far the times of events differ from the times at which they appear.
//
// late is the longest time for which a poll did not show an event although its date had passed. It
// consists of the delay of the index, the duration of commits, and the error of clocks that are
// behind. ahead is the longest time by which an event was dated after this process's time.
type skew struct {
	mu          sync.Mutex
	late, ahead time.Duration
	warned      time.Time
}

// warnEvery limits the warnings while the clock of a writer is wrong.
const warnEvery = time.Minute

func (k *skew) read() (late, ahead time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.late, k.ahead
}

// raise stores a measured value, and reports whether to log a warning.
func (k *skew) raise(most *time.Duration, d, limit time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	*most = max(*most, d)
	if d <= limit || time.Since(k.warned) < warnEvery {
		return false
	}
	k.warned = time.Now()
	return true
}

// endPoll is a poll that reached the end of the tail.
type endPoll struct {
	at time.Time
	to int64 // the time of the last event that it showed
}

// noteTimes measures the times of events that the live read has found. It measures nothing while it
// reads history.
func (s *Source) noteTimes(page storage.TailPage, now time.Time) {
	if len(s.polls) > 0 {
		last := s.polls[len(s.polls)-1]
		for _, records := range [][]*journal.Record{page.Records, page.Unread} {
			if n := len(records); n > 0 {
				s.noteLate(records[0], last.at) // the last poll did not show it
				s.noteAhead(records[n-1], now)
			}
		}
	}
	if page.More {
		s.polls = nil
		return
	}
	for len(s.polls) > 0 && now.Sub(s.polls[0].at) > 2*s.TrailingDelay {
		s.polls = s.polls[1:]
	}
	s.polls = append(s.polls, endPoll{now, s.live.OccurredAt})
}

// noteMissed records an event that only a trailing read found. The live read passed its time
// without it.
func (s *Source) noteMissed(r *journal.Record) {
	s.Counters.Late.Add(1)
	at := r.WrittenAt.UnixMilli()
	for _, end := range s.polls {
		if end.to > at {
			s.noteLate(r, end.at)
			return
		}
	}
}

func (s *Source) noteLate(r *journal.Record, missedAt time.Time) {
	late := missedAt.Sub(r.WrittenAt)
	if late > s.TrailingDelay/2 {
		s.NoteLag(r.Aggregate, r.Number)
	}
	if late > 0 && s.Counters.skew.raise(&s.Counters.skew.late, late, s.TrailingDelay/2) {
		s.Logger.Info("Events appear in the tail long after their time: is a clock behind? An event that is later than TrailingDelay waits "+
			"for a reconciliation", watermill.LogFields{
			"aggregate_id": printable.Text(r.Aggregate.Value), "number": r.Number, "late": late, "trailing_delay": s.TrailingDelay,
		})
	}
}

func (s *Source) noteAhead(r *journal.Record, now time.Time) {
	ahead := r.WrittenAt.Sub(now)
	if ahead > 0 && s.Counters.skew.raise(&s.Counters.skew.ahead, ahead, s.TrailingDelay/2) {
		s.Logger.Info("Events are dated ahead of this process's clock: is a clock wrong?", watermill.LogFields{
			"aggregate_id": printable.Text(r.Aggregate.Value), "number": r.Number, "ahead": ahead, "trailing_delay": s.TrailingDelay,
		})
	}
}

// rewind moves a cursor that is in the future back to the present. The clock of this process or of
// a former owner was far ahead and has moved it there. The cursor would hide all events until that
// time. The next reconciliation finds the events that it has hidden.
func (s *Source) rewind(now time.Time) {
	ahead := time.UnixMilli(s.live.OccurredAt).Sub(now)
	if ahead <= s.TrailingDelay {
		return
	}
	s.Logger.Error("The cursor of a shard is in the future and moves back to the present: was a clock ahead? The next reconciliation delivers events that it has hidden, "+
		"or the next event of their aggregate if the group has no reconciliations", errCursorAhead, watermill.LogFields{
		"shard": s.Key.Number, "ahead": ahead,
	})
	begin := now.Add(-s.TrailingDelay)
	s.setCursors(storage.CursorAt(begin))
	s.polls = nil
	s.Sequencer.Rewind(begin.UnixMilli())
}

var errCursorAhead = errors.New("cursor in the future")
