package subscriber

import (
	"errors"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/eventlog"
	"github.com/millrace-dev/millrace/journal"
)

// skew measures how far the times of events are off. Late: for how long at least an event that a
// look found had been dated in the past and not shown; that is the delay of the index, the duration
// of commits, and clocks that are behind. Ahead: how far ahead of this process's clock an event is
// dated.
type skew struct {
	mu          sync.Mutex
	late, ahead time.Duration
	warned      time.Time
}

// warnEvery keeps the log readable while the clock of a writer is wrong.
const warnEvery = time.Minute

func (k *skew) read() (late, ahead time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.late, k.ahead
}

// raise notes a measure and reports whether it is time to warn of it.
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

// looked is a look that came to the end of the tail.
type endPoll struct {
	at time.Time
	to int64 // the time of the last event that it has shown
}

// noteTimes measures the times of what the live read has found. While it reads history there is
// nothing to measure.
func (s *source) noteTimes(page eventlog.TailPage, now time.Time) {
	if n := len(page.Records); n > 0 && len(s.polls) > 0 {
		last := s.polls[len(s.polls)-1]
		s.noteLate(page.Records[0], last.at) // the last look did not show it
		s.noteAhead(page.Records[n-1], now)
	}
	if page.More {
		s.polls = nil
		return
	}
	for len(s.polls) > 0 && now.Sub(s.polls[0].at) > 2*s.config.TrailingDelay {
		s.polls = s.polls[1:]
	}
	s.polls = append(s.polls, endPoll{now, s.live.OccurredAt})
}

// noteMissed records an event that only a trailing read found. The live read that passed its time
// did not show it.
func (s *source) noteMissed(r *journal.Record) {
	s.stats.late.Add(1)
	at := r.WrittenAt.UnixMilli()
	for _, end := range s.polls {
		if end.to > at {
			s.noteLate(r, end.at)
			return
		}
	}
}

func (s *source) noteLate(r *journal.Record, missedAt time.Time) {
	late := missedAt.Sub(r.WrittenAt)
	if late > 0 && s.stats.skew.raise(&s.stats.skew.late, late, s.config.TrailingDelay/2) {
		s.logger.Info("Events show in the tail long after their time: is a clock behind? What comes later than TrailingDelay waits "+
			"for the sweep", watermill.LogFields{
			"aggregate_id": r.Aggregate.Value, "number": r.Number, "late": late, "trailing_delay": s.config.TrailingDelay,
		})
	}
}

func (s *source) noteAhead(r *journal.Record, now time.Time) {
	ahead := r.WrittenAt.Sub(now)
	if ahead > 0 && s.stats.skew.raise(&s.stats.skew.ahead, ahead, s.config.TrailingDelay/2) {
		s.logger.Info("Events are dated ahead of this process's clock: is a clock wrong?", watermill.LogFields{
			"aggregate_id": r.Aggregate.Value, "number": r.Number, "ahead": ahead, "trailing_delay": s.config.TrailingDelay,
		})
	}
}

// turnBack moves a cursor that lies in the future back to the present. A clock that was far ahead,
// of this process or of a former owner, has moved it there. It would hide all events until then.
// The next reconciliation finds what it has hidden.
func (s *source) rewind(now time.Time) {
	ahead := time.UnixMilli(s.live.OccurredAt).Sub(now)
	if ahead <= s.config.TrailingDelay {
		return
	}
	s.logger.Error("The cursor of a shard is in the future and goes back to the present: was a clock ahead? Events that it hid come with the next sweep, "+
		"or with the next event of their aggregate if the group has no sweeps", errCursorAhead, watermill.LogFields{
		"shard": s.number, "ahead": ahead,
	})
	begin := now.Add(-s.config.TrailingDelay)
	s.setCursors(eventlog.CursorAt(begin))
	s.polls = nil
	s.sequencer.rewind(begin.UnixMilli())
}

var errCursorAhead = errors.New("cursor in the future")
