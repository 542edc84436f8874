package engine

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Append writes a commit: all of its events and Commit.Writes, or nothing. In the layout
// Classic it makes one TransactWriteItems, which includes the snapshot. In Packed it makes one
// PutItem, or a TransactWriteItems if the events need several items or there are Writes. In
// Packed it first reads what Commit.Proven and Commit.Commands do not supply, and writes the
// snapshot afterwards.
//
// Append repeats a request that DynamoDB throttles, that meets a transaction on one of its
// items, or whose reply is lost. It repeats it with the same commit id until Config.RetryBudget
// or the context ends. It never writes the commit twice.
//
// Nothing was written if the error is ErrConflict, *DeletedError, *DuplicateCommandError,
// *WriteRefusedError, *TooLargeError, ErrInvalidCommit, *EncodingError, ErrKeyDestroyed,
// *ConfigError, *aggregate.InvalidIDError, ErrRestored (layout Packed), ErrThrottled,
// ErrContended, ErrUnavailable, ErrTableMissing, ErrAccess, *CorruptItemError, or only the
// error of ctx. ErrOutcomeUnknown means that the commit may have been written, for example if
// ctx ended during a request; see Journal.Resolve.
func (j *Engine) Append(ctx context.Context, c storage.Commit) (storage.Receipt, error) {
	if len(c.Events) == 0 && c.CommandID == "" {
		return storage.Receipt{}, fmt.Errorf("append to %s: %w: it has no events", c.Aggregate, journaltype.ErrInvalidCommit)
	}
	d, err := j.draft(ctx, c)
	if err != nil {
		return storage.Receipt{}, err
	}
	p, err := j.Layout.Part(ctx, d)
	if err != nil {
		return storage.Receipt{}, err
	}
	if err := p.Build(j.Date()); err != nil {
		return storage.Receipt{}, err
	}
	if err := j.Send(ctx, p); err != nil {
		return storage.Receipt{}, err
	}
	p.Notify()
	return p.Finish(ctx), nil
}

// Resolve implements Journal.Resolve.
func (j *Engine) Resolve(ctx context.Context, unknown *journaltype.OutcomeUnknownError) (bool, error) {
	if unknown == nil || unknown.First == 0 || unknown.CommitID == "" {
		return false, fmt.Errorf("resolve: %w: the error needs ID, First and CommitID of the commit", journaltype.ErrInvalidCommit)
	}
	if err := unknown.ID.Validate(); err != nil {
		return false, fmt.Errorf("resolve: %w", err)
	}
	if unknown.Joint {
		return j.resolveJoint(ctx, unknown)
	}
	written, executed, err := j.Layout.LookFor(ctx, unknown)
	if err != nil {
		return false, fmt.Errorf("resolve commit %s: %w", unknown.CommitID, err)
	}
	return written || executed, nil
}
