package journal

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/internal/storage"
)

// Append is described at eventlog.Engine, as are all exported methods of engine that Journal does
// not have.
func (j *engine) Append(ctx context.Context, c commit) (storage.Receipt, error) {
	if len(c.Events) == 0 && c.CommandID == "" {
		return storage.Receipt{}, fmt.Errorf("append to %s: %w: it has no events", c.Aggregate, ErrInvalidCommit)
	}
	d, err := j.draft(ctx, c)
	if err != nil {
		return storage.Receipt{}, err
	}
	p, err := j.layout.part(ctx, d)
	if err != nil {
		return storage.Receipt{}, err
	}
	if err := p.build(j.date()); err != nil {
		return storage.Receipt{}, err
	}
	if err := j.send(ctx, p); err != nil {
		return storage.Receipt{}, err
	}
	p.tell()
	return p.finish(ctx), nil
}

// Resolve reports whether the commit of an [OutcomeUnknownError] was written, with one strongly
// consistent read, or two if it has a command id. With a command id, it also returns true if
// another commit of the same command was written: the command was executed. False is final only
// when no request of the commit can be under way any more, which takes seconds, or when the head
// has passed [OutcomeUnknownError.First].
//
// It needs only the fields of the error, so another process can ask too. In the layout [Classic] it
// finds a commit whose events were removed since by [Journal.Truncate] or [Journal.Delete] only by
// its command id.
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
	if unknown.Joint {
		return j.resolveJoint(ctx, unknown)
	}
	written, executed, err := j.layout.lookFor(ctx, unknown)
	if err != nil {
		return false, fmt.Errorf("resolve commit %s: %w", unknown.CommitID, err)
	}
	return written || executed, nil
}
