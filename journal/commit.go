package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
)

// Limits of DynamoDB, and what follows from them.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
const (
	MaxItemBytes   = 400 << 10 // one item
	MaxCommitBytes = 4 << 20   // one transaction
	MaxActions     = 100       // one transaction
	MaxEvents      = 99        // one transaction, of which one action moves the head

	maxTokenBytes = 36         // a ClientRequestToken
	maxNameBytes  = 64<<10 - 1 // an attribute name, also inside a map
)

// foreignHeadBytes is left free beside a snapshot for attributes that a foreign writer put on the head.
const foreignHeadBytes = 1 << 10

// Event is an event to be stored.
type Event struct {
	ID       string // empty for one derived from its place
	Type     string
	Payload  []byte
	Metadata aggregate.Metadata
	// Encoding, if not empty, says that Payload is encoded already, in the form in which [Journal.Raw] reads it. It
	// is then stored as it is.
	Encoding string
}

// Commit is what one transaction writes to one aggregate. It has at most [MaxActions]: one for the head, one
// for each event and each of Writes, one for a CommandID, one for a [Redundancy], and in the lean layout one for
// the snapshot.
type Commit struct {
	Aggregate aggregate.ID
	// Expected is the version that the head must have, 0 for a new aggregate.
	Expected uint64
	// Events get the sequence numbers from Expected+1 on. 1 to [MaxEvents]; none only where there is a CommandID.
	Events []Event
	// Snapshot, if any, is stored beside the events. One for which an item or the transaction has no room is left
	// out; see [Receipt].
	Snapshot *Snapshot
	// Redundancy, if any, also stores the snapshot under its own number.
	Redundancy *Redundancy
	// CommandID, if any, makes the commit one that is written only once: a second commit of the same
	// aggregate with the same id is refused with a [*DuplicateCommandError]. 1 to 512 bytes of UTF-8.
	CommandID string
	// Writes are further actions of the same transaction, on tables of the caller's or on rows of other
	// aggregates: an outbox row, a guard that makes an e-mail address unique. They are sent as they are. One whose
	// condition is false refuses the commit with a [*WriteRefusedError], if it is neither a conflict nor a duplicate.
	Writes []types.TransactWriteItem
}

// version is that of the head after the commit.
func (c *Commit) version() uint64 { return c.Expected + uint64(len(c.Events)) }

// Receipt tells what a commit wrote.
type Receipt struct {
	CommitID   string
	Version    uint64    // of the head now
	OccurredAt time.Time // of the events, as it is stored: milliseconds, in UTC
	// SnapshotLeftOut: the snapshot was not stored, and SnapshotError says why: [ErrTooLarge] if it is over 400 KB,
	// [ErrNoRoom] if the transaction was full, [ErrEncoding], or [ErrOldSchema]. The events are written all the same; a load
	// replays more of them.
	SnapshotLeftOut bool
	SnapshotError   error
	// Redundant are the redundant snapshots that the head lists now, without the commit's own where there was no room for it,
	// and Surplus those of them beyond [Redundancy.Keep], which are to be removed: see [Journal.RemoveSnapshots]. Both
	// are in ascending order, and nil for a commit without Redundancy or with one whose list is not known.
	Redundant, Surplus []uint64
}

// transaction is a commit as it is sent: built once, so that every attempt has the
// same id, the same times and the same ClientRequestToken.
type transaction struct {
	commit  *Commit
	receipt Receipt
	input   *dynamodb.TransactWriteItemsInput
	size    int // in bytes, as DynamoDB counts them
	guard   int // the action that puts the command's guard, 0 for none
	states  int // the first action for a snapshot
	writes  int // the first of the caller's own actions

	head     item // as writeHead makes it
	refitted bool // see refit
}

// isWritten goes by the old items of the first event and of the command's guard: where one of them carries the commit's id,
// the commit was written. Never by the head, for a later commit may have moved it.
func (t *transaction) isWritten(reasons []types.CancellationReason) bool {
	return len(t.commit.Events) > 0 && isOf(reasons[1].Item, t.receipt.CommitID) ||
		t.guard > 0 && isOf(reasons[t.guard].Item, t.receipt.CommitID)
}

// tablesOf names the tables of the transaction, of which an error may be about any.
func (j *Journal) tablesOf(t *transaction) string {
	names := []string{j.config.Tables.Journal, j.config.Tables.Snapshot}
	for _, w := range t.commit.Writes {
		if target, _ := targetOf(w); !slices.Contains(names, target.table) {
			names = append(names, target.table)
		}
	}
	return strings.Join(names, " or ")
}

// leaveOut gives the snapshot up, which no commit fails for.
func (t *transaction) leaveOut(reason error) {
	t.commit.Snapshot, t.receipt.SnapshotLeftOut, t.receipt.SnapshotError = nil, true, reason
}

func (t *transaction) add(action types.TransactWriteItem, bytes int) {
	t.input.TransactItems = append(t.input.TransactItems, action)
	t.size += bytes
}

// hasRoom is for what a commit can do without.
func (t *transaction) hasRoom(actions, bytes int) bool {
	return len(t.input.TransactItems)+len(t.commit.Writes)+actions <= MaxActions && t.size+bytes <= MaxCommitBytes
}

func (j *Journal) build(ctx context.Context, c Commit) (*transaction, error) {
	if err := j.validate(&c); err != nil {
		return nil, err
	}
	t := &transaction{commit: &c, receipt: Receipt{
		CommitID: j.config.NewID(),
		Version:  c.version(),
		// Not finer than what is stored, so that writer and readers see the same.
		OccurredAt: time.UnixMilli(j.config.Now().UnixMilli()).UTC(),
	}}
	if n := len(t.receipt.CommitID); n == 0 || n > maxTokenBytes {
		return nil, &ConfigError{Field: "NewID", Reason: fmt.Sprintf("gave %q: an id has 1 to %d characters", t.receipt.CommitID, maxTokenBytes)}
	}
	t.input = &dynamodb.TransactWriteItemsInput{
		TransactItems:      make([]types.TransactWriteItem, 1, 2+len(c.Events)+len(c.Writes)),
		ClientRequestToken: &t.receipt.CommitID,
	}
	for i, e := range c.Events {
		if err := validateEvent(e); err != nil {
			return nil, fmt.Errorf("append to %s: event %d of the commit: %w", c.Aggregate, i+1, err)
		}
		number := c.Expected + uint64(i) + 1
		e, err := j.encodeEvent(ctx, c.Aggregate, number, e)
		if err != nil {
			return nil, fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, err)
		}
		it := j.itemOf(&Record{
			Aggregate: c.Aggregate, Number: number,
			EventID: e.ID, EventType: e.Type, Payload: e.Payload, Metadata: e.Metadata, Encoding: e.Encoding,
			OccurredAt: t.receipt.OccurredAt, CommitID: t.receipt.CommitID,
		})
		bytes := itemSize(it)
		if bytes > MaxItemBytes {
			return nil, &TooLargeError{ID: c.Aggregate, What: fmt.Sprintf("event %d of the commit, %q,", i+1, e.Type), Size: bytes, Limit: MaxItemBytes}
		}
		t.add(j.putNew(j.config.Tables.Journal, it), bytes)
	}
	if c.CommandID != "" {
		it := j.guardItem(t)
		t.guard = len(t.input.TransactItems)
		t.add(j.putNew(j.config.Tables.Journal, it), itemSize(it))
	}
	for _, w := range c.Writes {
		t.size += writeSize(w)
	}
	head := j.headItem(&c)
	t.size += itemSize(head)
	if t.size > MaxCommitBytes {
		return nil, &TooLargeError{ID: c.Aggregate, What: "the commit", Size: t.size, Limit: MaxCommitBytes}
	}
	encoded, err := j.encodeSnapshot(ctx, c.Aggregate, c.Snapshot)
	switch {
	case errors.Is(err, ErrKeyDestroyed):
		return nil, fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, err)
	case err != nil:
		t.leaveOut(err) // it is only a short cut
	default:
		c.Snapshot = encoded
	}
	t.head, t.states = head, len(t.input.TransactItems)
	j.addSnapshot(t, head)
	t.input.TransactItems[0] = j.writeHead(&c, head)
	t.writes = len(t.input.TransactItems)
	t.input.TransactItems = append(t.input.TransactItems, c.Writes...)
	return t, nil
}

// validate checks what can be told without building the items.
func (j *Journal) validate(c *Commit) error {
	if err := j.validateTarget(c.Aggregate); err != nil {
		return err
	}
	if len(c.Events) == 0 && c.CommandID == "" {
		return fmt.Errorf("append to %s: %w", c.Aggregate, ErrNoEvents)
	}
	if err := validateCommandID(c.CommandID); err != nil {
		return fmt.Errorf("append to %s: %w", c.Aggregate, err)
	}
	if c.Redundancy != nil {
		if err := c.Redundancy.validate(c); err != nil {
			return fmt.Errorf("append to %s: %w", c.Aggregate, err)
		}
	}
	if s := c.Snapshot; s != nil && (s.Number == 0 || s.Number > c.version()) {
		return fmt.Errorf("append to %s: %w", c.Aggregate, &ConfigError{Field: "Snapshot.Number", Reason: fmt.Sprintf(
			"is %d: a snapshot is of an event from 1 to %d", s.Number, c.version())})
	}
	most := MaxEvents - len(c.Writes)
	if c.CommandID != "" {
		most--
	}
	if n := len(c.Events); n > most {
		return &TooManyEventsError{ID: c.Aggregate, Count: n, Limit: max(most, 0)}
	}
	return j.validateWrites(c)
}

// validateTarget checks an aggregate that is to be written to.
func (j *Journal) validateTarget(id aggregate.ID) error {
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
func validateEvent(e Event) error {
	if !utf8.ValidString(e.ID) || !utf8.ValidString(e.Type) || !utf8.ValidString(e.Encoding) {
		return fmt.Errorf("%w: id %q, type %q or encoding %q is not UTF-8", ErrInvalidEvent, e.ID, e.Type, e.Encoding)
	}
	for k, v := range e.Metadata {
		if k == "" {
			return fmt.Errorf("%w: metadata has an empty key", ErrInvalidEvent)
		}
		if len(k) > maxNameBytes {
			return fmt.Errorf("%w: metadata has a key of %d bytes, DynamoDB allows %d", ErrInvalidEvent, len(k), maxNameBytes)
		}
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fmt.Errorf("%w: metadata %q is not UTF-8; put bytes into the payload", ErrInvalidEvent, k)
		}
	}
	return nil
}

// putNew never overwrites an item, as a stale writer of the event-store-adapter family may.
func (j *Journal) putNew(table string, it item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName:                           &table,
		Item:                                it,
		ConditionExpression:                 aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames:            attributeNames("#pk", j.config.Attributes.PartitionKey),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}
