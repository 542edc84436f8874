package repository

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// Commit describes a commit that is about to be written. A [SnapshotPolicy] and [WithWrites]
// receive it.
type Commit struct {
	Aggregate aggregate.ID // the aggregate of the commit
	// Before and After are the versions of the aggregate before and after the commit.
	Before, After uint64
	// Events are the events of the commit, in their order. They must not be changed.
	Events []EventInfo
	// CommandID is the id of [WithCommandID], empty if the call has none.
	CommandID string
}

// EventInfo describes an event that is about to be written.
type EventInfo struct {
	Aggregate aggregate.ID // the aggregate of the event
	Number    uint64       // the sequence number
	ID        string       // the id of the event
	Type      string       // the name of the event type
	Payload   []byte       // Payload is the stored form, before compression and encryption.
}

// encode returns an event in its stored form, with the given number and without metadata.
func (r *Repository[S]) encode(id aggregate.ID, number uint64, event aggregate.Event[S]) (EventInfo, error) {
	encoded, err := r.definition.Encode(event)
	if err != nil {
		return EventInfo{}, err
	}
	info := EventInfo{Aggregate: id, Number: number, ID: r.newEventID(), Type: encoded.Type, Payload: encoded.Payload}
	if r.config.EventPayload == nil {
		return info, nil
	}
	if info.Payload, err = r.config.EventPayload(info); err != nil {
		return EventInfo{}, &aggregate.UnencodableEventError{AggregateType: id.Type, EventType: info.Type, Err: err}
	}
	return info, nil
}

// commit appends events and applies them to the aggregate. After an error the aggregate must not be
// used. Replayed says whether the state is known to be the result of the events. The result reports
// whether that is known after the commit.
func (r *Repository[S]) commit(
	ctx context.Context, a *Aggregate[S], replayed bool, events aggregate.Events[S], options options,
) (bool, error) {
	commit, replayed, err := r.draft(ctx, a, replayed, events, options)
	if err != nil {
		return replayed, err
	}
	begun := time.Now()
	receipt, err := r.append(ctx, commit)
	r.counters.commit(len(events), begun, err)
	if err != nil {
		return replayed, err
	}
	r.written(ctx, a, commit, receipt)
	return replayed, nil
}

// draft makes the commit of some events, and applies them to the aggregate. Its parameters and
// results are those of commit.
func (r *Repository[S]) draft(
	ctx context.Context, a *Aggregate[S], replayed bool, events aggregate.Events[S], options options,
) (storage.Commit, bool, error) {
	about := Commit{
		Aggregate: a.ID, Before: a.Version, After: a.Version + uint64(len(events)), Events: make([]EventInfo, len(events)),
		CommandID: cmp.Or(options.commandID, options.jointCommandID),
	}
	commit := storage.Commit{
		Aggregate: a.ID, Expected: a.Version, Proven: a.isLast(), Events: make([]storage.Event, len(events)),
		CommandID: options.commandID, Fingerprint: options.fingerprint, Commands: a.from().commands, ReadsOn: options.readsOn,
	}
	metadata := aggregate.MetadataFromContext(ctx)
	for i, event := range events {
		info, err := r.encode(a.ID, about.Before+uint64(i)+1, event)
		if err != nil {
			return commit, replayed, fmt.Errorf("append to %s, nothing written: event %d of the commit: %w", a.ID, i+1, err)
		}
		about.Events[i] = info
		commit.Events[i] = storage.Event{ID: info.ID, Type: info.Type, Payload: info.Payload, Metadata: metadata}
	}
	if err := r.apply(a, about); err != nil {
		return commit, replayed, err
	}
	if len(events) == 0 {
		return commit, replayed, nil
	}
	writes, err := options.writesOf(about)
	if err != nil {
		return commit, replayed, fmt.Errorf("append to %s, nothing written: %w", a.ID, err)
	}
	commit.Writes = writes
	due, worth := r.isDue(*a, about, replayed)
	if due {
		if !replayed {
			if *a, err = r.replayed(ctx, about, options.commandID); err != nil {
				return commit, replayed, err
			}
			replayed, commit.Proven = true, true
		}
		if commit.Snapshot = r.snapshot(a); commit.Snapshot != nil {
			commit.Worth, commit.Redundancy = worth, r.redundancy(a.from(), commit.Expected)
		}
	}
	return commit, replayed, nil
}

// written records the result of a commit on the aggregate.
func (r *Repository[S]) written(ctx context.Context, a *Aggregate[S], commit storage.Commit, receipt storage.Receipt) {
	if commit.Snapshot != nil && !receipt.SnapshotDeclined {
		r.counters.snapshot(receipt.SnapshotLeftOut)
		a.setFrom(r.afterSnapshot(ctx, *a, commit, receipt))
	}
	o := a.from()
	if receipt.Head.Item == 0 {
		receipt.Head = o.worth.Head
	}
	o.last, o.commands, o.worth = true, receipt.Commands, storage.Worth{Head: receipt.Head}
	a.setFrom(o)
	r.recent.written(a.ID, a.Version)
}

// apply brings an aggregate to the version after a commit. It applies the events as a load will
// replay them. They share no memory with the caller's events.
func (r *Repository[S]) apply(a *Aggregate[S], c Commit) error {
	for i, e := range c.Events {
		stored, err := r.definition.Decode(e.Type, e.Payload)
		if err != nil {
			return fmt.Errorf("append to %s, nothing written: event %d of the commit could not be read back: %w", a.ID, i+1, err)
		}
		stored.Apply(&a.State)
	}
	a.Version = c.After
	return nil
}

// replayed returns the aggregate after a commit that is about to be written, from the stored events
// and the events of the commit.
func (r *Repository[S]) replayed(ctx context.Context, c Commit, commandID string) (Aggregate[S], error) {
	a, err := r.currentAt(ctx, c.Aggregate, c.Before, commandID)
	if err == nil {
		err = r.apply(&a, c)
	}
	return a, err
}
