package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// maxRestored is the highest version of a restored aggregate. It is far below the numbers at which
// a layout cannot read an aggregate or append to it. Programs that store numbers as floating point
// still represent it exactly.
const maxRestored = 1 << 53

// FirstOf returns the number that the first record must have.
func FirstOf(r *storage.Restoration) uint64 {
	if r.Expected == 0 {
		return max(r.Head.TruncatedBefore, 1)
	}
	return r.Expected + 1
}

// Restore writes events that were read from this or another journal, with their original
// aggregates, numbers, ids, times, commit ids and payloads. It stores payloads of events and
// snapshot unchanged, with their Encoding, so read them from a raw journal. It repeats its
// request like Append, and wakes watchers. The receipt holds Version, SnapshotLeftOut and
// SnapshotError. Restore never leaves out the snapshot of a truncated aggregate, which needs
// it.
//
// In Classic one transaction has the events, the head and the snapshot. In Packed one
// transaction has the events, and the snapshot follows. If the snapshot of a truncated
// aggregate then fails, Restore returns the error although the events are written.
//
// If the journal already has the same events, Restore succeeds. So it may be repeated,
// especially after ErrOutcomeUnknown. Journal.Resolve does not work here, since each event
// keeps its original commit id.
//
// Except for such a snapshot, nothing was written if the error is ErrConflict, *DeletedError,
// ErrInvalidCommit, *EncodingError, *TooLargeError, *ConfigError, *aggregate.InvalidIDError,
// ErrThrottled, ErrContended, ErrUnavailable, ErrTableMissing, ErrAccess or *CorruptItemError.
func (j *Engine) Restore(ctx context.Context, r storage.Restoration) (storage.Receipt, error) {
	if err := j.validateRestoration(&r); err != nil {
		return storage.Receipt{}, fmt.Errorf("restore %s, nothing written: %w", r.Head.Aggregate, err)
	}
	receipt, err := j.Layout.Restore(ctx, &r)
	if err != nil {
		return storage.Receipt{}, err
	}
	if len(r.Records) > 0 {
		j.Notify(r.Head.Aggregate, r.Head.Version)
	}
	return storage.Receipt{Version: r.Head.Version, SnapshotLeftOut: receipt.SnapshotLeftOut, SnapshotError: receipt.SnapshotError}, nil
}

func (j *Engine) validateRestoration(r *storage.Restoration) error {
	head, n := &r.Head, uint64(len(r.Records))
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", journaltype.ErrInvalidCommit, fmt.Sprintf(format, args...))
	}
	if err := j.validateTarget(head.Aggregate); err != nil {
		return err
	}
	if highest := max(head.Version, r.Expected); highest > maxRestored {
		return &journaltype.VersionError{ID: head.Aggregate, Version: highest, Limit: maxRestored}
	}
	switch {
	case n > storage.MaxEvents:
		return &journaltype.TooLargeError{ID: head.Aggregate, What: "the restoration", Size: len(r.Records), Limit: storage.MaxEvents, Unit: storage.UnitEvents}
	case n == 0 && (r.Expected > 0 || head.TruncatedBefore == 0):
		return invalid("it has no events")
	case head.Version == 0 || head.Version != FirstOf(r)+n-1:
		return invalid("%d events that begin with %d do not end with version %d", n, FirstOf(r), head.Version)
	case head.TruncatedBefore > head.Version+1:
		return invalid("it is truncated before event %d, but has version %d", head.TruncatedBefore, head.Version)
	case head.Snapshot != nil && head.Snapshot.Number > head.Version:
		return invalid("the snapshot is of event %d, but the head has version %d", head.Snapshot.Number, head.Version)
	case head.Snapshot != nil && head.Snapshot.Number > 0 && head.Snapshot.Number+1 < head.TruncatedBefore:
		return invalid("the snapshot is of event %d, but the events before %d are truncated", head.Snapshot.Number, head.TruncatedBefore)
	case !head.DeletedAt.IsZero() && (r.Expected > 0 || n > 0 || head.Snapshot != nil):
		return invalid("a tombstone has neither events nor a snapshot, and does not replace another head")
	}
	for i, record := range r.Records {
		if record == nil {
			return invalid("record %d is nil", i)
		}
		if want := FirstOf(r) + uint64(i); record.Aggregate != head.Aggregate || record.Number != want {
			return invalid("event %d of %s is in the place of event %d", record.Number, record.Aggregate, want)
		}
		if record.EventID == "" {
			return invalid("event %d has no id", record.Number)
		}
		if mark, marked := record.Metadata[metadata.OwnStreamKey]; marked && mark != metadata.StreamMark(head.Aggregate) {
			return invalid("event %d has the metadata %s of another stream, which only a publisher's own stream has: the archive is wrong; export the aggregate again",
				record.Number, metadata.OwnStreamKey)
		}
		if at, c := record.OccurredAt.UnixMilli(), j.Config; c.OccurredAtUnit < time.Millisecond && c.MillisOf(c.StoredTime(at)) != at {
			return invalid("event %d is of %s, which tables with times in %s cannot hold", record.Number, record.OccurredAt.Format(time.RFC3339), table.UnitNames(c.OccurredAtUnit))
		}
		event := storage.Event{ID: record.EventID, Type: record.EventType, Metadata: record.Metadata}
		if err := validateEvent(event); err != nil {
			return fmt.Errorf("event %d: %w", record.Number, err)
		}
		at := journaltype.Place{Aggregate: record.Aggregate, Number: record.Number, EventType: record.EventType}
		if err := j.requireEncodings(at, record.Encoding, errNotArchived); err != nil {
			return err
		}
	}
	if s := head.Snapshot; s != nil && !isMarker(s) {
		return j.requireEncodings(journaltype.Place{Aggregate: head.Aggregate, Number: s.Number, Snapshot: true}, s.Encoding, errNotArchived)
	}
	return nil
}
