package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/metadata"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// maxTokenBytes is DynamoDB's limit for a ClientRequestToken.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
const maxTokenBytes = 36

// Draft is a commit that was validated and encoded, but is not yet in the form of items.
type Draft struct {
	*storage.Commit                 // with the snapshot in stored form; nil if it was left out
	Encoded         []storage.Event // in stored form
	Begun           time.Time       // when RetryBudget began
	// Receipt has CommitID, Version, OccurredAt, and why the snapshot was left out.
	Receipt storage.Receipt
	// announce notifies readers in this process. It is called as soon as the commit is written.
	announce func()
	// Beside describes the other parts of its transaction. It is nil if the commit is sent alone.
	Beside *Beside
}

// Beside is the size of the other parts of a transaction, and their number.
type Beside struct{ Actions, Bytes, Parts int }

// Part is a commit to one aggregate. It is sent alone, or in one transaction with other parts.
type Part interface {
	table.Sending
	// Build makes the request.
	Build(at table.Dates) error
	// Actions returns the actions of the transaction. Refusal receives a reason for each of them.
	Actions() []types.TransactWriteItem
	Bytes() int
	// Notify wakes readers in this process after the commit was written.
	Notify()
	// Finish does the work that follows a written commit.
	Finish(ctx context.Context) storage.Receipt
}

// Notify wakes readers in this process.
func (d *Draft) Notify() { d.announce() }

func (j *Engine) draft(ctx context.Context, c storage.Commit) (Draft, error) {
	if err := j.validate(&c); err != nil {
		return Draft{}, err
	}
	events, snapshotErr, err := j.encodeCommit(ctx, &c)
	if err != nil {
		return Draft{}, fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, err)
	}
	commitID, err := j.newCommitID(&c)
	if err != nil {
		return Draft{}, err
	}
	d := Draft{Commit: &c, Encoded: events, Receipt: storage.Receipt{CommitID: commitID, Version: c.Version()}}
	d.announce = func() {
		if len(c.Events) > 0 {
			j.Notify(c.Aggregate, d.Receipt.Version)
		}
	}
	if snapshotErr != nil {
		d.LeaveOut(snapshotErr) // a snapshot only makes loads faster
	}
	return d, nil
}

// newCommitID returns an id for a commit, with the fingerprint of its command if there is one.
func (j *Engine) newCommitID(c *storage.Commit) (string, error) {
	id := j.Config.NewID()
	if n := len(id); n == 0 || n > maxTokenBytes {
		return "", &journaltype.ConfigError{Field: "NewID", Reason: fmt.Sprintf("returned %q: an id has 1 to %d characters", id, maxTokenBytes)}
	}
	if c.Fingerprint == nil {
		return id, nil
	}
	marked, ok := c.Fingerprint.Mark(id)
	if !ok {
		return "", &journaltype.ConfigError{Field: "NewID", Reason: fmt.Sprintf(
			"returned %q: the fingerprint of a command needs a UUID of another version than 8", id)}
	}
	return marked, nil
}

// Date sets when the retry budget began, and the time of the events.
func (d *Draft) Date(at table.Dates) { d.Begun, d.Receipt.OccurredAt = at.Begun, at.OccurredAt }

// LeaveOut removes the snapshot from the commit. A snapshot never makes a commit fail.
func (d *Draft) LeaveOut(reason error) {
	d.Snapshot, d.Receipt.SnapshotLeftOut, d.Receipt.SnapshotError = nil, true, reason
}

// encodeCommit returns the commit's events in stored form, and replaces its snapshot by the stored
// form. An error of the snapshot alone does not stop the commit, unless the key was destroyed.
func (j *Engine) encodeCommit(ctx context.Context, c *storage.Commit) (events []storage.Event, snapshotErr, err error) {
	ctx = j.withBefore(ctx, c.Aggregate, c.Expected)
	events = make([]storage.Event, len(c.Events))
	for i, e := range c.Events {
		e = marked(c.Aggregate, e)
		if err := validateEvent(e); err != nil {
			return nil, nil, fmt.Errorf("event %d of the commit: %w", i+1, err)
		}
		if events[i], err = j.encodeEvent(ctx, c.Aggregate, c.Expected+uint64(i)+1, e); err != nil {
			return nil, nil, err
		}
	}
	encoded, snapshotErr := j.encodeSnapshot(ctx, c.Aggregate, c.Snapshot)
	if errors.Is(snapshotErr, journaltype.ErrKeyDestroyed) {
		return nil, nil, snapshotErr
	}
	if snapshotErr == nil {
		c.Snapshot = encoded
	}
	return events, snapshotErr, nil
}

// validate checks everything that can be checked without building the items.
func (j *Engine) validate(c *storage.Commit) error {
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
	// An older snapshot might end before the last truncation. It would replace the only snapshot
	// that stands for the truncated events.
	if s, first := c.Snapshot, max(c.Expected, 1); s != nil && (s.Number < first || s.Number > c.Version()) {
		return fmt.Errorf("append to %s: %w", c.Aggregate, &journaltype.ConfigError{Field: "Snapshot.Number", Reason: fmt.Sprintf(
			"is %d: the snapshot of a commit is of an event from %d to %d", s.Number, first, c.Version())})
	}
	most := storage.MaxEvents - len(c.Writes)
	if c.CommandID != "" {
		most--
	}
	if n := len(c.Events); n > most {
		return &journaltype.TooLargeError{ID: c.Aggregate, What: "the commit", Size: n, Limit: max(most, 0), Unit: storage.UnitEvents}
	}
	return j.validateWrites(c)
}

// validateTarget checks an aggregate that is about to be written.
func (j *Engine) validateTarget(id aggregate.ID) error {
	if err := id.Validate(); err != nil {
		return err
	}
	if shard := j.Shard(id); shard < 0 || shard >= j.Config.Shards {
		return &journaltype.ConfigError{Field: "Classic.Resolver", Reason: fmt.Sprintf(
			"put %s into shard %d, but shards are 0 to %d: no consumer group would read that", id, shard, j.Config.Shards-1)}
	}
	return nil
}

// validateEvent refuses text that is not UTF-8, because the SDK would replace the invalid bytes.
func validateEvent(e storage.Event) error {
	for _, text := range []struct{ what, is string }{{"event id", e.ID}, {"event type", e.Type}, {"encoding", e.Encoding}} {
		if !utf8.ValidString(text.is) {
			return fmt.Errorf("%w: the %s %q is not UTF-8: encode it as text, in hexadecimal for example", journaltype.ErrInvalidCommit, text.what, text.is)
		}
	}
	return nil
}

// EventSize returns the largest number of bytes that an event can take of storage.MaxItemBytes and
// storage.MaxEventsBytes, at any place in the aggregate. If Append would refuse the event,
// EventSize returns the error, so that a writer that fills transactions knows beforehand. It does
// not encode: it counts the plain payload plus the overhead of Config.Encodings. So it also refuses
// an event over 400 KB that Append would accept after compression.
//
// Errors: *TooLargeError, ErrInvalidCommit, *aggregate.InvalidIDError.
func (j *Engine) EventSize(id aggregate.ID, e storage.Event) (int, error) {
	if err := id.Validate(); err != nil {
		return 0, err
	}
	if err := validateEvent(e); err != nil {
		return 0, fmt.Errorf("append to %s: %w", id, err)
	}
	e = marked(id, e)
	overhead := 0
	if e.Encoding == "" && !j.raw {
		overhead = j.encodingOverhead()
	}
	size := j.Layout.EventSize(id, e, overhead)
	if size > storage.MaxItemBytes {
		return 0, &journaltype.TooLargeError{ID: id, What: fmt.Sprintf("event %q", e.Type), Size: size, Limit: storage.MaxItemBytes, Unit: storage.UnitBytes}
	}
	return size, nil
}

// marked returns an event with the mark of a publisher's own stream if e.OwnStream is true, and
// otherwise without it. groups.Trim removes marked events. So only a publisher can set the mark,
// and metadata that was copied from another event loses it. It does not change e.Metadata.
func marked(id aggregate.ID, e storage.Event) storage.Event {
	if _, given := e.Metadata[metadata.OwnStreamKey]; !e.OwnStream && !given {
		return e
	}
	with := make(aggregate.Metadata, len(e.Metadata)+1)
	maps.Copy(with, e.Metadata)
	delete(with, metadata.OwnStreamKey)
	if e.OwnStream {
		with[metadata.OwnStreamKey] = metadata.StreamMark(id)
	}
	e.Metadata = with
	return e
}

// EventIDs is the namespace of derived event ids. It must never change.
var EventIDs = uuid.MustParse("9a4b3f0e-6f5c-5d0e-8b43-6d696c6c7261")

// Target returns the name of the aggregate.
func (d *Draft) Target() string { return d.Aggregate.String() }

// Subject returns the aggregate.
func (d *Draft) Subject() aggregate.ID { return d.Aggregate }

// BegunAt returns when the retry budget began.
func (d *Draft) BegunAt() time.Time { return d.Begun }

// Unknown keeps the error of the SDK unchanged, because the sentinels of package journal mean that
// nothing was written.
func (d *Draft) Unknown(err error) *journaltype.OutcomeUnknownError {
	return &journaltype.OutcomeUnknownError{ID: d.Aggregate, First: d.Expected + 1, CommitID: d.Receipt.CommitID, CommandID: d.CommandID, Err: err}
}
