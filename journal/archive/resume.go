package archive

import (
	"errors"
	"fmt"
	"io"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// Position is a place at which an export can be resumed. The zero value is the beginning.
type Position struct {
	// Offset is the number of complete bytes of the archive. Cut off the bytes after them.
	Offset int64
	// After is the last complete aggregate. Aggregates after it that were left out are read again.
	After aggregate.ID
	// Aggregates and Events count the complete ones. LeftOut counts the aggregates that were left
	// out before them.
	Aggregates, Events, LeftOut int64
	// Table is the name of the journal table that the archive is of. It is empty if the archive
	// does not name it, so Check cannot compare it.
	Table string
	// Only is the selection with which the archive was begun.
	Only Selection
	// Complete means that the archive has its total line, so Export has nothing left to do.
	Complete bool
}

// Check returns an [*OtherJournalError] if the archive is of a journal with another journal table.
// [Export] calls it. Call it before you cut off the file, so that a refused export changes nothing.
//
// A copy of the journal under another name, such as a table that was restored from a backup, counts
// as another journal: it can lack events that the archive has. Check does not distinguish tables
// with the same name in different accounts or regions.
func (p Position) Check(j *journal.Journal) error {
	if table := j.Config().Tables.Journal; p.Table != "" && p.Table != table {
		return &OtherJournalError{Table: p.Table, Given: table}
	}
	return nil
}

// ResumePosition reads an archive whose export was interrupted, at any byte, and returns where to
// resume it. Cut the file to [Position.Offset] bytes, and pass the position to [Export], with a
// writer that appends. An empty file is the beginning. [Position.Check] reports whether the archive
// is of another journal.
//
// If nothing can be cut off, as in an object store, copy that many bytes to a new object and let
// the export append to it.
//
// Everything before the position is verified. If the archive is damaged before its end, the
// position is the end of the last aggregate before the damage.
//
// Errors: [ErrNotArchive], after which nothing should be cut off, and the errors of r.
func ResumePosition(r io.Reader) (Position, error) {
	in := newReader(r)
	for {
		_, err := in.next()
		var fault *LineError
		switch {
		case err == nil:
		case errors.Is(err, ErrNotArchive):
			return Position{}, fmt.Errorf("resume export: %w", err)
		case errors.Is(err, io.EOF), errors.As(err, &fault):
			return in.done, nil
		default:
			return Position{}, fmt.Errorf("resume export: %w", err)
		}
	}
}
