package classic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func (l *layout) Restore(ctx context.Context, r *storage.Restoration) (storage.Receipt, error) {
	t, err := l.buildRestoration(r)
	if err != nil {
		return storage.Receipt{}, err
	}
	if err := l.Send(ctx, t); err != nil && !l.isRestored(ctx, r, err) {
		return storage.Receipt{}, err
	}
	return t.Receipt, nil
}

// buildRestoration makes the transaction of a restoration. Its request token is new and not the id
// of the restored commit: a commit may be restored in parts, and DynamoDB may remember that token.
func (l *layout) buildRestoration(r *storage.Restoration) (*commit, error) {
	id := r.Head.Aggregate
	c := &storage.Commit{Aggregate: id, Expected: r.Expected, Events: make([]storage.Event, len(r.Records)), Snapshot: r.Head.Snapshot}
	t := &commit{layout: l, Draft: engine.Draft{
		Commit: c, Begun: time.Now(), Receipt: storage.Receipt{CommitID: l.Config.NewID(), Version: r.Head.Version},
	}}
	t.input = &dynamodb.TransactWriteItemsInput{
		TransactItems:      make([]types.TransactWriteItem, 1, 2+len(r.Records)),
		ClientRequestToken: &t.Receipt.CommitID,
	}
	for _, record := range r.Records {
		it := l.restoredItem(record)
		bytes := table.ItemSize(it)
		if bytes > storage.MaxItemBytes {
			return nil, &journaltype.TooLargeError{ID: id, What: fmt.Sprintf("event %d, %q,", record.Number, record.EventType), Size: bytes, Limit: storage.MaxItemBytes, Unit: storage.UnitBytes}
		}
		t.add(l.PutNew(l.Config.Tables.Journal, it), bytes)
	}
	head := l.headItem(c)
	// The version also counts events before the first record if those are truncated.
	head[l.Config.Attributes.Version] = table.NumberValue(r.Head.Version)
	if r.Expected == 0 && r.Head.TruncatedBefore > 0 {
		head[attrTruncatedBefore] = table.NumberValue(r.Head.TruncatedBefore)
	}
	if !r.Head.DeletedAt.IsZero() {
		head[attrDeletedAt] = table.NumberValue(r.Head.DeletedAt.UnixMilli())
		head[attrSnapshotNumber] = table.NumberValue(uint64(noSnapshot))
	}
	t.size += table.ItemSize(head)
	if t.size > storage.MaxCommitBytes {
		return nil, &journaltype.TooLargeError{ID: id, What: "the restoration", Size: t.size, Limit: storage.MaxCommitBytes, Unit: storage.UnitBytes}
	}
	t.head, t.states = head, len(t.input.TransactItems)
	if c.Snapshot != nil {
		if err := l.addLatest(t, head); err != nil {
			if r.Head.TruncatedBefore > 1 {
				return nil, &journaltype.TooLargeError{ID: id, What: "the snapshot that stands for truncated events", Size: len(c.Snapshot.Payload), Limit: storage.MaxItemBytes, Unit: storage.UnitBytes}
			}
			t.LeaveOut(err)
		}
	}
	if r.Expected == 0 {
		t.input.TransactItems[0] = l.PutNew(l.Config.Tables.Snapshot, head)
	} else {
		t.input.TransactItems[0] = l.writeHead(c, head)
	}
	t.writes = len(t.input.TransactItems)
	return t, nil
}

// restoredItem omits the values that recordOf derives for attributes that the item did not have.
func (l *layout) restoredItem(r *journaltype.Record) table.Item {
	it := l.itemOf(r)
	if r.EventID == derivedEventID(r.Aggregate, r.Number) {
		delete(it, attrEventID)
	}
	if r.CommitID == "" {
		delete(it, engine.AttrCommitID)
	}
	return it
}

// isRestored reports whether a transaction that was refused, or whose outcome is unknown, has
// nothing left to do. Either an attempt whose reply was lost has written it, or another process
// restores the same events.
func (l *layout) isRestored(ctx context.Context, r *storage.Restoration, err error) bool {
	if !errors.Is(err, journaltype.ErrConflict) && !errors.As(err, new(*journaltype.DeletedError)) && !errors.Is(err, journaltype.ErrOutcomeUnknown) && !errors.As(err, new(*journaltype.CorruptItemError)) {
		return false
	}
	head, err := l.Head(ctx, r.Head.Aggregate)
	if err != nil || head.Version < r.Head.Version {
		return false
	}
	if len(r.Records) == 0 {
		return head.Version == r.Head.Version && head.TruncatedBefore == r.Head.TruncatedBefore && head.DeletedAt.UnixMilli() == r.Head.DeletedAt.UnixMilli()
	}
	stored, err := l.byKey(ctx, r.Head.Aggregate, engine.FirstOf(r), r.Head.Version)
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
