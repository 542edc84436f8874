package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/millrace-dev/millrace/aggregate"
)

// Events yields the events of an aggregate with the numbers from..to, in order and without a gap,
// or ends with an error. It never ends early without an error: a caller knows from the head which
// events exist.
//
// In the layout [Packed] it is one strongly consistent Query, page by page (1 MB each, one read
// unit for each 4 KB), and one more where the first event is inside a commit.
//
// In the layout [Classic] it reads a few events by key. It reads more from the aggregate index,
// page by page (1 MB each), and reads by key what that index, being eventually consistent, does not
// show yet. It reads an event that is still absent again, with backoff and finally in a
// transaction, before it reports it as corrupt: head and events are separate reads, and a
// transaction can show in one before the other.
//
// If events were removed on purpose, it ends with a [*TruncatedError], which says where to
// continue. It may yield some of them before.
//
// Errors: [*CorruptItemError], [*TruncatedError], [*EncodingError], [ErrKeyDestroyed],
// [*EventTypeError], [ErrTableMissing], [ErrThrottled], [ErrAccess], *aggregate.InvalidIDError, the
// context's.
func (j *Journal) Events(ctx context.Context, id aggregate.ID, from, to uint64) iter.Seq2[*Record, error] {
	return j.engine.Events(ctx, id, from, to)
}

// AllEvents yields all events of an aggregate that it has at the time of the call, in order. If
// events were removed on purpose, it leaves them out. It costs a [Journal.Version] and an
// [Journal.Events].
//
// Errors: those of both, except [*TruncatedError].
func (j *Journal) AllEvents(ctx context.Context, id aggregate.ID) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		version, err := j.Version(ctx, id)
		if err != nil {
			yield(nil, err)
			return
		}
		for from := uint64(1); from <= version; {
			var truncated *TruncatedError
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

func (j *engine) Events(ctx context.Context, id aggregate.ID, from, to uint64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		var undecodable error
		err := id.Validate()
		if err == nil {
			err = j.layout.events(ctx, id, from, to, func(stored *Record) bool {
				var r *Record
				if r, undecodable = j.Decode(ctx, stored); undecodable != nil {
					return false
				}
				return yield(r, nil)
			})
		}
		if undecodable != nil {
			err = undecodable
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, fmt.Errorf("read events %d to %d of %s: %w", from, to, id, err))
		}
	}
}

// errStop: the reader of the sequence has had enough.
var errStop = errors.New("stop")
