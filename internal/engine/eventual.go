package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// ErrDiscard means that what a load has read and learned does not count. The caller begins again
// with [Engine.Load].
var ErrDiscard = errors.New("discard what was read")

// eventual has the methods of a layout in which a decision may start from an earlier version of an
// aggregate. In such a layout, the place after the last event of each earlier version stays
// occupied. So the condition of a commit, or a read of that place, detects the later version.
type eventual interface {
	// Peek implements Engine.Peek for payloads in stored form.
	Peek(ctx context.Context, id aggregate.ID, exact bool, begin func(journaltype.Head) (uint64, error), apply func(*journaltype.Record) error) (storage.Loaded, error)
	// Continue implements Engine.Continue for payloads in stored form.
	Continue(ctx context.Context, id aggregate.ID, from storage.Loaded, apply func(*journaltype.Record) error) (storage.Loaded, error)
	// Next implements Engine.Next.
	Next(ctx context.Context, id aggregate.ID, version uint64) (bool, error)
	// Executed implements Engine.Executed.
	Executed(ctx context.Context, id aggregate.ID, commands *storage.Commands, commandID string) (storage.Command, bool, error)
}

// Eventual reports whether the layout has [Engine.Peek], [Engine.Continue], [Engine.Next] and
// [Engine.Executed].
func (j *Engine) Eventual() bool {
	_, ok := j.Layout.(eventual)
	return ok
}

// Peek is Load with eventually consistent reads, which cost half. The result is the aggregate after
// some event that was the last one when it was written, usually the last one now. Exact makes the
// read of the snapshot strongly consistent, so that its list of redundant snapshots is complete.
// Begin and apply must change nothing except the state.
//
// Peek returns ErrDiscard unless it succeeds plainly, for example if it meets a removed event, a
// tombstone, an item that cannot be read, or an error of apply. ErrNotFound is a plain success.
// Other errors are those of requests.
func (j *Engine) Peek(
	ctx context.Context, id aggregate.ID, exact bool, begin func(journaltype.Head) (uint64, error), apply func(*journaltype.Record) error,
) (storage.Loaded, error) {
	loaded, err := j.Layout.(eventual).Peek(ctx, id, exact, func(head journaltype.Head) (uint64, error) {
		s, err := j.decodeSnapshot(ctx, id, head.Snapshot)
		if err != nil {
			return 0, ErrDiscard
		}
		head.Snapshot = s
		return begin(head)
	}, func(stored *journaltype.Record) error {
		r, err := j.Decode(ctx, stored)
		if err == nil {
			err = apply(r)
		}
		if err != nil {
			return ErrDiscard
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrDiscard) {
		err = fmt.Errorf("read %s: %w", id, err)
	}
	return loaded, err
}

// Continue reads the commits after a version, strongly consistent, and calls apply with each of
// their events. From is the result of a Load, a Peek or a commit. The result has the command ids of
// the new commits too. ErrDiscard means that events were removed meanwhile. Then, and after any
// other error, the state must not be used. It costs one read unit if there are no new commits.
//
// Errors: those of Load, and ErrRestored.
func (j *Engine) Continue(
	ctx context.Context, id aggregate.ID, from storage.Loaded, apply func(*journaltype.Record) error,
) (storage.Loaded, error) {
	var own error
	loaded, err := j.Layout.(eventual).Continue(ctx, id, from, func(stored *journaltype.Record) error {
		var r *journaltype.Record
		if r, own = j.Decode(ctx, stored); own == nil {
			own = apply(r)
		}
		return own
	})
	switch {
	case own != nil && errors.Is(err, own), errors.Is(err, ErrDiscard):
		return storage.Loaded{}, err
	case err != nil:
		return storage.Loaded{}, fmt.Errorf("read %s: %w", id, err)
	}
	return loaded, nil
}

// Next reports whether anything is in the place after a version, which must be proven as in
// Unchanged: a commit, commands without events, or a tombstone. It reads the place in a
// transaction, so it waits for a commit in progress. It costs two read units, or more if a commit
// is there.
//
// Errors: ErrRestored, ErrThrottled, ErrContended, ErrTableMissing, ErrAccess, and the error of
// ctx.
func (j *Engine) Next(ctx context.Context, id aggregate.ID, version uint64) (bool, error) {
	there, err := j.Layout.(eventual).Next(ctx, id, version)
	if err != nil {
		return false, fmt.Errorf("compare the version of %s: %w", id, err)
	}
	return there, nil
}

// Executed searches for a command id in the ids that a load has returned. It makes no request,
// unless earlier ids of the aggregate are in rows of their own: then it reads one, for one unit.
func (j *Engine) Executed(ctx context.Context, id aggregate.ID, commands *storage.Commands, commandID string) (storage.Command, bool, error) {
	c, ok, err := j.Layout.(eventual).Executed(ctx, id, commands, commandID)
	if err != nil {
		return storage.Command{}, false, fmt.Errorf("read command %q of %s: %w", commandID, id, err)
	}
	return c, ok, nil
}
