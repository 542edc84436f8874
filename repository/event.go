package repository

import "github.com/millrace-dev/millrace/aggregate"

// EventInfo says which event [Config.EventPayload] is asked about.
type EventInfo struct {
	Aggregate aggregate.ID
	Number    uint64 // its sequence number
	ID        string
	Type      string
}

// encode gives an event as it is stored with the given number, but for its metadata.
func (r *Repository[S]) encode(id aggregate.ID, number uint64, event aggregate.Event[S]) (EventInfo, []byte, error) {
	encoded, err := r.definition.Encode(event)
	if err != nil {
		return EventInfo{}, nil, err
	}
	info := EventInfo{Aggregate: id, Number: number, ID: r.newEventID(), Type: encoded.Type}
	if r.config.EventPayload == nil {
		return info, encoded.Payload, nil
	}
	payload, err := r.config.EventPayload(info, encoded.Payload)
	if err != nil {
		return EventInfo{}, nil, &aggregate.UnencodableEventError{AggregateType: id.Type, EventType: info.Type, Err: err}
	}
	return info, payload, nil
}
