package journal

import (
	"context"
	"iter"

	"github.com/millrace-dev/millrace/aggregate"
)

// Events yields the events of an aggregate with the numbers from..to, in order and without a gap,
// or ends with an error. It never ends early without an error, so pass a version that exists as to.
//
// In the layout [Packed] it makes one strongly consistent Query, page by page. A page has 1 MB, and
// 4 KB cost one read unit. If the first event is inside a commit, it makes one more Query.
//
// In the layout [Classic] it reads a few events by key. It reads more events from the aggregate
// index, page by page, 1 MB each. That index is eventually consistent, so Events reads by key what
// the index does not contain yet. If an event is still absent, it reads it again with backoff, and
// finally in a transaction, before it reports it as corrupt. The reason is that head and events are
// separate reads, so a transaction can become visible in one before the other.
//
// If events were removed on purpose, the sequence ends with a [*TruncatedError], which says where
// to continue. Some of the removed events may be yielded before.
//
// Errors: [*CorruptItemError], [*TruncatedError], [*EncodingError], [ErrKeyDestroyed],
// [*EventTypeError], [ErrTableMissing], [ErrThrottled], [ErrAccess], *aggregate.InvalidIDError, and
// the error of ctx.
func (j *Journal) Events(ctx context.Context, id aggregate.ID, from, to uint64) iter.Seq2[*Record, error] {
	return j.engine.Events(ctx, id, from, to)
}

// AllEvents yields all events that an aggregate has at the time of the call, in order. It omits
// events that were removed on purpose, but may yield some whose removal has not ended. It costs as
// much as [Journal.Version] and [Journal.Events] together.
//
// Errors: the errors of both, except [*TruncatedError].
func (j *Journal) AllEvents(ctx context.Context, id aggregate.ID) iter.Seq2[*Record, error] {
	return j.engine.AllEvents(ctx, id)
}
