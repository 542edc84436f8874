package journal

import (
	"context"
	"fmt"
	"time"
)

// NumberAt gives the number of the last event of an aggregate that had occurred at a time, 0 if there was none. It halves
// the history until it has the place, so it takes one strongly consistent read for each doubling of the number of events:
// 17 for 100,000, one unit each for up to 4 KB.
//
// The clocks of writers differ, so events may be dated earlier than those before them. There are several places then
// where an event at or before the time is followed by a later one, and this is one of them.
//
// Errors: [*TruncatedError] if the place is among events that were removed, and those of [Journal.Events].
func (j *Journal) NumberAt(ctx context.Context, head Head, t time.Time) (uint64, error) {
	first := max(head.TruncatedBefore, 1)
	low, high := first, head.Version+1 // what is before low had occurred, what is from high on had not
	for low < high {
		number := low + (high-low)/2
		records, err := j.byKey(ctx, head.Aggregate, number, number)
		if err != nil {
			return 0, fmt.Errorf("find event of %s at %s: %w", head.Aggregate, t.Format(time.RFC3339Nano), err)
		}
		if records[0].OccurredAt.After(t) {
			high = number
		} else {
			low = number + 1
		}
	}
	if low == first && first > 1 {
		return 0, fmt.Errorf("find event of %s at %s: %w", head.Aggregate, t.Format(time.RFC3339Nano),
			&TruncatedError{ID: head.Aggregate, Before: head.TruncatedBefore})
	}
	return low - 1, nil
}
