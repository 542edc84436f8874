package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// trimmedSchema marks the snapshot that stands for trimmed events. No writer uses this number.
const trimmedSchema = 0x7472696d6d6564

// trimmedState is the payload of that snapshot. It is JSON, as other programs of the family expect.
// It is a constant, so it is stored without encodings, even if the journal requires some. A trim
// needs no keys then, and also works on an aggregate whose key was lost or destroyed.
const trimmedState = `{"trimmed":true}`

// isMarker reports whether a snapshot is the one of Trim, as it is stored.
func isMarker(s *Snapshot) bool {
	return s.Schema == trimmedSchema && s.Encoding == "" && string(s.Payload) == trimmedState
}

// IsTrimmed reports whether an aggregate has no snapshot, or only the one of Trim.
func IsTrimmed(s *Snapshot) bool { return s == nil || s.Schema == trimmedSchema && s.Number > 0 }

// Trim truncates an aggregate that no repository loads, like Journal.Truncate. It needs no
// snapshot: it stores one of its own that stands for the events. A later load of the aggregate
// fails. The last removed event, before-1, must be the last one of a commit. Trim may be
// repeated.
//
// It costs as much as Journal.Truncate. It writes no event, and needs no encodings.
//
// Errors: storage.ErrHasState, with nothing removed, if the aggregate has a snapshot of another
// origin, ErrNotCovered if no commit ends with event before-1, and the errors of
// Journal.Truncate.
func (j *Engine) Trim(ctx context.Context, id aggregate.ID, before uint64) error {
	err := id.Validate()
	if err == nil && before > 1 {
		err = j.Layout.Trim(ctx, id, before, &Snapshot{Number: before - 1, Payload: []byte(trimmedState), Schema: trimmedSchema})
	}
	if err != nil {
		return fmt.Errorf("trim %s before event %d: %w", id, before, err)
	}
	return nil
}

func (l *ClassicStorage) Trim(ctx context.Context, id aggregate.ID, before uint64, state *Snapshot) error {
	for attempt := 0; ; attempt++ {
		head, err := l.Head(ctx, id)
		switch {
		case err != nil:
			return err
		case !head.DeletedAt.IsZero():
			return DeletedErrorOf(head)
		case !IsTrimmed(head.Snapshot) || len(head.Redundant) > 0:
			return storage.ErrHasState
		case before > head.Version+1:
			return NotCovered(before)
		case head.Snapshot == nil && head.TruncatedBefore > 1:
			return storage.ErrHasState // it has a state or had one
		}
		if before > head.TruncatedBefore {
			update, names, values := l.trimUpdate(before, state)
			err = l.updateHead(ctx, head, update, names, values)
		}
		if err == nil {
			return l.removeEvents(ctx, head, max(before, head.TruncatedBefore), Removal{})
		}
		if !errors.Is(err, ErrConflict) || attempt == 9 {
			return err
		}
		if !Sleep(ctx, time.Duration(attempt+1)*10*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// trimUpdate sets the place of truncation, and stores the snapshot that stands for earlier events.
func (l *ClassicStorage) trimUpdate(before uint64, state *Snapshot) (update string, names map[string]string, values Item) {
	stored := Item{}
	l.setSnapshot(stored, state)
	names, values = AttributeNames("#t", attrTruncatedBefore), Item{":t": NumberValue(before)}
	sets := []string{"#t = :t"}
	for i, name := range slices.Sorted(maps.Keys(stored)) {
		n := strconv.Itoa(i)
		names["#s"+n], values[":s"+n] = name, stored[name]
		sets = append(sets, "#s"+n+" = :s"+n)
	}
	update = "SET " + strings.Join(sets, ", ")
	if _, encoded := stored[AttrEncoding]; !encoded {
		names["#e"] = AttrEncoding
		update += " REMOVE #e" // the encoding of an earlier Trim
	}
	return update, names, values
}

func (p *packed) Trim(ctx context.Context, id aggregate.ID, before uint64, state *Snapshot) error {
	end, err := p.end(ctx, id)
	switch {
	case err != nil:
		return err
	case end.isTombstone():
		return end.deletedError()
	case before > end.last()+1:
		return NotCovered(before)
	}
	latest, base, err := p.snapshots(ctx, id)
	switch {
	case err != nil:
		return err
	case latest != nil && !latest.deleted.IsZero():
		return p.deletedSince(ctx, id)
	case latest != nil && !IsTrimmed(latest.snapshot), base != nil && !IsTrimmed(base.snapshot):
		return storage.ErrHasState
	}
	if base != nil && base.snapshot != nil && base.before >= before {
		sound, err := p.isSound(ctx, id, base)
		if err != nil {
			return err
		}
		if sound {
			// An earlier call may have ended early.
			return p.blank(ctx, id, base.before, Removal{})
		}
	}
	last, err := p.commitAt(ctx, id, before-1)
	if err == nil && last.last() != before-1 {
		err = NotCovered(before) // it is inside a commit
	}
	if err != nil {
		return err
	}
	// The id of an imported commit without an id.
	commit := StringValue(last.commit)
	if last.commitID != "" {
		commit = commitValue(last.commitID)
	}
	row := p.rowOf(p.snapshotKey(id, baseSnapshot), state, last.first, commit)
	row[attrBefore] = NumberValue(before)
	if err := p.putBase(ctx, id, row); err != nil {
		return err
	}
	return p.blank(ctx, id, before, Removal{})
}
