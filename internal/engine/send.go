package engine

import (
	"time"

	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Target returns the name of the aggregate.
func (d *Draft) Target() string { return d.Aggregate.String() }

// BegunAt returns when the retry budget began.
func (d *Draft) BegunAt() time.Time { return d.Begun }

// Unknown keeps the error of the SDK unchanged, because the sentinels of package journal mean that
// nothing was written.
func (d *Draft) Unknown(err error) *journaltype.OutcomeUnknownError {
	return &journaltype.OutcomeUnknownError{ID: d.Aggregate, First: d.Expected + 1, CommitID: d.Receipt.CommitID, CommandID: d.CommandID, Err: err}
}
