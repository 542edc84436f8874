package journal

import (
	"context"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
)

// VersionAt returns the number of the last event of an aggregate that had occurred at a time, and 0
// if no event had. It needs no encryption key.
//
// VersionAt reads the head and then searches the events by bisection, strongly consistent. It makes
// about log2(n) reads of one event, 17 for 100,000 events, and up to twice as many in the layout
// [Packed]. If the clocks of writers differ, an event may have an earlier time than the event
// before it. Several numbers may then be right, and VersionAt returns one of them.
//
// Errors: [*DeletedError], [*TruncatedError] if the event was removed, and the errors of
// [Journal.Head] and [Journal.Events].
func (j *Journal) VersionAt(ctx context.Context, id aggregate.ID, at time.Time) (uint64, error) {
	return j.engine.VersionAt(ctx, id, at)
}
