package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// VersionAt implements Journal.VersionAt.
func (j *Engine) VersionAt(ctx context.Context, id aggregate.ID, at time.Time) (uint64, error) {
	raw := j.Raw()
	head, err := raw.Head(ctx, id)
	if err != nil {
		return 0, err
	}
	if !head.DeletedAt.IsZero() {
		return 0, &journaltype.DeletedError{ID: id, Version: head.Version, At: head.DeletedAt}
	}
	return raw.NumberAt(ctx, head, at)
}

// NumberAt returns the number of the last event of an aggregate that had occurred at a time,
// and 0 if no event had. It searches by bisection, strongly consistent, so it reads about
// log2(n) events, 17 for 100,000. Each takes one request, or two in Packed if the event is
// inside a commit.
//
// The clocks of writers differ, so an event may have an earlier date than the event before it.
// Several numbers may then be right, and the result is one of them.
//
// Errors: *TruncatedError if the event was removed, and the errors of Journal.Events.
func (j *Engine) NumberAt(ctx context.Context, head journaltype.Head, t time.Time) (uint64, error) {
	first := max(head.TruncatedBefore, 1)
	// Events below low had occurred at t. Events from high on had not.
	low, high := first, head.Version+1
	for low < high {
		number := low + (high-low)/2
		var later bool
		err := j.Layout.Events(ctx, head.Aggregate, number, number, func(r *journaltype.Record) bool {
			later = r.OccurredAt.After(t)
			return true
		})
		if err != nil {
			return 0, fmt.Errorf("find event of %s at %s: %w", head.Aggregate, t.Format(time.RFC3339Nano), err)
		}
		if later {
			high = number
		} else {
			low = number + 1
		}
	}
	if low == first && first > 1 {
		return 0, fmt.Errorf("find event of %s at %s: %w", head.Aggregate, t.Format(time.RFC3339Nano),
			&journaltype.TruncatedError{ID: head.Aggregate, Before: head.TruncatedBefore})
	}
	return low - 1, nil
}
