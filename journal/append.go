package journal

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/internal/storage"
)

// Append is described at eventlog.Engine, as are all exported methods of engine that Journal does
// not have.
func (j *engine) Append(ctx context.Context, c commit) (storage.Receipt, error) {
	t, err := j.build(ctx, c)
	if err != nil {
		return storage.Receipt{}, err
	}
	if err := j.send(ctx, t); err != nil {
		return storage.Receipt{}, err
	}
	if len(c.Events) > 0 {
		j.watchers.notify(t.commit.Aggregate, t.receipt.Version)
	}
	return t.receipt, nil
}

// Resolve reports whether the commit of an [OutcomeUnknownError] was written, with one strongly
// consistent read, or two if it has a command id. With a command id, it also returns true if
// another commit of the same command was written: the command was executed. False is final only
// when no request of the commit can be under way any more, which takes seconds, or when the head
// has passed [OutcomeUnknownError.First].
//
// It needs only the fields of the error, so another process can ask too. It finds a commit whose
// events were removed since by [Journal.Truncate] or [Journal.Delete] only by its command id.
//
// Errors: [ErrInvalidCommit] if the error lacks fields, [ErrTableMissing], [ErrThrottled],
// [ErrAccess], *aggregate.InvalidIDError, the context's.
func (j *Journal) Resolve(ctx context.Context, unknown *OutcomeUnknownError) (bool, error) {
	return j.engine.Resolve(ctx, unknown)
}

func (j *engine) Resolve(ctx context.Context, unknown *OutcomeUnknownError) (bool, error) {
	if unknown == nil || unknown.First == 0 || unknown.CommitID == "" {
		return false, fmt.Errorf("resolve: %w: the error needs ID, First and CommitID of the commit", ErrInvalidCommit)
	}
	if err := unknown.ID.Validate(); err != nil {
		return false, fmt.Errorf("resolve: %w", err)
	}
	written, executed, err := j.lookFor(ctx, unknown)
	return written || executed, err
}

// lookFor reports whether a commit was written, and whether its command was executed, by this
// commit or by another one.
func (j *engine) lookFor(ctx context.Context, unknown *OutcomeUnknownError) (written, executed bool, err error) {
	keys := []item{j.key(unknown.ID, unknown.First)}
	if unknown.CommandID != "" {
		// The guard may have expired and the event may have been removed; both together are rare.
		keys = append(keys, j.guardKey(unknown.ID, unknown.CommandID))
	}
	for i, key := range keys {
		it, err := j.getItem(ctx, j.config.Tables.Journal, key)
		if err != nil {
			return false, false, fmt.Errorf("resolve commit %s: %w", unknown.CommitID, err)
		}
		if isOf(it, unknown.CommitID) {
			return true, true, nil
		}
		executed = i > 0 && it != nil
	}
	return false, executed, nil
}

// isOf reports whether a commit wrote the item, which may be nil.
func isOf(it item, commitID string) bool {
	stored, ok := stringOf(it[attrCommitID])
	return ok && stored == commitID
}
