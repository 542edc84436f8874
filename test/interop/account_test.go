package interop_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// Account is the state that the peer has too.
type Account struct {
	Owner   string `json:"owner"`
	Balance int    `json:"balance"`
}

type Opened struct {
	Owner string `json:"owner"`
}

func (Opened) EventType() string  { return "AccountOpened" }
func (e Opened) Apply(a *Account) { a.Owner = e.Owner }

type Deposited struct {
	Amount int `json:"amount"`
}

func (Deposited) EventType() string  { return "AccountDeposited" }
func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }

var Accounts = aggregate.Define[Account]("account", Opened{}, Deposited{}).WithCodec(peerEvents{})

// sharing returns the config of a repository that shares aggregates with the peer.
func sharing(snapshots repository.SnapshotPolicy) repository.Config {
	return repository.Config{
		Snapshots:     snapshots,
		SnapshotCodec: peerSnapshots{},
		EventPayload:  placeInPayload,
	}
}

// peerJSON is the outer form of events and snapshots in event-store-adapter-js.
type peerJSON struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data"`
}

func unwrap(payload []byte) (peerJSON, error) {
	var stored peerJSON
	err := aggregate.JSON.Unmarshal(payload, &stored)
	if err == nil && stored.Data == nil {
		err = fmt.Errorf("%q has no data", payload)
	}
	return stored, err
}

// wrap adds fields to the JSON of v.
func wrap(name string, v any, fields map[string]any) ([]byte, error) {
	own, err := aggregate.JSON.Marshal(v)
	if err != nil {
		return nil, err
	}
	merged := map[string]json.RawMessage{}
	if err := json.Unmarshal(own, &merged); err != nil {
		return nil, err
	}
	for key, value := range fields {
		if merged[key], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(merged)
	if err != nil {
		return nil, err
	}
	return json.Marshal(peerJSON{Type: name, Data: data})
}

func peerID(id aggregate.ID) map[string]string {
	return map[string]string{"typeName": id.Type, "value": id.Value}
}

// peerEvents reads and writes {"type": ..., "data": {...}}.
type peerEvents struct{}

func (peerEvents) Marshal(v any) ([]byte, error) {
	event, ok := v.(aggregate.Event[Account])
	if !ok {
		return nil, fmt.Errorf("%T is no event: states have a codec of their own", v)
	}
	return wrap(event.EventType(), event, nil)
}

func (peerEvents) Unmarshal(payload []byte, v any) error {
	stored, err := unwrap(payload)
	if err != nil {
		return err
	}
	return aggregate.JSON.Unmarshal(stored.Data, v)
}

func typeInPayload(r *journal.Record) (string, error) {
	stored, err := unwrap(r.Payload)
	return stored.Type, err
}

// placeInPayload adds the fields that the peer reads only from the payload of an event.
func placeInPayload(info repository.EventInfo) ([]byte, error) {
	stored, err := unwrap(info.Payload)
	if err != nil {
		return nil, err
	}
	return wrap(info.Type, stored.Data, map[string]any{
		"typeName": info.Type, "isCreated": info.Number == 1, "id": info.ID, "aggregateId": peerID(info.Aggregate),
		"sequenceNumber": info.Number, "occurredAt": time.Now().UTC(),
	})
}

// peerSnapshots reads and writes {"type": ..., "data": {...}} with the sequence number inside.
type peerSnapshots struct{}

func (peerSnapshots) EncodeSnapshot(id aggregate.ID, number uint64, state any) ([]byte, error) {
	return wrap("Account", state, map[string]any{
		"typeName": "Account", "id": peerID(id), "sequenceNumber": number, "version": number,
	})
}

func (peerSnapshots) DecodeSnapshot(payload []byte, state any) (uint64, error) {
	stored, err := unwrap(payload)
	if err != nil {
		return 0, err
	}
	var place struct {
		SequenceNumber uint64 `json:"sequenceNumber"`
	}
	if err := json.Unmarshal(stored.Data, &place); err != nil {
		return 0, err
	}
	return place.SequenceNumber, aggregate.JSON.Unmarshal(stored.Data, state)
}
