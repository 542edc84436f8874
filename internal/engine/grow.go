package engine

import (
	"context"
	"fmt"
	"time"
)

func (j *Engine) GrowTail(ctx context.Context, partitions int) (since time.Time, err error) {
	since, err = j.Layout.Grow(ctx, partitions)
	if err != nil {
		return time.Time{}, fmt.Errorf("grow the tail: %w", err)
	}
	return since, nil
}

func (j *Engine) TailPartitions(ctx context.Context) (int, error) {
	factor, err := j.Layout.TailFactor(ctx)
	return j.Config.Shards * factor, err
}
