package subscriber

import (
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/journal"
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
func (t *term) earlyInterval() time.Duration { return t.config.ReconcileInterval / 12 }

// noteLag records a sign of a lag.
func (t *term) noteLag(id aggregate.ID, number uint64) {
	if t.config.ReconcileInterval < 0 {
		return
	}
	t.lag.mu.Lock()
	defer t.lag.mu.Unlock()
	t.lag.seen = t.now()
	if t.lag.next.IsZero() {
		t.lag.next = t.lag.seen.Add(t.earlyInterval())
		t.logger.Info("The tail index lags by more than trailing reads cover, so the shard reconciles early", watermill.LogFields{
			"shard": t.number, "aggregate_id": printable.Text(id.Value), "number": number, "trailing_delay": t.config.TrailingDelay, "pause": t.earlyInterval(),
		})
	}
}

// noteReconciled records a sign of a lag if only a reconciliation has found an event. The caller
// knows that the event is after the position of its aggregate. The reconciliation does not, for
// example if the group leaves out earlier events.
func (d *deliverer) noteReconciled(st *stream, r *journal.Record) {
	if d.sequencer.OnlyReconciled(st, r.Number) && d.now().Sub(r.WrittenAt) > d.config.TrailingDelay {
		d.stats.reconciled.Add(1)
		d.noteLag(r.Aggregate, r.Number)
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
