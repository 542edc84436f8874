package journal

import (
	"context"

	"github.com/millrace-dev/millrace/aggregate"
)

// Head returns the head of an aggregate with its latest snapshot, strongly consistent. It also
// returns the head of a deleted aggregate. [Journal.Version] returns only the version, and needs no
// encryption key.
//
// In the layout [Classic] it takes one round trip, and one read unit for each 4 KB of state. In
// [Packed] there is no row for the head. It takes three round trips: for the last commit, for the
// snapshot, and for the commit that the snapshot ends with. Each costs one unit for each 4 KB.
//
// Errors: [ErrNotFound], [*CorruptItemError], [*EncodingError], [ErrKeyDestroyed],
// [ErrTableMissing], [ErrThrottled], [ErrAccess], *aggregate.InvalidIDError.
func (j *Journal) Head(ctx context.Context, id aggregate.ID) (Head, error) {
	return j.engine.Head(ctx, id)
}

// Version returns the number of events of an aggregate, strongly consistent: one round trip with a
// small reply. DynamoDB bills the whole item. It costs one read unit for each 4 KB of the state in
// the layout [Classic], and of the last commit in the layout [Packed].
//
// Errors: [*DeletedError] and the errors of [Journal.Head].
func (j *Journal) Version(ctx context.Context, id aggregate.ID) (uint64, error) {
	return j.engine.Version(ctx, id)
}
