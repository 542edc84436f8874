package repository

import (
	"context"
	"errors"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// origin proves where an aggregate comes from, and holds data that its next commit needs.
type origin[S any] struct {
	// The proof is bound to the values of these three fields.
	by      *Repository[S]
	id      aggregate.ID
	version uint64
	// last reports that this process has read or written version as the last event. A commit needs
	// no other proof of it; see storage.Commit.
	last bool
	// commands are the ids of the commands that led to the version, as the journal has returned
	// them. The next commit needs them.
	commands *storage.Commands
	// state is the replayed state, if an assignment copies values of S completely.
	state S
	// encoded is the replayed state after the event encodedAt, in the encoding of the snapshot
	// codec. It is set only if the encoded form is known.
	encoded   []byte
	encodedAt uint64

	worth     storage.Worth // of the load that has made it; without one only the head
	redundant []uint64      // the redundant snapshots that the head lists
	listed    bool          // redundant is known
	// rebuild reports that the stored snapshot has an earlier form and must be replaced.
	rebuild bool
	// newer reports that the stored snapshot has a later schema.
	newer bool
}

func (a Aggregate[S]) from() origin[S] {
	if a.origin == nil {
		return origin[S]{}
	}
	return *a.origin
}

func (a *Aggregate[S]) setFrom(o origin[S]) { a.origin = &o }

// isLast reports whether the version is known to be the number of the last event. It does not
// detect changes by the caller; see isOwn.
func (a Aggregate[S]) isLast() bool { return a.Version == 0 || a.origin != nil && a.origin.last }

// setLoaded records the result of a load.
func (a *Aggregate[S]) setLoaded(l storage.Loaded) {
	o := a.from()
	o.last, o.commands, o.worth = true, l.Commands, l.Worth
	a.setFrom(o)
}

// knowsCommands reports whether the ids of all commands up to the version are known.
func (a Aggregate[S]) knowsCommands() bool {
	return a.origin != nil && a.origin.commands != nil && a.origin.commands.Version == a.Version
}

// setLast records that the version is the number of the last event, and the commands that led to
// it.
func (a *Aggregate[S]) setLast(commands *storage.Commands) {
	if o := a.from(); !o.last || o.commands != commands {
		o.last, o.commands = true, commands
		a.setFrom(o)
	}
}

// encoded returns the encoded state if it is known.
func (a Aggregate[S]) encoded() ([]byte, bool) {
	if a.origin == nil || a.origin.encoded == nil || a.origin.encodedAt != a.Version {
		return nil, false
	}
	return a.origin.encoded, true
}

func (a *Aggregate[S]) setEncoded(payload []byte) {
	o := a.from()
	o.encoded, o.encodedAt = payload, a.Version
	a.setFrom(o)
}

// sealed returns an aggregate with its proof, to be returned to the caller.
func (r *Repository[S]) sealed(a Aggregate[S]) Aggregate[S] {
	o := a.from()
	o.by, o.id, o.version = r, a.ID, a.Version
	if o.encodedAt != a.Version {
		o.encoded = nil
	}
	if r.flat {
		o.state = a.State
	}
	a.setFrom(o)
	return a
}

// isOwn reports whether this repository returned an aggregate with this id and version.
func (r *Repository[S]) isOwn(a Aggregate[S]) bool {
	o := a.origin
	return o != nil && o.by == r && o.id == a.ID && o.version == a.Version
}

// base returns the aggregate to append to. Its state shares no memory with the State of the caller.
// Replayed reports whether the state is the result of the events. Otherwise the caller may have
// changed it through a map, slice or pointer, and it must become neither a snapshot nor an entry of
// the cache.
func (r *Repository[S]) base(
	ctx context.Context, a Aggregate[S], commandID string,
) (base Aggregate[S], replayed bool, err error) {
	if a.Version == 0 {
		// The condition of the commit checks the version.
		return Aggregate[S]{ID: a.ID}, true, nil
	}
	if !r.isOwn(a) {
		base, err = r.currentAt(ctx, a.ID, a.Version, commandID)
		return base, true, err
	}
	a.Repeated = false // it is about another call
	if r.flat {
		a.State = a.origin.state
		return a, true, nil
	}
	if base, ok := r.decoded(a); ok {
		return base, true, nil
	}
	base, err = r.copyOf(a)
	return base, false, err
}

// currentAt returns the aggregate to append to if it is at a version. Otherwise it returns a
// [*journal.ConflictError] or a [*journal.DeletedError], or a [*journal.DuplicateCommandError] if
// the aggregate knows the command. The journal checks in the same order.
func (r *Repository[S]) currentAt(
	ctx context.Context, id aggregate.ID, version uint64, commandID string,
) (Aggregate[S], error) {
	a, err := r.currentOrNew(ctx, id)
	if err == nil && a.Version == version {
		return a, nil
	}
	var deleted *journal.DeletedError
	if err == nil {
		err = &journal.ConflictError{ID: id, Expected: version, Actual: a.Version}
	} else if !errors.As(err, &deleted) || deleted.ID != id {
		return a, err
	}
	if commandID == "" {
		return a, err
	}
	command, known, failed := r.journal.Command(ctx, id, commandID)
	switch {
	case failed != nil:
		return a, failed
	case !known:
		return a, err
	}
	return a, &journal.DuplicateCommandError{
		ID: id, CommandID: command.ID, CommitID: command.CommitID, First: command.First, Version: command.Version,
	}
}
