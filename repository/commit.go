package repository

import "github.com/millrace-dev/millrace/aggregate"

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
