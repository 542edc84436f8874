package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/storage"
)

// maxTokenBytes is DynamoDB's limit for a ClientRequestToken.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
const maxTokenBytes = 36

// foreignHeadBytes is left free beside a snapshot for attributes that a foreign writer put on the
// head.
const foreignHeadBytes = 1 << 10

// These types of package storage have parameters, which are the types of this package.
type (
	commit      = storage.Commit[Snapshot]
	tailPage    = storage.TailPage[Record, CorruptItemError]
	restoration = storage.Restoration[Head, Record]
	inspection  = storage.Inspection[Head, CorruptItemError]
)

// transaction is a commit as it is sent. Its id never changes. Date and ClientRequestToken change
// as long as no attempt can have been written, see dateAgain.
type transaction struct {
	commit  *commit
	receipt storage.Receipt
	input   *dynamodb.TransactWriteItemsInput
	begun   time.Time // from where RetryBudget counts
	dated   bool      // by this process, and not where its events come from
	size    int       // in bytes, as DynamoDB counts them
	guard   int       // the action that puts the command's guard, 0 for none
	states  int       // the first action for a snapshot
	writes  int       // the first of the caller's own actions

	head     item // as writeHead makes it
	refitted bool // see refit
}

// isWritten goes by the old items of the first event and of the command's guard: where one of them
// carries the commit's id, the commit was written. Never by the head, for a later commit may have
// moved it.
func (t *transaction) isWritten(reasons []types.CancellationReason) bool {
	return len(t.commit.Events) > 0 && isOf(reasons[1].Item, t.receipt.CommitID) ||
		t.guard > 0 && isOf(reasons[t.guard].Item, t.receipt.CommitID)
}

// tablesOf returns the tables of the transaction that an error may be about: of one for which
// DynamoDB named the actions, those of these alone.
func (j *engine) tablesOf(t *transaction, err error) (names []string) {
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, i := range dynamo.PassingActions(err) {
		if i < len(t.input.TransactItems) {
			target, _ := targetOf(t.input.TransactItems[i])
			add(target.table)
		}
	}
	if len(names) > 0 {
		return names
	}
	add(j.config.Tables.Journal)
	add(j.config.Tables.Snapshot)
	for _, w := range t.commit.Writes {
		target, _ := targetOf(w)
		add(target.table)
	}
	return names
}

// explain says what an error of the transaction means, and for which tables.
func (j *engine) explain(err error, t *transaction) error {
	creator := "journal.Create"
	if len(t.commit.Writes) > 0 {
		creator = "journal.Create, or the package that has the other table,"
	}
	return dynamo.ExplainAny(err, j.tablesOf(t, err), creator)
}

// leaveOut leaves the snapshot out: no commit fails for one.
func (t *transaction) leaveOut(reason error) {
	t.commit.Snapshot, t.receipt.SnapshotLeftOut, t.receipt.SnapshotError = nil, true, reason
}

func (t *transaction) add(action types.TransactWriteItem, bytes int) {
	t.input.TransactItems = append(t.input.TransactItems, action)
	t.size += bytes
}

// hasRoom is for what a commit can do without.
func (t *transaction) hasRoom(actions, bytes int) bool {
	return len(t.input.TransactItems)+len(t.commit.Writes)+actions <= storage.MaxActions && t.size+bytes <= storage.MaxCommitBytes
}

func (j *engine) build(ctx context.Context, c commit) (*transaction, error) {
	if err := j.validate(&c); err != nil {
		return nil, err
	}
	// Before the commit is dated: an encoding may wait for a key service, and an event must not
	// show long after its date.
	events, snapshotErr, err := j.encodeCommit(ctx, &c)
	if err != nil {
		return nil, fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, err)
	}
	t := &transaction{commit: &c, begun: time.Now(), dated: true, receipt: storage.Receipt{
		CommitID: j.config.NewID(), Version: c.Version(), OccurredAt: j.now(),
	}}
	if snapshotErr != nil {
		t.leaveOut(snapshotErr) // it is only a short cut
	}
	if n := len(t.receipt.CommitID); n == 0 || n > maxTokenBytes {
		return nil, &ConfigError{Field: "NewID", Reason: fmt.Sprintf("gave %q: an id has 1 to %d characters", t.receipt.CommitID, maxTokenBytes)}
	}
	t.input = &dynamodb.TransactWriteItemsInput{
		TransactItems:      make([]types.TransactWriteItem, 1, 2+len(c.Events)+len(c.Writes)),
		ClientRequestToken: &t.receipt.CommitID,
	}
	for i, e := range events {
		it := j.itemOf(&Record{
			Aggregate: c.Aggregate, Number: c.Expected + uint64(i) + 1,
			EventID: e.ID, EventType: e.Type, Payload: e.Payload, Metadata: e.Metadata, Encoding: e.Encoding,
			OccurredAt: t.receipt.OccurredAt, CommitID: t.receipt.CommitID,
		})
		bytes := itemSize(it)
		if bytes > storage.MaxItemBytes {
			return nil, &TooLargeError{ID: c.Aggregate, What: fmt.Sprintf("event %d of the commit, %q,", i+1, e.Type), Size: bytes, Limit: storage.MaxItemBytes, Unit: unitBytes}
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
	if t.size > storage.MaxCommitBytes {
		return nil, &TooLargeError{ID: c.Aggregate, What: "the commit", Size: t.size, Limit: storage.MaxCommitBytes, Unit: unitBytes}
	}
	t.head, t.states = head, len(t.input.TransactItems)
	j.addSnapshot(t, head)
	t.input.TransactItems[0] = j.writeHead(&c, head)
	t.writes = len(t.input.TransactItems)
	t.input.TransactItems = append(t.input.TransactItems, c.Writes...)
	return t, nil
}

// now is the time as it is stored, so that writer and readers see the same.
func (j *engine) now() time.Time {
	return time.UnixMilli(j.config.millisOf(j.config.storedTime(j.config.Now().UnixMilli()))).UTC()
}

// dateAge is how old the date of a commit may be when it is sent again.
const dateAge = 100 * time.Millisecond

// dateAgain replaces the date of a commit. The caller knows that no attempt at it was written:
// otherwise its events could have two dates. Groups look for events by their dates, and wait long
// for those that show long after.
func (j *engine) dateAgain(t *transaction) {
	now := j.now()
	if !t.dated || now.Sub(t.receipt.OccurredAt) < dateAge {
		return
	}
	t.receipt.OccurredAt = now
	for _, action := range t.input.TransactItems[1 : 1+len(t.commit.Events)] {
		action.Put.Item[j.config.Attributes.OccurredAt] = numberValue(j.config.storedTime(now.UnixMilli()))
	}
	if t.guard > 0 {
		t.input.TransactItems[t.guard].Put.Item = j.guardItem(t) // which is kept from then on
	}
	// DynamoDB may remember the token with what was sent under it.
	token := j.config.NewID()
	t.input.ClientRequestToken = &token
}

// encodeCommit returns the commit's events as they are stored, and puts its snapshot into that
// form. An error of the snapshot alone does not stop the commit, unless the key was destroyed.
func (j *engine) encodeCommit(ctx context.Context, c *commit) (events []storage.Event, snapshotErr, err error) {
	if c.Expected > 0 && len(j.config.Encodings) > 0 {
		ctx = storage.WithBefore(ctx, func(ctx context.Context) (string, error) { return j.encodingAt(ctx, c.Aggregate, c.Expected) })
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
	if len(c.Events) == 0 && c.CommandID == "" {
		return fmt.Errorf("append to %s: %w: it has no events", c.Aggregate, ErrInvalidCommit)
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

// putNew never overwrites an item, as a stale writer of the event-store-adapter family may.
func (j *engine) putNew(table string, it item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName:                           &table,
		Item:                                it,
		ConditionExpression:                 aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames:            attributeNames("#pk", j.config.Attributes.PartitionKey),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}
