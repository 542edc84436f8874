package subscriber

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

// verdict is the decision to give up an event.
type disposition struct {
	number    uint64
	eventType string
	at        time.Time
	attempts  int
	err       error  // of the last attempt
	reason    string // the same for people
}

func (v *disposition) fields(st *stream) watermill.LogFields {
	return watermill.LogFields{"aggregate_id": st.id.Value, "number": v.number, "attempts": v.attempts}
}

// carryOut writes what follows from a verdict, and reports whether the stream goes on. After an
// error it is called again, and the event does not come meanwhile: nobody could tell whether an
// earlier attempt at the write will still be done.
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

// park lists an aggregate as parked, and lets it rest.
func (d *deliverer) park(ctx context.Context, st *stream) error {
	v := st.delivery.disposition
	if err := d.committer.park(ctx, st, &checkpoint.Failure{Number: v.number, At: v.at, Reason: v.reason}); err != nil {
		return err
	}
	d.stats.parked.Add(1)
	d.logger.Error("Aggregate is parked, its events wait until it is told to go on", v.err, v.fields(st))
	return nil
}
