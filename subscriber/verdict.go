package subscriber

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill"
)

// verdict is the decision to give up an event.
type verdict struct {
	number    uint64
	eventType string
	at        time.Time
	attempts  int
	err       error  // of the last attempt
	reason    string // the same for people
}

func (v *verdict) fields(st *stream) watermill.LogFields {
	return watermill.LogFields{"aggregate_id": st.id.Value, "number": v.number, "attempts": v.attempts}
}

// carryOut writes what follows from a verdict. After an error it is called again, and the event
// does not come meanwhile: nobody could tell whether an earlier attempt at the write will still be
// done.
func (d *deliverer) carryOut(st *stream) error {
	ctx, cancel := context.WithTimeout(d.messageCtx, writeTimeout)
	defer cancel()
	if d.config.Failures.kind == stop {
		return d.stopGroup(ctx, st)
	}
	return d.skip(ctx, st)
}
