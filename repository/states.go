package repository

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// AnyRepository is a [Repository] of any state type, for tools that show states without knowing
// their type. [github.com/millrace-dev/millrace/process.Manager] implements it too, for the states
// of its processes.
type AnyRepository interface {
	// Type returns the type of the aggregates.
	Type() string
	// States yields the states of an aggregate after some of its events. See [Repository.States].
	States(ctx context.Context, id string, q StatesQuery) iter.Seq2[StateAfter, error]
}

// defaultMaxReplay is the default of [StatesQuery].MaxReplay.
const defaultMaxReplay = 2000

// StatesQuery selects the states that [Repository.States] yields. The zero value selects the states
// after all events.
type StatesQuery struct {
	// From is the number of the first event. Default: 1.
	From uint64
	// To is the number of the last event. Default: the last event of the aggregate. A greater
	// number means the last event too.
	To uint64
	// MaxReplay limits the number of events before From that are replayed. Default: 2,000.
	MaxReplay uint64
}

// StateAfter is the state of an aggregate after an event.
type StateAfter struct {
	// Record is the event. It is nil in the first value of [Repository.States].
	Record *journal.Record
	// State is the state after the event, a value of the repository's state type. It shares no
	// memory with other states. It belongs to the caller.
	State any
}

// Type returns the type of the aggregates of the repository. It makes no request.
func (r *Repository[S]) Type() string { return r.definition.Type() }

// States yields the states of an aggregate after the events from q.From to q.To, in the order of
// the events. The first value has no Record: its State is the state before q.From, which is the
// zero state for event 1. If q.To is less than q.From, that is the only value. The number of the
// last event is read once, so the sequence does not include events that are committed later.
//
// States starts from the latest usable snapshot of event q.From-1 or an earlier one, as
// [Repository.LoadAtVersion] does, and replays the events up to q.From. If these are more than
// q.MaxReplay, it ends with a [*ReplayLimitError] before it reads them. [Config.Redundancy] keeps
// more snapshots.
//
// States reads the head, for one read unit for each 4 KB, the snapshots that it tries, and the
// events that it replays and yields. The events cost as much as with [journal.Journal.Events]. It
// reads them page by page as the sequence is consumed, and reads nothing more after the consumer
// has stopped. States with maps, slices, pointers or interfaces are copied by encoding and decoding
// them once for each event. States neither uses nor changes the states of [Config.Cache].
//
// The sequence ends with the first error, and may yield states before it. Errors:
//
//   - [*ReplayLimitError],
//   - [*NoSuchEventError] if the aggregate has no event q.From-1,
//   - [*journal.TruncatedError] if event q.From has been removed, or an event before it that must
//     be replayed,
//   - [*EventError] for an event that cannot be applied,
//   - [*UnencodableStateError], and the errors of [Repository.Load].
func (r *Repository[S]) States(ctx context.Context, id string, q StatesQuery) iter.Seq2[StateAfter, error] {
	return func(yield func(StateAfter, error) bool) {
		if err := r.states(ctx, id, q, func(s StateAfter) bool { return yield(s, nil) }); err != nil {
			yield(StateAfter{}, fmt.Errorf("load states: %w", err))
		}
	}
}

// states passes states to yield until it returns false.
func (r *Repository[S]) states(ctx context.Context, value string, q StatesQuery, yield func(StateAfter) bool) error {
	q.From, q.MaxReplay = max(q.From, 1), cmp.Or(q.MaxReplay, defaultMaxReplay)
	id, err := r.definition.ID(value)
	if err != nil {
		return err
	}
	var last uint64
	a, err := r.byHead(ctx, id, func(head journal.Head) (Aggregate[S], error) {
		last = head.Version
		return r.loadBefore(ctx, head, q)
	})
	if err != nil {
		return err
	}
	if q.To == 0 || q.To > last {
		q.To = last
	}
	if more, err := r.yieldState(a, nil, yield); !more || err != nil || q.To < q.From {
		return err
	}
	var skipped skipped
	for record, err := range r.journal.Events(ctx, id, q.From, q.To) {
		if err != nil {
			return err
		}
		if err := r.replay(&a, record, &skipped); err != nil {
			return err
		}
		if more, err := r.yieldState(a, record, yield); !more || err != nil {
			return err
		}
	}
	skipped.report(r.config.Logger, id, a.Version)
	return nil
}

// loadBefore returns the aggregate before event q.From. It returns an error instead of reading
// events if they were removed, or if there are too many of them.
func (r *Repository[S]) loadBefore(ctx context.Context, head journal.Head, q StatesQuery) (Aggregate[S], error) {
	number := q.From - 1
	if number > head.Version {
		return Aggregate[S]{}, noSuchEvent(head, number)
	}
	a, err := r.restoreAt(ctx, upTo(head, number), number)
	switch {
	case err != nil:
		return Aggregate[S]{}, err
	case a.Version+1 < head.TruncatedBefore:
		return Aggregate[S]{}, &journal.TruncatedError{ID: head.Aggregate, Before: head.TruncatedBefore}
	case number-a.Version > q.MaxReplay:
		return Aggregate[S]{}, &ReplayLimitError{ID: head.Aggregate, From: q.From, Start: a.Version, Max: q.MaxReplay}
	}
	return a, r.replayTo(ctx, &a, number)
}

// yieldState passes a copy of the state to yield, and returns the result of yield.
func (r *Repository[S]) yieldState(a Aggregate[S], record *journal.Record, yield func(StateAfter) bool) (more bool, err error) {
	own, err := r.ownCopy(&a)
	return err == nil && yield(StateAfter{Record: record, State: own.State}), err
}

// ReplayLimitError reports that [Repository.States] would have to replay more events before its
// first one than [StatesQuery].MaxReplay allows. It has not read them.
type ReplayLimitError struct {
	ID aggregate.ID // the aggregate
	// From is the first event of the query.
	From uint64
	// Start is the event of the snapshot from which the replay would start, or 0 if there is none.
	Start uint64
	// Max is StatesQuery.MaxReplay.
	Max uint64
}

func (e *ReplayLimitError) Error() string {
	return fmt.Sprintf("the state of %s before event %d takes %d events after the latest snapshot before it, and MaxReplay is %d: "+
		"raise it, or keep more snapshots with Redundancy", e.ID, e.From, e.From-1-e.Start, e.Max)
}
