package subscriber

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/printable"
)

// disposition is the decision to give up an event.
type disposition struct {
	number    uint64
	eventType string
	at        time.Time
	attempts  int
	err       error  // the error of the last attempt
	reason    string // the text that is stored
}

func (v *disposition) fields(st *stream) watermill.LogFields {
	return watermill.LogFields{"aggregate_id": printable.Text(st.ID.Value), "number": v.number, "attempts": v.attempts}
}

// apply writes the result of a disposition, and reports whether the stream continues. After an
// error it is called again, and the event is not delivered meanwhile, because an earlier attempt at
// the write may still take effect.
func (d *deliverer) apply(st *stream) (more bool, err error) {
	ctx, cancel := context.WithTimeout(d.messageCtx, writeTimeout)
	defer cancel()
	switch d.config.Failures.kind {
	case stop:
		return true, d.stopGroup(ctx, st)
	case skip:
		return true, d.skip(ctx, st)
	case deferEvents:
		return true, d.deferEvent(ctx, st)
	default:
		return false, d.park(ctx, st)
	}
}

// park adds an aggregate to the behind list as parked, and stops its delivery.
func (d *deliverer) park(ctx context.Context, st *stream) error {
	v := st.Work.delivery.disposition
	if err := d.committer.park(ctx, st, &checkpoint.Failure{Number: v.number, At: v.at, Reason: v.reason, Attempts: v.attempts}); err != nil {
		return err
	}
	d.stats.parked.Add(1)
	d.logger.Error("Aggregate is parked; its events wait until an operator unparks it", v.err, v.fields(st))
	return nil
}
