package journal

import (
	"context"
	"fmt"

	"github.com/millrace-dev/millrace/internal/storage"
)

// Append is described at eventlog.Engine, as are all exported methods of engine that Journal does
// not declare.
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
	p.notify()
	return p.finish(ctx), nil
}

// Resolve reports whether the commit of an [OutcomeUnknownError] was written. It makes one strongly
// consistent read, or two if the commit has a command id. With a command id, it also returns true
// if another commit of the same command was written, because the command was executed.
//
// False is final in two cases only: no request of the commit can be under way any more, which takes
// seconds, or the version of the aggregate has passed [OutcomeUnknownError.First].
//
// Resolve needs only the exported fields of the error, so another process can call it too. In the
// layout [Classic], [Journal.Truncate] and [Journal.Delete] remove the events of a commit. Resolve
// then finds the commit only by its command id.
//
// Errors: [ErrInvalidCommit] if the error lacks fields, [ErrTableMissing], [ErrThrottled],
// [ErrAccess], *aggregate.InvalidIDError, and the error of ctx.
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
