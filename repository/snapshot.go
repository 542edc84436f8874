package repository

import (
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
)

// SnapshotCodec turns states into the bytes of snapshots and back. It must be safe for concurrent use, and
// what it decodes must be equal to what it has encoded: it also makes the copies that decisions work on.
type SnapshotCodec interface {
	// EncodeSnapshot gets a pointer to the state and must not change what it leads to. It returns bytes that
	// the caller owns. Info is for codecs that write it into the payload.
	EncodeSnapshot(info SnapshotInfo, state any) ([]byte, error)

	// DecodeSnapshot gets a pointer to a zero state and must not keep payload. It returns the sequence
	// number that stands in the payload, or 0 if none does.
	//
	// An error makes a load replay the journal instead, so a codec may refuse what it does not want to use,
	// such as the state in an older form.
	DecodeSnapshot(payload []byte, state any) (number uint64, err error)
}

// SnapshotInfo says what a snapshot is of.
type SnapshotInfo struct {
	Aggregate aggregate.ID
	Number    uint64 // of the last event in the state
	Version   uint64 // of the head; here always equal to Number
}

// stateOnly is the default codec: the journal keeps the number beside the payload.
type stateOnly struct{ aggregate.Codec }

func (c stateOnly) EncodeSnapshot(_ SnapshotInfo, state any) ([]byte, error) {
	return c.Marshal(state)
}

func (c stateOnly) DecodeSnapshot(payload []byte, state any) (uint64, error) {
	return 0, c.Unmarshal(payload, state)
}

// snapshot gives what the commit that leads to a stores in the head, nil for nothing.
func (r *Repository[S]) snapshot(a Aggregate[S], commit journal.Commit) *journal.Snapshot {
	if a.partial {
		return nil // who knows the events that it lacks would take it for the whole
	}
	point := SnapshotPoint{Aggregate: a.ID, Before: commit.Expected, After: a.Version}
	for _, e := range commit.Events {
		point.EventTypes = append(point.EventTypes, e.Type)
	}
	if point.Before > 0 && !r.config.Snapshots.Due(point) {
		return nil
	}
	payload, err := r.codec.EncodeSnapshot(SnapshotInfo{Aggregate: a.ID, Number: a.Version, Version: a.Version}, &a.State)
	if err != nil {
		r.config.Logger.Error("Snapshot left out of a commit", fmt.Errorf("encode the state: %w", err), fields(a.ID, a.Version))
		return nil
	}
	return &journal.Snapshot{Number: a.Version, Payload: payload}
}

// restore gives the aggregate as the head's snapshot has it, or as it is before its first event.
func (r *Repository[S]) restore(head journal.Head) Aggregate[S] {
	empty := Aggregate[S]{ID: head.Aggregate}
	if _, ignore := r.config.Snapshots.(never); ignore || head.Snapshot == nil {
		return empty
	}
	restored := empty
	number, err := r.codec.DecodeSnapshot(head.Snapshot.Payload, &restored.State)
	switch kept := head.Snapshot.Number; {
	case err != nil:
		err = fmt.Errorf("decode the state: %w", err)
	case number == 0 && kept == 0:
		err = errNoNumber
	case number == 0:
		number = kept
	case kept != 0 && number != kept:
		err = fmt.Errorf("it says that it is of event %d, but it was stored with event %d", number, kept)
	case number > head.Version:
		err = fmt.Errorf("it says that it is of event %d, but the head is at %d", number, head.Version)
	}
	if err != nil {
		r.config.Logger.Error("Snapshot ignored, all events are replayed", err, fields(head.Aggregate, head.Version))
		return empty
	}
	restored.Version = number
	return restored
}

var errNoNumber = errors.New("another program wrote it, and the codec finds no sequence number in it")

func fields(id aggregate.ID, version uint64) watermill.LogFields {
	return watermill.LogFields{"aggregate": id.String(), "version": version}
}
