package process

import (
	"context"
	"iter"
	"time"
)

func (b *Backlog) Due(ctx context.Context, processType string, before time.Time) iter.Seq2[Pending, error] {
	return b.Pending(ctx, Query{Type: processType, Before: before})
}
