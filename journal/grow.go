package journal

import (
	"context"
	"fmt"
	"time"
)

// GrowTail adds partitions to the tail. Their number limits how many commits a second a journal in
// the layout [Packed] takes: about 1,000 for each. It begins with one for each shard; their
// number becomes that of the shards times a power of two, up to 65,536, and never becomes smaller.
// Shards, positions and owners stay as they are, and everything goes on meanwhile.
//
// It takes one read and one write. Each process learns of the new partitions within a minute,
// readers read them from then on, and writers use them from since on, which is 10 minutes later.
// Until 10 minutes after since, it refuses to grow again. A reader that cannot read the descriptor
// for 5 minutes reads no tail until it can, so it misses no event in a new partition. Each consumer
// group polls each partition: growing to twice as many doubles what an idle group costs.
//
// Errors: [*ConfigError] in the layout [Classic], whose keys have the shard count in them, and for
// a number that cannot be; [ErrThrottled], [ErrTableMissing], [ErrAccess], the context's.
func (j *Journal) GrowTail(ctx context.Context, partitions int) (since time.Time, err error) {
	since, err = j.engine.layout.grow(ctx, partitions)
	if err != nil {
		return time.Time{}, fmt.Errorf("grow the tail: %w", err)
	}
	return since, nil
}

// TailPartitions returns how many partitions the tail has, also those that writers do not use yet.
// What it knows may be a minute old; then it reads the descriptor.
//
// Errors: [ErrThrottled], [ErrTableMissing], [ErrAccess], the context's.
func (j *Journal) TailPartitions(ctx context.Context) (int, error) {
	factor, err := j.engine.layout.tailFactor(ctx)
	return j.engine.config.Shards * factor, err
}
