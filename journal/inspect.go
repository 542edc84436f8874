package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/millrace-dev/millrace/aggregate"
)

func (j *engine) Inspect(ctx context.Context, id aggregate.ID, each func(*Record)) (inspection, error) {
	if err := id.Validate(); err != nil {
		return inspection{}, err
	}
	var found inspection
	if err := j.layout.inspect(ctx, id, &found, each); err != nil {
		return inspection{}, fmt.Errorf("inspect %s: %w", id, err)
	}
	return found, nil
}

func (j *engine) Strays(ctx context.Context, aggregateType string) iter.Seq2[*CorruptItemError, error] {
	return func(yield func(*CorruptItemError, error) bool) {
		err := j.layout.strays(ctx, aggregateType, func(stray *CorruptItemError) bool { return yield(stray, nil) })
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, fmt.Errorf("find items that readers do not reach: %w", err))
		}
	}
}
