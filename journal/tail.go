package journal

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/internal/storage"
)

func (j *engine) TailShard(ctx context.Context, q storage.TailQuery) (tailPage, error) {
	page, err := j.layout.tail(ctx, q)
	if err != nil {
		return tailPage{}, fmt.Errorf("tail %s: %w", storage.ShardKey(q.AggregateType, q.Shard), err)
	}
	return page, nil
}
