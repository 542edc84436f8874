package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// AllEvents implements Journal.AllEvents.
func (j *Engine) AllEvents(ctx context.Context, id aggregate.ID) iter.Seq2[*journaltype.Record, error] {
	return func(yield func(*journaltype.Record, error) bool) {
		version, err := j.Version(ctx, id)
		if err != nil {
			yield(nil, err)
			return
		}
		for from := uint64(1); from <= version; {
			var truncated *journaltype.TruncatedError
			for r, err := range j.Events(ctx, id, from, version) {
				if errors.As(err, &truncated) && truncated.Before > from {
					break
				}
				if !yield(r, err) || err != nil {
					return
				}
				from = r.Number + 1
			}
			if truncated != nil {
				from = truncated.Before
			}
		}
	}
}

// Events implements Journal.Events.
func (j *Engine) Events(ctx context.Context, id aggregate.ID, from, to uint64) iter.Seq2[*journaltype.Record, error] {
	return func(yield func(*journaltype.Record, error) bool) {
		var undecodable error
		err := id.Validate()
		if err == nil {
			err = j.Layout.Events(ctx, id, from, to, func(stored *journaltype.Record) bool {
				var r *journaltype.Record
				if r, undecodable = j.Decode(ctx, stored); undecodable != nil {
					return false
				}
				return yield(r, nil)
			})
		}
		if undecodable != nil {
			err = undecodable
		}
		if err != nil && !errors.Is(err, ErrStop) {
			yield(nil, fmt.Errorf("read events %d to %d of %s: %w", from, to, id, err))
		}
	}
}

// ErrStop means that the caller of the sequence wants no more.
var ErrStop = errors.New("stop")
