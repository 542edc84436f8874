package packed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func (p *layout) Restore(ctx context.Context, r *storage.Restoration) (storage.Receipt, error) {
	id := r.Head.Aggregate
	r2 := &restoration{layout: p, Restoration: r, token: p.Config.NewID(), at: p.Now()}
	if err := r2.build(); err != nil {
		return storage.Receipt{}, err
	}
	if s := r.Head.Snapshot; s != nil && r.Head.TruncatedBefore > 1 { // a load needs it
		base := p.rowOf(p.snapshotKey(id, baseSnapshot), s, s.Number, commitValue(longestCommitID))
		base[attrBefore] = table.NumberValue(r.Head.TruncatedBefore)
		if err := checkSize(id, base); err != nil {
			return storage.Receipt{}, err
		}
	}
	if r.Expected > 0 {
		actual, err := p.Version(ctx, id)
		switch {
		case errors.Is(err, journaltype.ErrNotFound):
			return storage.Receipt{}, &journaltype.ConflictError{ID: id, Expected: r.Expected}
		case err != nil:
			return storage.Receipt{}, fmt.Errorf("restore %s, nothing written: %w", id, err)
		case actual != r.Expected:
			if err := r2.unlessThere(ctx, &journaltype.ConflictError{ID: id, Expected: r.Expected, Actual: actual}); err != nil {
				return storage.Receipt{}, err
			}
		}
	}
	r2.begun = time.Now()
	r2.Redate(p.Now())
	if err := p.Send(ctx, r2); err != nil {
		if err := r2.unlessThere(ctx, err); err != nil {
			return storage.Receipt{}, err
		}
	}
	receipt := storage.Receipt{Version: r.Head.Version}
	if err := r2.restoreSnapshot(ctx); err != nil {
		if r.Head.TruncatedBefore > 1 {
			return storage.Receipt{}, fmt.Errorf("restore the snapshot of %s: %w", id, err)
		}
		receipt.SnapshotLeftOut, receipt.SnapshotError = true, err
	}
	return receipt, nil
}

// restoration is a restoration in the form in which it is sent.
type restoration struct {
	*layout
	*storage.Restoration
	begun time.Time
	token string
	at    time.Time
	input *dynamodb.TransactWriteItemsInput
	items []table.Item
	plain []table.Item // those of items whose events have no encodings
}

// build makes one item of each commit with its original values, or of a part of a commit. The last
// event of a snapshot ends an item, so that a load can begin with the snapshot.
func (r *restoration) build() error {
	id, next := r.Restoration.Head.Aggregate, engine.FirstOf(r.Restoration)
	if r.Expected == 0 && next > 1 {
		r.items = append(r.items, r.blankItem(id, next))
	}
	for from := 0; from < len(r.Records); {
		to, err := r.add(from)
		if err != nil {
			return err
		}
		from = to
	}
	if !r.Restoration.Head.DeletedAt.IsZero() {
		if len(r.items) == 0 {
			r.items = append(r.items, r.blankItem(id, r.Restoration.Head.Version+1))
		}
		stone := r.key(id, r.Restoration.Head.Version+1)
		stone[attrCommit], stone[attrCount] = commitValue(""), table.NumberValue(0)
		stone[attrDeleted] = table.NumberValue(r.Restoration.Head.DeletedAt.UnixMilli())
		r.items = append(r.items, stone)
	}
	size := 0
	for _, it := range r.items {
		size += table.ItemSize(it)
	}
	r.compressEvents(r.plain)
	r.input = &dynamodb.TransactWriteItemsInput{ClientRequestToken: &r.token}
	for _, it := range r.items {
		r.input.TransactItems = append(r.input.TransactItems, r.PutNew(r.Config.Tables.Journal, it))
	}
	if size > storage.MaxCommitBytes {
		return &journaltype.TooLargeError{ID: id, What: "the restoration", Size: size, Limit: storage.MaxCommitBytes, Unit: storage.UnitBytes}
	}
	return nil
}

// blankItem stands for the removed events before a number.
func (r *restoration) blankItem(id aggregate.ID, before uint64) table.Item {
	it := r.commitItem(id, 1, commitValue(""), r.at, "")
	it[attrCount], it[attrBefore] = table.NumberValue(before-1), table.NumberValue(before)
	delete(it, attrTail)
	return it
}

// add makes an item of consecutive records of one commit, beginning with from. It returns the index
// of the next record.
func (r *restoration) add(from int) (int, error) {
	first := r.Records[from]
	stored := commitValue(first.CommitID)
	commit, _, _ := commitOf(stored)
	bare := r.commitItem(first.Aggregate, first.Number, stored, r.at, "")
	room := storage.MaxItemBytes - table.ItemSize(bare) - itemSpare
	if first.CommitID == "" {
		room = min(room, groupBytes)
	}
	var events [][]byte
	size, to, encoded := 0, from, false
	for ; to < len(r.Records) && r.Records[to].CommitID == first.CommitID; to++ {
		record := r.Records[to]
		event, err := r.packRecord(record, commit)
		if err != nil {
			return 0, fmt.Errorf("restore %s: %w: event %d: %w", record.Aggregate, journaltype.ErrInvalidCommit, record.Number, err)
		}
		if size += len(event); size > room && len(events) > 0 {
			break
		}
		if size > storage.MaxItemBytes-table.ItemSize(bare)-itemSpare {
			return 0, &journaltype.TooLargeError{
				ID: record.Aggregate, What: fmt.Sprintf("event %d, %q,", record.Number, record.EventType), Size: size, Limit: storage.MaxItemBytes, Unit: storage.UnitBytes,
			}
		}
		events, encoded = append(events, event), encoded || record.Encoding != ""
		if s := r.Restoration.Head.Snapshot; s != nil && s.Number == record.Number {
			to++
			break
		}
	}
	joined, err := joinEvents(events)
	if err != nil {
		return 0, err
	}
	bare[attrCount] = table.NumberValue(len(events))
	r.setEvents(bare, joined)
	r.items = append(r.items, bare)
	if !encoded {
		r.plain = append(r.plain, bare)
	}
	return to, nil
}

func (r *restoration) packRecord(record *journaltype.Record, commit string) ([]byte, error) {
	event := storage.Event{
		ID: record.EventID, Type: record.EventType, Payload: record.Payload, Metadata: record.Metadata, Encoding: record.Encoding,
	}
	if event.ID == eventIDIn(commit, record.Number) {
		event.ID = ""
	}
	date := record.OccurredAt.UnixMilli()
	return packEvent(&event, &date)
}

// restoreSnapshot comes last, so that a load never begins after events that do not exist yet.
func (r *restoration) restoreSnapshot(ctx context.Context) error {
	id, s := r.Restoration.Head.Aggregate, r.Restoration.Head.Snapshot
	if s == nil {
		return nil
	}
	if s.Number == 0 {
		return errForeignSnapshot
	}
	end, err := r.commitAt(ctx, id, s.Number)
	if err != nil {
		return err
	}
	if end.last() != s.Number {
		return fmt.Errorf("it is of event %d, inside a commit", s.Number)
	}
	it, err := r.GetItem(ctx, r.Config.Tables.Journal, r.key(id, end.first))
	if err != nil {
		return err
	}
	row := r.rowOf(r.snapshotKey(id, latestSnapshot), s, end.first, it[attrCommit])
	// Archives contain no commands, but placeholders here may.
	commands, err := r.commands(ctx, id)
	if err == nil {
		_, err = r.putCommands(ctx, id, row, commands, s.Number)
	}
	if err != nil {
		return err
	}
	if err := checkSize(id, row); err != nil {
		return err
	}
	if err := r.pinRestored(ctx, row); err != nil {
		return err
	}
	_, err = r.putSnapshot(ctx, id, row)
	return err
}

// pinRestored also stores the snapshot as the one that stands for truncated events, if this journal
// lacks those events too. It does so before the latest snapshot is stored. If the restoration is
// interrupted in between, the latest snapshot is missing, so the next run repeats it.
func (r *restoration) pinRestored(ctx context.Context, row table.Item) error {
	id, before := r.Restoration.Head.Aggregate, r.Restoration.Head.TruncatedBefore
	if before <= 1 {
		return nil
	}
	first, err := r.GetItem(ctx, r.Config.Tables.Journal, r.key(id, 1))
	if err != nil {
		return err
	}
	if here, _ := table.UintOf(first[attrBefore]); here != before {
		return nil // the events exist here
	}
	base := maps.Clone(row)
	maps.Copy(base, r.snapshotKey(id, baseSnapshot))
	base[attrBefore] = table.NumberValue(before)
	return r.putBase(ctx, id, base)
}

var errForeignSnapshot = errors.New("another program wrote the snapshot, so it is not known of which event it is")

// unlessThere returns the error of a restoration. It returns nil if everything is written, by an
// attempt whose reply was lost or by another process that restores the same.
func (r *restoration) unlessThere(ctx context.Context, err error) error {
	if !errors.Is(err, journaltype.ErrConflict) && !errors.As(err, new(*journaltype.DeletedError)) && !errors.Is(err, journaltype.ErrOutcomeUnknown) {
		return err
	}
	there, readErr := r.isThere(ctx)
	switch {
	case there:
		return nil
	case readErr != nil:
		return fmt.Errorf("restore %s: compare with the stored events: %w", r.Restoration.Head.Aggregate, readErr)
	}
	return err
}

func (r *restoration) isThere(ctx context.Context) (bool, error) {
	head, err := r.layout.Head(ctx, r.Restoration.Head.Aggregate)
	switch {
	case errors.Is(err, journaltype.ErrNotFound):
		return false, nil
	case err != nil || head.Version < r.Restoration.Head.Version:
		return false, err
	case len(r.Records) == 0:
		return head.Version == r.Restoration.Head.Version && head.TruncatedBefore == r.Restoration.Head.TruncatedBefore &&
			head.DeletedAt.UnixMilli() == r.Restoration.Head.DeletedAt.UnixMilli(), nil
	}
	i, same := 0, true
	err = r.Events(ctx, r.Restoration.Head.Aggregate, engine.FirstOf(r.Restoration), r.Restoration.Head.Version, func(record *journaltype.Record) bool {
		same = record.Equal(r.Records[i])
		i++
		return same
	})
	if !same || errors.As(err, new(*journaltype.TruncatedError)) || errors.As(err, new(*journaltype.DeletedError)) {
		return false, nil
	}
	return err == nil && i == len(r.Records), err
}

// The methods below make restoration a table.Sending.

func (r *restoration) Target() string { return r.Restoration.Head.Aggregate.String() }

func (r *restoration) BegunAt() time.Time { return r.begun }

// Redate changes only the place in the tail: the events have dates of their own.
func (r *restoration) Redate(now time.Time) {
	if now.Sub(r.at) < table.DateAge {
		return
	}
	r.at, r.token = now, r.Config.NewID()
	for _, it := range r.items {
		if it[attrTime] != nil {
			it[attrTime] = table.NumberValue(now.UnixMilli())
		}
	}
}

func (r *restoration) Attempt(ctx context.Context) error {
	_, err := r.Client.TransactWriteItems(ctx, r.input, table.Once)
	return err
}

func (r *restoration) Explain(err error) error {
	return dynamo.Explain(err, r.Config.Tables.Journal)
}

func (r *restoration) Unknown(err error) *journaltype.OutcomeUnknownError {
	return &journaltype.OutcomeUnknownError{ID: r.Restoration.Head.Aggregate, First: r.Restoration.Head.Version - uint64(len(r.Records)) + 1, CommitID: r.token, Err: err}
}

func (r *restoration) IsWritten(ctx context.Context) (bool, error) { return r.isThere(ctx) }

// replace takes over the commands of a placeholder in the place of the first item.
func (r *restoration) replace(ctx context.Context, placeholder *item, stored table.Item) error {
	first := r.input.TransactItems[0].Put
	takeOver(first.Item, stored)
	size := 0
	for _, it := range r.items {
		size += table.ItemSize(it)
	}
	if table.ItemSize(first.Item) > storage.MaxItemBytes || size > storage.MaxCommitBytes {
		if err := r.guard(ctx, r.Restoration.Head.Aggregate, placeholder.commands()); err != nil {
			return fmt.Errorf("restore %s, nothing written: %w", r.Restoration.Head.Aggregate, err)
		}
		delete(first.Item, attrNoted)
		first.Item[attrGuards] = &types.AttributeValueMemberBOOL{Value: true}
	}
	first.ConditionExpression, first.ExpressionAttributeNames = aws.String("#c = :c"), table.AttributeNames("#c", attrCommit)
	first.ExpressionAttributeValues = table.Item{":c": stored[attrCommit]}
	// DynamoDB may remember the earlier request under the old token.
	r.token = r.Config.NewID()
	return table.ErrSendAgain
}

func (r *restoration) Refusal(ctx context.Context, err error, ambiguous bool, left time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, max(left, table.MinAttempt))
	defer cancel()
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) {
		for i, reason := range canceled.CancellationReasons {
			if !table.ConditionFailed(reason) {
				continue
			}
			if there, err := r.parse(reason.Item); i == 0 && err == nil && there.isPlaceholder() {
				return r.replace(ctx, there, reason.Item)
			}
			there, err := r.end(ctx, r.Restoration.Head.Aggregate)
			switch {
			case err != nil && ambiguous:
				return r.Unknown(err)
			case err != nil:
				return fmt.Errorf("restore %s, nothing written: %w", r.Restoration.Head.Aggregate, err)
			case there.isTombstone():
				return fmt.Errorf("restore %s, nothing written: %w", r.Restoration.Head.Aggregate, there.deletedError())
			}
			return &journaltype.ConflictError{ID: r.Restoration.Head.Aggregate, Expected: r.Expected, Actual: there.last()}
		}
	}
	if ambiguous {
		return r.Unknown(err)
	}
	return fmt.Errorf("restore %s, nothing written: %w", r.Restoration.Head.Aggregate, r.Explain(err))
}
