package journal

import (
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

func (j *engine) EventSize(id aggregate.ID, e storage.Event) (int, error) {
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
	size := j.layout.eventSize(id, e, overhead)
	if size > storage.MaxItemBytes {
		return 0, &TooLargeError{ID: id, What: fmt.Sprintf("event %q", e.Type), Size: size, Limit: storage.MaxItemBytes, Unit: unitBytes}
	}
	return size, nil
}
