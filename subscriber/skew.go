package subscriber

import (
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/journal"
)

// skew measures how far the times of events are off. Late: for how long at least an event that a look found had been dated in
// the past and not shown; that is the delay of the index, the duration of commits, and clocks that are behind. Ahead: how far
// ahead of this process's clock an event is dated.
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

// raise notes a measure and tells whether it is time to warn of it.
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

// noteLate is told of the first event that a look found after an earlier one had come to the end of the tail.
func (sh *shard) noteLate(r *journal.Record, earlier time.Time) {
	late := earlier.Sub(r.OccurredAt)
	if late > 0 && sh.stats.skew.raise(&sh.stats.skew.late, late, sh.config.TrailingDelay/2) {
		sh.logger.Info("Events show in the tail long after their time: is a clock behind? What comes later than TrailingDelay waits "+
			"for the sweep", watermill.LogFields{
			"aggregate_id": r.Aggregate.Value, "number": r.Number, "late": late, "trailing_delay": sh.config.TrailingDelay,
		})
	}
}

// noteAhead is told of the last event that a look found.
func (sh *shard) noteAhead(r *journal.Record, now time.Time) {
	ahead := r.OccurredAt.Sub(now)
	if ahead > 0 && sh.stats.skew.raise(&sh.stats.skew.ahead, ahead, sh.config.TrailingDelay/2) {
		sh.logger.Info("Events are dated ahead of this process's clock: is a clock wrong?", watermill.LogFields{
			"aggregate_id": r.Aggregate.Value, "number": r.Number, "ahead": ahead, "trailing_delay": sh.config.TrailingDelay,
		})
	}
}
