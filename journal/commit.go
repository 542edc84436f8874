package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
)

// maxTokenBytes is DynamoDB's limit for a ClientRequestToken.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
const maxTokenBytes = 36

// These types of package storage have parameters, which are the types of this package.
type (
	commit      = storage.Commit[Snapshot]
	joint       = storage.Joint[Snapshot]
	tailPage    = storage.TailPage[Record, CorruptItemError]
	restoration = storage.Restoration[Head, Record]
	inspection  = storage.Inspection[Head, CorruptItemError]
)

// draft is a commit that is validated and encoded, before a layout makes items of it.
type draft struct {
	*commit                 // with the snapshot as it is stored, nil where it was left out
	events  []storage.Event // as they are stored
	begun   time.Time       // from where RetryBudget counts
	receipt storage.Receipt // CommitID, Version, OccurredAt, and why the snapshot was left out
	// announce notifies readers in this process. It is called as soon as the commit is written.
	announce func()
	// beside is what the other parts of its transaction take, nil where it is sent by itself.
	beside *beside
}

// beside is the size of the other parts of a transaction, and how many they are.
type beside struct{ actions, bytes, parts int }

// dates are the time from where RetryBudget counts, and that of the events.
type dates struct{ begun, occurredAt time.Time }

// part is a commit to one aggregate, which is sent by itself or in one transaction with others.
type part interface {
	sending
	// build makes the request.
	build(at dates) error
	// actions are those of the transaction. Refusal gets a reason for each.
	actions() []types.TransactWriteItem
	bytes() int
	// tell notifies readers in this process, once the commit is written.
	tell()
	// finish does what else follows then.
	finish(ctx context.Context) storage.Receipt
}

func (d *draft) tell() { d.announce() }

func (j *engine) draft(ctx context.Context, c commit) (draft, error) {
	if err := j.validate(&c); err != nil {
		return draft{}, err
	}
	events, snapshotErr, err := j.encodeCommit(ctx, &c)
	if err != nil {
		return draft{}, fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, err)
	}
	d := draft{commit: &c, events: events, receipt: storage.Receipt{CommitID: j.config.NewID(), Version: c.Version()}}
	d.announce = func() {
		if len(c.Events) > 0 {
			j.watchers.notify(c.Aggregate, d.receipt.Version)
		}
	}
	if snapshotErr != nil {
		d.leaveOut(snapshotErr) // it is only a short cut
	}
	if n := len(d.receipt.CommitID); n == 0 || n > maxTokenBytes {
		return draft{}, &ConfigError{Field: "NewID", Reason: fmt.Sprintf("gave %q: an id has 1 to %d characters", d.receipt.CommitID, maxTokenBytes)}
	}
	return d, nil
}

// date dates a commit. It comes after all that may take its time, such as an encoding that waits
// for a key service, or a read: an event must not show long after its date.
func (s *store) date() dates { return dates{time.Now(), s.now()} }

func (d *draft) date(at dates) { d.begun, d.receipt.OccurredAt = at.begun, at.occurredAt }

// leaveOut leaves the snapshot out: no commit fails for one.
func (d *draft) leaveOut(reason error) {
	d.Snapshot, d.receipt.SnapshotLeftOut, d.receipt.SnapshotError = nil, true, reason
}

// encodeCommit returns the commit's events as they are stored, and puts its snapshot into that
// form. An error of the snapshot alone does not stop the commit, unless the key was destroyed.
func (j *engine) encodeCommit(ctx context.Context, c *commit) (events []storage.Event, snapshotErr, err error) {
	if c.Expected > 0 && len(j.config.Encodings) > 0 {
		ctx = storage.WithBefore(ctx, func(ctx context.Context) (string, error) { return j.layout.encodingAt(ctx, c.Aggregate, c.Expected) })
	}
	events = make([]storage.Event, len(c.Events))
	for i, e := range c.Events {
		if err := validateEvent(e); err != nil {
			return nil, nil, fmt.Errorf("event %d of the commit: %w", i+1, err)
		}
		if events[i], err = j.encodeEvent(ctx, c.Aggregate, c.Expected+uint64(i)+1, e); err != nil {
			return nil, nil, err
		}
	}
	encoded, snapshotErr := j.encodeSnapshot(ctx, c.Aggregate, c.Snapshot)
	if errors.Is(snapshotErr, ErrKeyDestroyed) {
		return nil, nil, snapshotErr
	}
	if snapshotErr == nil {
		c.Snapshot = encoded
	}
	return events, snapshotErr, nil
}

// validate checks what can be told without building the items.
func (j *engine) validate(c *commit) error {
	if err := j.validateTarget(c.Aggregate); err != nil {
		return err
	}
	if err := validateCommandID(c.CommandID); err != nil {
		return fmt.Errorf("append to %s: %w", c.Aggregate, err)
	}
	if c.Redundancy != nil {
		if err := validateRedundancy(c.Redundancy, c); err != nil {
			return fmt.Errorf("append to %s: %w", c.Aggregate, err)
		}
	}
	// An older one might be of events before the last truncation, and would replace the only one
	// that stands for them.
	if s, first := c.Snapshot, max(c.Expected, 1); s != nil && (s.Number < first || s.Number > c.Version()) {
		return fmt.Errorf("append to %s: %w", c.Aggregate, &ConfigError{Field: "Snapshot.Number", Reason: fmt.Sprintf(
			"is %d: the snapshot of a commit is of an event from %d to %d", s.Number, first, c.Version())})
	}
	most := storage.MaxEvents - len(c.Writes)
	if c.CommandID != "" {
		most--
	}
	if n := len(c.Events); n > most {
		return &TooLargeError{ID: c.Aggregate, What: "the commit", Size: n, Limit: max(most, 0), Unit: unitEvents}
	}
	return j.validateWrites(c)
}

// validateTarget checks an aggregate that is to be written to.
func (j *engine) validateTarget(id aggregate.ID) error {
	if err := id.Validate(); err != nil {
		return err
	}
	if shard := j.Shard(id); shard < 0 || shard >= j.config.Shards {
		return &ConfigError{Field: "Resolver", Reason: fmt.Sprintf(
			"put %s into shard %d of 0 to %d: nobody would tail that", id, shard, j.config.Shards-1)}
	}
	return nil
}

// validateEvent refuses what the SDK would change on the way: it replaces bytes that
// are not UTF-8.
func validateEvent(e storage.Event) error {
	for _, text := range []struct{ what, is string }{{"event id", e.ID}, {"event type", e.Type}, {"encoding", e.Encoding}} {
		if !utf8.ValidString(text.is) {
			return fmt.Errorf("%w: the %s %q is not UTF-8: encode it as text, in hexadecimal for example", ErrInvalidCommit, text.what, text.is)
		}
	}
	return nil
}
