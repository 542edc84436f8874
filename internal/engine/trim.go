package engine

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// trimmedSchema marks the snapshot that stands for trimmed events. No writer uses this number.
const trimmedSchema = 0x7472696d6d6564

// trimmedState is the payload of that snapshot. It is JSON, as other programs of the family expect.
// It is a constant, so it is stored without encodings, even if the journal requires some. A trim
// needs no keys then, and also works on an aggregate whose key was lost or destroyed.
const trimmedState = `{"trimmed":true}`

// isMarker reports whether a snapshot is the one of Trim, as it is stored.
func isMarker(s *journaltype.Snapshot) bool {
	return s.Schema == trimmedSchema && s.Encoding == "" && string(s.Payload) == trimmedState
}

// IsTrimmed reports whether an aggregate has no snapshot, or only the one of Trim.
func IsTrimmed(s *journaltype.Snapshot) bool {
	return s == nil || s.Schema == trimmedSchema && s.Number > 0
}

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
		err = j.Layout.Trim(ctx, id, before, &journaltype.Snapshot{Number: before - 1, Payload: []byte(trimmedState), Schema: trimmedSchema})
	}
	if err != nil {
		return fmt.Errorf("trim %s before event %d: %w", id, before, err)
	}
	return nil
}
