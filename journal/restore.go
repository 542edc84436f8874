package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/storage"
)

// first is the number that the first record must have.
func firstOf(r *restoration) uint64 {
	if r.Expected == 0 {
		return max(r.Head.TruncatedBefore, 1)
	}
	return r.Expected + 1
}

func (j *engine) Restore(ctx context.Context, r restoration) (storage.Receipt, error) {
	if err := j.validateRestoration(&r); err != nil {
		return storage.Receipt{}, fmt.Errorf("restore %s, nothing written: %w", r.Head.Aggregate, err)
	}
	t, err := j.buildRestoration(&r)
	if err != nil {
		return storage.Receipt{}, err
	}
	if err := j.send(ctx, t); err != nil && !j.isRestored(ctx, &r, err) {
		return storage.Receipt{}, err
	}
	if len(r.Records) > 0 {
		j.watchers.notify(r.Head.Aggregate, r.Head.Version)
	}
	return storage.Receipt{Version: r.Head.Version, SnapshotLeftOut: t.receipt.SnapshotLeftOut, SnapshotError: t.receipt.SnapshotError}, nil
}

func (j *engine) validateRestoration(r *restoration) error {
	head, n := &r.Head, uint64(len(r.Records))
	invalid := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrInvalidCommit, fmt.Sprintf(format, args...))
	}
	if err := j.validateTarget(head.Aggregate); err != nil {
		return err
	}
	switch {
	case n > storage.MaxEvents:
		return &TooLargeError{ID: head.Aggregate, What: "the restoration", Size: len(r.Records), Limit: storage.MaxEvents, Unit: unitEvents}
	case n == 0 && (r.Expected > 0 || head.TruncatedBefore == 0):
		return invalid("it has no events")
	case head.Version == 0 || head.Version != firstOf(r)+n-1:
		return invalid("%d events from %d on do not lead to version %d", n, firstOf(r), head.Version)
	case head.Snapshot != nil && head.Snapshot.Number > head.Version:
		return invalid("the snapshot is of event %d, the head would be at %d", head.Snapshot.Number, head.Version)
	case !head.DeletedAt.IsZero() && (r.Expected > 0 || n > 0 || head.Snapshot != nil):
		return invalid("a tombstone has neither events nor a snapshot, and takes no other head's place")
	}
	for i, record := range r.Records {
		if record == nil {
			return invalid("record %d is nil", i)
		}
		if want := firstOf(r) + uint64(i); record.Aggregate != head.Aggregate || record.Number != want {
			return invalid("event %d of %s is where event %d has to be", record.Number, record.Aggregate, want)
		}
		event := storage.Event{ID: record.EventID, Type: record.EventType, Metadata: record.Metadata}
		if err := validateEvent(event); err != nil {
			return fmt.Errorf("event %d: %w", record.Number, err)
		}
		at := Place{Aggregate: record.Aggregate, Number: record.Number, EventType: record.EventType}
		if err := j.requireEncodings(at, record.Encoding, errNotArchived); err != nil {
			return err
		}
	}
	if s := head.Snapshot; s != nil {
		return j.requireEncodings(Place{Aggregate: head.Aggregate, Number: s.Number, Snapshot: true}, s.Encoding, errNotArchived)
	}
	return nil
}

// buildRestoration gives the transaction an id that is on no row, for the token alone: a commit may
// be restored in parts, and DynamoDB may remember the token of the original.
func (j *engine) buildRestoration(r *restoration) (*transaction, error) {
	id := r.Head.Aggregate
	c := &commit{Aggregate: id, Expected: r.Expected, Events: make([]storage.Event, len(r.Records)), Snapshot: r.Head.Snapshot}
	t := &transaction{commit: c, begun: time.Now(), receipt: storage.Receipt{CommitID: j.config.NewID(), Version: r.Head.Version}}
	t.input = &dynamodb.TransactWriteItemsInput{
		TransactItems:      make([]types.TransactWriteItem, 1, 2+len(r.Records)),
		ClientRequestToken: &t.receipt.CommitID,
	}
	for _, record := range r.Records {
		it := j.restoredItem(record)
		bytes := itemSize(it)
		if bytes > storage.MaxItemBytes {
			return nil, &TooLargeError{ID: id, What: fmt.Sprintf("event %d, %q,", record.Number, record.EventType), Size: bytes, Limit: storage.MaxItemBytes, Unit: unitBytes}
		}
		t.add(j.putNew(j.config.Tables.Journal, it), bytes)
	}
	head := j.headItem(c)
	head[j.config.Attributes.Version] = numberValue(r.Head.Version) // also where events before the first are truncated
	if r.Expected == 0 && r.Head.TruncatedBefore > 0 {
		head[attrTruncatedBefore] = numberValue(r.Head.TruncatedBefore)
	}
	if !r.Head.DeletedAt.IsZero() {
		head[attrDeletedAt] = numberValue(r.Head.DeletedAt.UnixMilli())
		head[attrSnapshotNumber] = numberValue(uint64(noSnapshot))
	}
	t.size += itemSize(head)
	if t.size > storage.MaxCommitBytes {
		return nil, &TooLargeError{ID: id, What: "the restoration", Size: t.size, Limit: storage.MaxCommitBytes, Unit: unitBytes}
	}
	t.head, t.states = head, len(t.input.TransactItems)
	if c.Snapshot != nil && c.Snapshot.Number == 0 && j.config.Layout == Lean {
		t.leaveOut(storage.ErrForeign)
	}
	if c.Snapshot != nil {
		if err := j.addLatest(t, head); err != nil {
			if r.Head.TruncatedBefore > 1 {
				return nil, &TooLargeError{ID: id, What: "the snapshot that stands for truncated events", Size: len(c.Snapshot.Payload), Limit: storage.MaxItemBytes, Unit: unitBytes}
			}
			t.leaveOut(err)
		}
	}
	if r.Expected == 0 {
		t.input.TransactItems[0] = j.putNew(j.config.Tables.Snapshot, head)
	} else {
		t.input.TransactItems[0] = j.writeHead(c, head)
	}
	t.writes = len(t.input.TransactItems)
	return t, nil
}

// restoredItem leaves out what recordOf has put where the item had nothing.
func (j *engine) restoredItem(r *Record) item {
	it := j.itemOf(r)
	if r.EventID == derivedEventID(r.Aggregate, r.Number) {
		delete(it, attrEventID)
	}
	if r.CommitID == "" {
		delete(it, attrCommitID)
	}
	return it
}

// isRestored reports whether a transaction that was refused, or whose outcome is unknown, has
// nothing left to do: an attempt whose reply was lost has written it, or somebody else restores the
// same.
func (j *engine) isRestored(ctx context.Context, r *restoration, err error) bool {
	if !errors.Is(err, ErrConflict) && !errors.As(err, new(*DeletedError)) && !errors.Is(err, ErrOutcomeUnknown) && !errors.As(err, new(*CorruptItemError)) {
		return false
	}
	head, err := j.readHead(ctx, r.Head.Aggregate)
	if err != nil || head.Version < r.Head.Version {
		return false
	}
	if len(r.Records) == 0 {
		return head.Version == r.Head.Version && head.TruncatedBefore == r.Head.TruncatedBefore && head.DeletedAt.UnixMilli() == r.Head.DeletedAt.UnixMilli()
	}
	stored, err := j.byKey(ctx, r.Head.Aggregate, firstOf(r), r.Head.Version)
	if err != nil {
		return false
	}
	for i, record := range stored {
		if !record.Equal(r.Records[i]) {
			return false
		}
	}
	return true
}
