package packed

import (
	"context"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func (p *layout) Trim(ctx context.Context, id aggregate.ID, before uint64, state *journaltype.Snapshot) error {
	end, err := p.end(ctx, id)
	switch {
	case err != nil:
		return err
	case end.isTombstone():
		return end.deletedError()
	case before > end.last()+1:
		return engine.NotCovered(before)
	}
	latest, base, err := p.snapshots(ctx, id)
	switch {
	case err != nil:
		return err
	case latest != nil && !latest.deleted.IsZero():
		return p.deletedSince(ctx, id)
	case latest != nil && !engine.IsTrimmed(latest.snapshot), base != nil && !engine.IsTrimmed(base.snapshot):
		return storage.ErrHasState
	}
	if base != nil && base.snapshot != nil && base.before >= before {
		sound, err := p.isSound(ctx, id, base)
		if err != nil {
			return err
		}
		if sound {
			// An earlier call may have ended early.
			return p.blankRest(ctx, id, base.before, journaltype.RemoveOptions{})
		}
	}
	last, err := p.commitAt(ctx, id, before-1)
	if err == nil && last.last() != before-1 {
		err = engine.NotCovered(before) // it is inside a commit
	}
	if err != nil {
		return err
	}
	// The id of an imported commit without an id.
	commit := table.StringValue(last.commit)
	if last.commitID != "" {
		commit = commitValue(last.commitID)
	}
	row := p.rowOf(p.snapshotKey(id, baseSnapshot), state, last.first, commit)
	row[attrBefore] = table.NumberValue(before)
	if err := p.putBase(ctx, id, row); err != nil {
		return err
	}
	return p.blank(ctx, id, before, journaltype.RemoveOptions{})
}
