package repository

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/printable"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
)

// SnapshotCodec encodes states as the bytes of snapshots and decodes them. It must be safe for
// concurrent use. A decoded state must be equal to the encoded one, since the codec also makes the
// copies that decisions work on.
type SnapshotCodec interface {
	// EncodeSnapshot encodes a state. It receives a pointer to the state and must not change the
	// values that it refers to. The caller owns the returned bytes. The id, and the number of the
	// last event in the state, are for codecs that write them into the payload.
	EncodeSnapshot(id aggregate.ID, number uint64, state any) ([]byte, error)

	// DecodeSnapshot decodes payload into a pointer to a zero state. It must not keep payload. It
	// returns the sequence number in the payload, or 0 if the payload has none.
	//
	// After an error, the load replays the events instead. So a codec may refuse a payload that it
	// should not use, such as a state in an older form.
	DecodeSnapshot(payload []byte, state any) (number uint64, err error)
}

// stateOnly is the default codec: the journal keeps the number beside the payload.
type stateOnly struct{ aggregate.Codec }

func (c stateOnly) EncodeSnapshot(_ aggregate.ID, _ uint64, state any) ([]byte, error) {
	return c.Marshal(state)
}

func (c stateOnly) DecodeSnapshot(payload []byte, state any) (uint64, error) {
	return 0, c.Unmarshal(payload, state)
}

// isDue reports whether a commit stores the state of the aggregate after it. With worth, it does so
// only if that pays. Replayed is as in commit.
func (r *Repository[S]) isDue(a Aggregate[S], c Commit, replayed bool) (due bool, worth *storage.Worth) {
	switch from := a.from(); {
	case a.partial:
		// A program that knows the missing events would use it as the whole state.
		return false, nil
	case c.Before == 0 && r.journal.StateAtFirst, from.rebuild && !r.config.IgnoreSnapshots:
		return true, nil
	case r.config.Snapshots != nil:
		return r.config.Snapshots(c), nil
	case from.newer:
		// A snapshot would always seem to pay, because the loads of this program ignore the stored
		// one. The newer program would then replace it again.
		return Every(100)(c), nil
	default:
		return replayed && r.journal.Layout.Pays(&from.worth, 0), &from.worth
	}
}

// snapshot returns the snapshot of an aggregate for a commit, or nil if the state cannot be
// encoded.
func (r *Repository[S]) snapshot(a *Aggregate[S]) *journal.Snapshot {
	payload, err := r.codec.EncodeSnapshot(a.ID, a.Version, &a.State)
	if err != nil {
		r.config.Logger.Error("Snapshot left out of a commit", fmt.Errorf("encode the state: %w", err), fields(a.ID, a.Version))
		return nil
	}
	if !r.flat {
		a.setEncoded(payload)
	}
	return &journal.Snapshot{Number: a.Version, Payload: payload, Schema: r.config.SnapshotSchema}
}

// redundancy returns the changes to redundant snapshots for a commit that follows from.
func (r *Repository[S]) redundancy(from origin[S], expected uint64) *storage.Redundancy {
	if r.config.Redundancy == nil {
		return nil
	}
	redundancy := &storage.Redundancy{Keep: r.config.Redundancy.Keep, TTL: r.config.Redundancy.TTL}
	if from.listed || expected == 0 {
		redundancy.Listed = append([]uint64{}, from.redundant...)
	}
	return redundancy
}

// removalLimit is the maximum delay of a successful commit by the removal of redundant snapshots.
// The removal usually takes one request.
const removalLimit = time.Second

// afterSnapshot logs a snapshot that was not stored, removes redundant snapshots beyond those to
// keep, and returns the origin of the aggregate after the commit. Its failures are logged and are
// not errors of the commit.
func (r *Repository[S]) afterSnapshot(ctx context.Context, a Aggregate[S], commit storage.Commit, receipt storage.Receipt) origin[S] {
	from := a.from()
	if receipt.SnapshotLeftOut {
		r.config.Logger.Error("Snapshot left out of a commit, loads replay more events", receipt.SnapshotError, fields(a.ID, a.Version))
		if errors.Is(receipt.SnapshotError, storage.ErrNoRoom) {
			from.rebuild = true // the next commit may have room
		}
	} else if commit.Snapshot != nil {
		from.rebuild = false
	}
	if commit.Redundancy == nil || receipt.Redundant == nil {
		return from
	}
	from.redundant, from.listed = receipt.Redundant, true
	if len(receipt.Surplus) == 0 {
		return from
	}
	ctx, cancel := context.WithTimeout(ctx, removalLimit)
	defer cancel()
	if err := r.journal.RemoveSnapshots(ctx, a.ID, receipt.Surplus); err != nil {
		r.config.Logger.Error("Redundant snapshots not removed, a later commit will do it", err, fields(a.ID, a.Version))
		return from
	}
	from.redundant = receipt.Redundant[len(receipt.Surplus):]
	return from
}

// restore returns the aggregate from a snapshot. Without a usable snapshot it returns the aggregate
// before its first event.
func (r *Repository[S]) restore(head journal.Head, snapshot *journal.Snapshot) Aggregate[S] {
	a, err := r.restored(head, snapshot)
	switch {
	case err == nil:
	case errors.Is(err, errOtherSchema):
		r.config.Logger.Debug("Snapshot of another schema ignored, more events are replayed",
			fields(head.Aggregate, head.Version).Add(watermill.LogFields{"snapshot_schema": snapshot.Schema, "config_schema": r.config.SnapshotSchema}))
	default:
		r.ignoreSnapshot(head, err)
	}
	return a
}

// restored does the same as restore, but returns the reason why a snapshot is not usable.
func (r *Repository[S]) restored(head journal.Head, snapshot *journal.Snapshot) (Aggregate[S], error) {
	empty := Aggregate[S]{ID: head.Aggregate}
	from := origin[S]{}
	if r.config.Redundancy != nil {
		from.redundant, from.listed = head.Redundant, true
	}
	empty.setFrom(from)
	if r.config.IgnoreSnapshots || snapshot == nil {
		return empty, nil
	}
	if own := r.config.SnapshotSchema; snapshot.Number != 0 && snapshot.Schema != own {
		// Keep the snapshot of a newer program. Otherwise the two programs would replace each
		// other's.
		from.rebuild, from.newer = snapshot.Schema < own, snapshot.Schema > own
		empty.setFrom(from)
		return empty, errOtherSchema
	}
	restored := empty
	number, err := r.codec.DecodeSnapshot(snapshot.Payload, &restored.State)
	switch kept := snapshot.Number; {
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
		from.rebuild = snapshot.Number != 0 // only then this library has written it
		empty.setFrom(from)
		return empty, err
	}
	restored.Version = number
	if !r.flat {
		restored.setEncoded(snapshot.Payload)
	}
	return restored, nil
}

// restoreAt returns the aggregate from the latest usable snapshot that is of event number or an
// earlier one.
func (r *Repository[S]) restoreAt(ctx context.Context, head journal.Head, number uint64) (Aggregate[S], error) {
	if r.config.IgnoreSnapshots {
		return r.restore(head, nil), nil
	}
	left := number // where the next one may be
	if s := head.Snapshot; s != nil && s.Number <= number {
		if a := r.restore(head, s); a.Version > 0 && a.Version <= number {
			return a, nil
		}
		if s.Number > 0 {
			left = s.Number - 1
		}
	}
	for {
		s, err := r.journal.SnapshotBefore(ctx, head, left)
		if err != nil || s == nil {
			return r.restore(head, nil), err
		}
		// Only the codec knows the event of a snapshot that another program wrote.
		if a := r.restore(head, s); a.Version > 0 && a.Version <= number {
			return a, nil
		}
		if s.Number == 0 {
			// The number of this snapshot is unknown, so the snapshot before it cannot be found.
			return r.restore(head, nil), nil
		}
		left = min(left, s.Number) - 1
	}
}

var (
	errNoNumber    = errors.New("another program wrote it, and the codec finds no sequence number in it")
	errOtherSchema = errors.New("it has another schema")
)

func fields(id aggregate.ID, version uint64) watermill.LogFields {
	return watermill.LogFields{"aggregate": printable.Text(id.String()), "version": version}
}
