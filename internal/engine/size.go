package engine

import (
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// EventSize returns the largest number of bytes that an event can take of storage.MaxItemBytes and
// storage.MaxEventsBytes, at any place in the aggregate. If Append would refuse the event, EventSize
// returns the error, so that a writer that fills transactions knows beforehand. It does not
// encode: it counts the plain payload plus the overhead of Config.Encodings. So it also refuses
// an event over 400 KB that Append would accept after compression.
//
// Errors: *TooLargeError, ErrInvalidCommit, *aggregate.InvalidIDError.
func (j *Engine) EventSize(id aggregate.ID, e storage.Event) (int, error) {
	if err := id.Validate(); err != nil {
		return 0, err
	}
	if err := validateEvent(e); err != nil {
		return 0, fmt.Errorf("append to %s: %w", id, err)
	}
	e = marked(id, e)
	overhead := 0
	if e.Encoding == "" && !j.raw {
		overhead = j.encodingOverhead()
	}
	size := j.Layout.EventSize(id, e, overhead)
	if size > storage.MaxItemBytes {
		return 0, &journaltype.TooLargeError{ID: id, What: fmt.Sprintf("event %q", e.Type), Size: size, Limit: storage.MaxItemBytes, Unit: storage.UnitBytes}
	}
	return size, nil
}
