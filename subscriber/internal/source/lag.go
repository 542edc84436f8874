package source

import (
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/printable"
)

// lag decides when a shard reconciles early, because the tail index lags by more than trailing
// reads cover. An early reconciliation reads the recent part of the tail again, in any layout. So
// it costs a few times what the live read costs, as long as the index lags.
//
// The signs of a lag are an event that appears in the tail more than half of TrailingDelay after
// its date, an event that only a reconciliation finds, and a commit of this process that no read of
// the tail has shown. A lag that hides each event for a long time or not at all, and only events of
// other processes, shows no sign.
type lag struct {
	mu   sync.Mutex
	seen time.Time // the last sign
	next time.Time // the next early reconciliation; zero for none
}

// earlyInterval is the time from the first sign to an early reconciliation, and between two of
// them. Each reads the last three intervals. There are two after the last sign, so an event that is
// late by one interval is found, and with it the next sign.
func (s *Source) earlyInterval() time.Duration { return s.ReconcileInterval / 12 }

// NoteLag records a sign of a lag.
func (s *Source) NoteLag(id aggregate.ID, number uint64) {
	if s.ReconcileInterval < 0 {
		return
	}
	s.lag.mu.Lock()
	defer s.lag.mu.Unlock()
	s.lag.seen = s.Now()
	if s.lag.next.IsZero() {
		s.lag.next = s.lag.seen.Add(s.earlyInterval())
		s.Logger.Info("The tail index lags by more than trailing reads cover, so the shard reconciles early", watermill.LogFields{
			"shard": s.Key.Number, "aggregate_id": printable.Text(id.Value), "number": number, "trailing_delay": s.TrailingDelay, "pause": s.earlyInterval(),
		})
	}
}

// isDue reports whether an early reconciliation is due.
func (l *lag) isDue(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.next.IsZero() && !now.Before(l.next)
}

// reconciled records that an early reconciliation has finished.
func (l *lag) reconciled(began time.Time, interval time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next = began.Add(interval); began.Sub(l.seen) >= 2*interval {
		l.next = time.Time{}
	}
}
