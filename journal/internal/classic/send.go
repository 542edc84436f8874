package classic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/internal/engine"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

func (t *commit) Attempt(ctx context.Context) error {
	_, err := t.layout.Client.TransactWriteItems(ctx, t.input, table.Once)
	return err
}

func (t *commit) IsWritten(ctx context.Context) (bool, error) {
	written, _, err := t.layout.LookFor(ctx, t.Unknown(nil))
	return written, err
}

// showsWritten reports whether the old items of a refused transaction prove that it was written
// before. They do if the first event or the guard of the command has the id of this commit. The
// head proves nothing, because a later commit may have changed it.
func (t *commit) showsWritten(reasons []types.CancellationReason) bool {
	return len(t.Commit.Events) > 0 && isOf(reasons[1].Item, t.Receipt.CommitID) ||
		t.guard > 0 && isOf(reasons[t.guard].Item, t.Receipt.CommitID)
}

func (t *commit) Explain(err error) error {
	return t.layout.ExplainActions(err, t.input.TransactItems)
}

// Redate dates the commit again but keeps its id. Groups find events by their dates, and find an
// event late if it becomes visible long after its date.
func (t *commit) Redate(now time.Time) {
	l := t.layout
	if !t.dated || now.Sub(t.Receipt.OccurredAt) < table.DateAge {
		return
	}
	t.Receipt.OccurredAt = now
	for _, action := range t.input.TransactItems[1 : 1+len(t.Commit.Events)] {
		action.Put.Item[l.Config.Attributes.OccurredAt] = table.NumberValue(l.Config.StoredTime(now.UnixMilli()))
	}
	if t.guard > 0 {
		// its time to live begins at the new date
		t.input.TransactItems[t.guard].Put.Item = l.guardItem(t)
	}
	// DynamoDB may remember the earlier request under the old token.
	token := l.Config.NewID()
	t.input.ClientRequestToken = &token
}

// Refusal returns the reason why a transaction cannot be written. It returns nil if an attempt
// whose reply was lost has written it; see showsWritten.
func (t *commit) Refusal(ctx context.Context, err error, ambiguous bool, left time.Duration) error {
	l := t.layout
	var reasons []types.CancellationReason
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) && len(canceled.CancellationReasons) == len(t.input.TransactItems) {
		reasons = canceled.CancellationReasons
		if t.showsWritten(reasons) {
			return nil
		}
	}
	if ambiguous {
		// DynamoDB does not promise to evaluate all conditions once one has failed. A refusal for
		// another reason than a failed condition proves nothing about earlier attempts.
		unknown := t.Unknown(err)
		if done, readErr := table.IsWrittenWithin(ctx, t, left); done {
			return nil
		} else if readErr != nil || !slices.ContainsFunc(reasons, table.ConditionFailed) {
			return unknown
		}
		if reasons != nil && t.guard == 0 && l.mayBeRemoved(t, reasons[0].Item) {
			return unknown
		}
	}
	if t.guard > 0 && reasons != nil && table.ConditionFailed(reasons[t.guard]) {
		return l.duplicate(t.Commit, reasons[t.guard].Item)
	}
	for i, reason := range reasons {
		switch {
		case !table.IsFinal(reason):
		case i >= t.writes && ambiguous:
			// The caller's condition may become true again while an earlier attempt is still under
			// way.
			return t.Unknown(err)
		case i >= t.writes:
			return t.WriteRefused(i-t.writes, reason)
		case !table.ConditionFailed(reason):
		case i == 0 && l.adaptToHead(t, reason.Item):
			return table.ErrSendAgain
		case i == 0:
			refused := l.conflict(t.Commit, reason.Item)
			var conflict *journaltype.ConflictError
			if ambiguous && errors.As(refused, &conflict) && conflict.Actual < conflict.Expected {
				// The head may still reach the version that an attempt under way expects.
				return t.Unknown(err)
			}
			return refused
		default:
			return l.taken(ctx, t, i, ambiguous, left)
		}
	}
	return fmt.Errorf("append to %s, nothing written: %w", t.Aggregate, t.Explain(err))
}

// taken explains why an event with this number already exists although DynamoDB reported no failure
// of the head's condition. Either DynamoDB did not evaluate that condition, and this is a conflict.
// Or the head has the expected version: it was restored from a backup, or another program wrote an
// event without updating the head.
func (l *layout) taken(ctx context.Context, t *commit, action int, ambiguous bool, left time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, max(left, table.MinAttempt))
	defer cancel()
	id := t.Commit.Aggregate
	row, err := l.GetItem(ctx, l.Config.Tables.Snapshot, l.key(id, 0))
	if err != nil && ambiguous {
		return t.Unknown(err)
	}
	if err != nil {
		return fmt.Errorf("append to %s, nothing written: %w", id, err)
	}
	version, _ := table.UintOf(row[l.Config.Attributes.Version])
	if version > t.Commit.Expected || row[attrDeletedAt] != nil {
		return l.conflict(t.Commit, row)
	}
	item := t.input.TransactItems[action].Put.Item
	partition, sort := l.KeysOf(item)
	number, _ := table.UintOf(item[l.Config.Attributes.SequenceNumber])
	return &journaltype.CorruptItemError{
		Aggregate: id, Number: number, Table: l.Config.Tables.Journal, PartitionKey: partition, SortKey: sort,
		Reason: fmt.Sprintf("exists although the head of its aggregate is at version %d", version),
	}
}

// mayBeRemoved reports whether the commit's first event may have been truncated. The event would
// show whether the commit was written.
func (l *layout) mayBeRemoved(t *commit, head table.Item) bool {
	before, _ := table.UintOf(head[attrTruncatedBefore])
	return before > t.Commit.Expected+1
}

func (l *layout) conflict(c *storage.Commit, head table.Item) error {
	conflict := &journaltype.ConflictError{ID: c.Aggregate, Expected: c.Expected}
	if head == nil {
		return conflict
	}
	h, err := l.headOf(c.Aggregate, head)
	if err == nil && !h.DeletedAt.IsZero() {
		err = engine.DeletedErrorOf(h)
	}
	if err != nil {
		return fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, err)
	}
	conflict.Actual = h.Version
	return conflict
}

func (l *layout) duplicate(c *storage.Commit, guard table.Item) error {
	command, err := l.commandOf(guard)
	if err != nil {
		return fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, err)
	}
	return &journaltype.DuplicateCommandError{
		ID: c.Aggregate, CommandID: command.ID, CommitID: command.CommitID, First: command.First, Version: command.Version,
	}
}

// LookFor reads the commit's first event and the guard of its command.
func (l *layout) LookFor(ctx context.Context, unknown *journaltype.OutcomeUnknownError) (written, executed bool, err error) {
	keys := []table.Item{l.key(unknown.ID, unknown.First)}
	if unknown.CommandID != "" {
		// The guard may have expired, or the event may have been removed. Both at once is rare.
		keys = append(keys, l.guardKey(unknown.ID, unknown.CommandID))
	}
	for i, key := range keys {
		it, err := l.GetItem(ctx, l.Config.Tables.Journal, key)
		if err != nil {
			return false, false, err
		}
		if isOf(it, unknown.CommitID) {
			return true, true, nil
		}
		executed = i > 0 && it != nil
	}
	return false, executed, nil
}

// isOf reports whether the commit wrote the item. The item may be nil.
func isOf(it table.Item, commitID string) bool {
	stored, ok := table.StringOf(it[engine.AttrCommitID])
	return ok && stored == commitID
}
