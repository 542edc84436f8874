package archive

import (
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
)

// Sentinels for errors.Is.
var (
	// ErrInvalidOptions reports options that cannot work. Nothing was done.
	ErrInvalidOptions = errors.New("invalid options")
	// ErrNotArchive reports that the input is not an archive, or has a later format version.
	// Nothing was written.
	ErrNotArchive = errors.New("not an archive that this version reads")
	// ErrTorn reports that an archive ends before its total line: its export was interrupted, see
	// [ResumePosition], or it was not copied completely. Its complete pages can be imported.
	ErrTorn = errors.New("archive is torn")
	// ErrDamaged reports that a line of an archive was changed after it was written.
	ErrDamaged = errors.New("archive is damaged")
	// ErrFaults reports that a verification found faults, which its report lists.
	ErrFaults = errors.New("verification found faults")
)

// LineError reports a line of an archive that cannot be read, counted from 1. Kind is
// [ErrNotArchive], [ErrTorn] or [ErrDamaged].
type LineError struct {
	Line      int // the number of the line, from 1
	Kind      error
	Aggregate aggregate.ID // the aggregate of the line, zero if unknown
	Reason    string       // what is wrong with the line
}

func (e *LineError) Error() string {
	return fmt.Sprintf("%v: line %d: %s", e.Kind, e.Line, e.Reason)
}
func (e *LineError) Unwrap() error { return e.Kind }

// HistoryError reports that journal and archive disagree about an event of an aggregate, or that
// the archive lacks the snapshot that stands for truncated events. The import changed nothing of
// the aggregate.
type HistoryError struct {
	Aggregate aggregate.ID // the aggregate whose histories differ
	Number    uint64       // the sequence number of the event
	Reason    string       // what is wrong with the history
}

func (e *HistoryError) Error() string {
	return fmt.Sprintf("%s was not changed: at event %d %s: import into another journal, or leave the aggregate out",
		e.Aggregate, e.Number, e.Reason)
}

// OtherJournalError reports that an export was to be resumed with another journal than the one that
// the archive is of. Nothing was written.
type OtherJournalError struct {
	Table string // the journal table that the archive is of
	Given string // the journal table of the journal that was passed
}

func (e *OtherJournalError) Error() string {
	return fmt.Sprintf("the archive is of the journal table %q, not of %q: resume it with the journal that it is of, or begin a new archive",
		e.Table, e.Given)
}
