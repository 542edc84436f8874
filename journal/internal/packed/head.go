package packed

import (
	"context"
	"slices"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func (p *layout) Head(ctx context.Context, id aggregate.ID) (journaltype.Head, error) {
	last, err := p.end(ctx, id)
	if err != nil {
		return journaltype.Head{}, err
	}
	head := journaltype.Head{Aggregate: id, Version: last.last()}
	if last.isTombstone() {
		head.DeletedAt, head.TruncatedBefore = last.deleted, head.Version+1
		return head, nil
	}
	row, base, err := p.snapshots(ctx, id)
	if err != nil {
		return journaltype.Head{}, err
	}
	if base != nil && base.snapshot != nil {
		sound, err := p.isSound(ctx, id, base)
		if err != nil {
			return journaltype.Head{}, err
		}
		if sound {
			head.TruncatedBefore = base.before
		} else {
			base = nil // it belongs to a history that was replaced
		}
	}
	for _, r := range newestFirst(row, base) {
		if r.snapshot.Number > head.Version || head.Snapshot != nil {
			continue
		}
		sound, err := p.isSound(ctx, id, r)
		if err != nil {
			return journaltype.Head{}, err
		}
		if sound {
			head.Snapshot = r.snapshot
		}
	}
	if base == nil && head.Snapshot == nil {
		if head.TruncatedBefore, err = p.truncatedBefore(ctx, last); err != nil {
			return journaltype.Head{}, err
		}
	}
	if row != nil {
		head.Redundant = slices.DeleteFunc(row.kept, func(n uint64) bool { return n > head.Version })
	}
	return head, nil
}

// truncatedBefore reads from the first item of an aggregate which events were removed. No snapshot
// shows this if a restoration was interrupted.
func (p *layout) truncatedBefore(ctx context.Context, last *item) (uint64, error) {
	if last.first == 1 {
		return last.before, nil
	}
	first, err := p.GetItem(ctx, p.Config.Tables.Journal, p.key(last.id, 1))
	before, _ := table.UintOf(first[attrBefore])
	return before, err
}
