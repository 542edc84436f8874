package journal

import (
	"context"
)

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
