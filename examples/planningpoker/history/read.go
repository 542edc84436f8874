package history

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/planningpoker/room"
	"github.com/millrace-dev/millrace/journal"
)

// ErrTooLong reports a room with more than 20,000 events, the maximum that [Read] replays.
var ErrTooLong = errors.New("too much has happened in the room to show its history")

// mostEvents limits the cost of a history. A round of ten members has about 20 events, of 0.25 KB
// each.
const mostEvents = 20_000

// Journal reads events. A *journal.Journal implements it.
type Journal interface {
	Version(ctx context.Context, id aggregate.ID) (uint64, error)
	Events(ctx context.Context, id aggregate.ID, from, to uint64) iter.Seq2[*journal.Record, error]
}

// Read returns the newest rounds of a room before the given round, or the newest of all for 0. It
// returns at most [Page] rounds that are revealed or over, the newest first. It reads the version
// of the room, and its events from the first one to the end of these rounds.
//
// It keeps a page of rounds and the members of the room in memory. Errors: room.ErrNotFound,
// [ErrTooLong], those of journal.Journal.Events and of aggregate.Definition.Upcast.
func Read(ctx context.Context, j Journal, roomID string, before int) ([]Round, error) {
	id, err := room.Definition.ID(roomID)
	if err != nil {
		return nil, err
	}
	version, err := j.Version(ctx, id)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		return nil, room.ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("history of room %s: %w", roomID, err)
	case version > mostEvents:
		return nil, ErrTooLong
	}
	var rounds Rounds
	for record, err := range j.Events(ctx, id, 1, version) {
		if err == nil {
			err = rounds.replay(record)
		}
		if err != nil {
			return nil, fmt.Errorf("history of room %s: %w", roomID, err)
		}
		if before > 0 && rounds.current.Number >= before {
			break
		}
	}
	return rounds.Newest(), nil
}

// replay applies the current events for a stored event.
func (r *Rounds) replay(record *journal.Record) error {
	events, err := room.Definition.Upcast(aggregate.EncodedEvent{Type: record.EventType, Payload: record.Payload})
	if err != nil {
		return err
	}
	for _, encoded := range events {
		event, err := room.Definition.Decode(encoded.Type, encoded.Payload)
		if err != nil {
			return err
		}
		r.Apply(event, record.OccurredAt)
	}
	return nil
}
