package journal

import (
	"context"
	"time"
)

// GrowTail increases the number of partitions of the tail in the layout [Packed]. That number
// limits how many commits the journal accepts: about 1,000 a second for each partition. It is the
// number of shards at first. It can become the number of shards times a power of two, up to 65,536,
// and can never decrease. Shards, positions and owners stay the same, and readers and writers
// continue meanwhile.
//
// GrowTail makes one read and one write. Each process learns of the new partitions within a minute,
// and its readers read them from then on. Writers use them from the returned time, since, which is
// 10 minutes later. GrowTail refuses to grow the tail again until 10 minutes after since. A reader
// that cannot read the descriptor for 5 minutes pauses until it can, so that it misses no event in
// a new partition. Each consumer group polls each partition: twice as many partitions double the
// cost of an idle group.
//
// Errors: [*ConfigError] in the layout [Classic], whose keys contain the number of shards, and for
// a number of partitions that is not allowed; [ErrThrottled], [ErrTableMissing], [ErrAccess], and
// the error of ctx.
func (j *Journal) GrowTail(ctx context.Context, partitions int) (since time.Time, err error) {
	return j.engine.GrowTail(ctx, partitions)
}

// TailPartitions returns the number of partitions of the tail, including those that writers do not
// use yet. If its information is older than a minute, it reads the descriptor again.
//
// Errors: [ErrThrottled], [ErrTableMissing], [ErrAccess], and the error of ctx.
func (j *Journal) TailPartitions(ctx context.Context) (int, error) {
	return j.engine.TailPartitions(ctx)
}
