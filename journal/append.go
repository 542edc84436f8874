package journal

import (
	"context"
	"fmt"
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
	MaxEvents      = 99        // one transaction has 100 actions, one of which moves the head

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

// Commit is what one transaction writes to one aggregate.
type Commit struct {
	Aggregate aggregate.ID
	// Expected is the version that the head must have, 0 for a new aggregate.
	Expected uint64
	// Events get the sequence numbers from Expected+1 on. 1 to [MaxEvents].
	Events []Event
	// Snapshot, if any, goes into the head. One too large for an item is left out;
	// see [Receipt].
	Snapshot *Snapshot
}

// version is that of the head after the commit.
func (c *Commit) version() uint64 { return c.Expected + uint64(len(c.Events)) }

// Receipt tells what a commit wrote.
type Receipt struct {
	CommitID   string
	Version    uint64    // of the head now
	OccurredAt time.Time // of the events, as it is stored: milliseconds, in UTC
	// SnapshotLeftOut: the snapshot was too large for an item, by DynamoDB's limit of
	// 400 KB. The events are written all the same; a load replays more of them.
	SnapshotLeftOut bool
}

// Append writes a commit: one TransactWriteItems, one round trip. It costs two
// write units for each KB of each event (and as much in each of the journal's
// indexes, without the doubling), and two for each KB of the head.
//
// A transaction that DynamoDB throttles, that meets another transaction on the
// same head, or whose reply is lost is sent again under the same commit id until
// [Config.RetryBudget] or the context ends; it is never written twice.
//
// Nothing was written when the error is [ErrConflict], [ErrTooLarge],
// [ErrTooManyEvents], [ErrNoEvents], [ErrInvalidEvent], [ErrEncoding], [ErrKeyDestroyed], [ErrInvalidConfig],
// aggregate.ErrInvalidID, [ErrThrottled], [ErrTableMissing], [ErrAccess] or
// [ErrCorruptItem], nor when it is the context's alone. [ErrOutcomeUnknown] leaves it
// open, also when the context ended in mid-flight: see [Journal.Resolve].
func (j *Journal) Append(ctx context.Context, c Commit) (Receipt, error) {
	t, err := j.build(ctx, c)
	if err != nil {
		return Receipt{}, err
	}
	if err := j.send(ctx, t); err != nil {
		return Receipt{}, err
	}
	j.watchers.notify(t.commit.Aggregate, t.receipt.Version)
	return t.receipt, nil
}

// Resolve tells whether the commit of an [OutcomeUnknownError] has been written,
// with one strongly consistent read. False is final only once no request of the
// commit can be under way any more, which takes seconds, or once the head has passed
// [OutcomeUnknownError.First].
func (j *Journal) Resolve(ctx context.Context, unknown *OutcomeUnknownError) (bool, error) {
	it, err := j.getItem(ctx, j.config.Tables.Journal, j.key(unknown.ID, unknown.First))
	if err != nil {
		return false, fmt.Errorf("resolve commit %s: %w", unknown.CommitID, err)
	}
	commitID, _ := stringOf(it[attrCommitID])
	return it != nil && commitID == unknown.CommitID, nil
}

// transaction is a commit as it is sent: built once, so that every attempt has the
// same id, the same times and the same ClientRequestToken.
type transaction struct {
	commit  *Commit
	receipt Receipt
	input   *dynamodb.TransactWriteItemsInput
}

func (j *Journal) build(ctx context.Context, c Commit) (*transaction, error) {
	if err := c.Aggregate.Validate(); err != nil {
		return nil, err
	}
	switch n := len(c.Events); {
	case n == 0:
		return nil, fmt.Errorf("append to %s: %w", c.Aggregate, ErrNoEvents)
	case n > MaxEvents:
		return nil, &TooManyEventsError{ID: c.Aggregate, Count: n}
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
	if shard := j.Shard(c.Aggregate); shard < 0 || shard >= j.config.Shards {
		return nil, &ConfigError{Field: "Resolver", Reason: fmt.Sprintf(
			"put %s into shard %d of 0 to %d: nobody would tail that", c.Aggregate, shard, j.config.Shards-1)}
	}
	items := make([]types.TransactWriteItem, 1, 1+len(c.Events))
	size := 0
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
		size += bytes
		items = append(items, j.putNew(j.config.Tables.Journal, it))
	}
	snapshot, err := j.encodeSnapshot(ctx, c.Aggregate, c.Snapshot)
	if err != nil {
		return nil, fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, err)
	}
	c.Snapshot = snapshot
	head := j.headItem(&c)
	if bytes := itemSize(head) + foreignHeadBytes; c.Snapshot != nil && (bytes > MaxItemBytes || size+bytes > MaxCommitBytes) {
		c.Snapshot, t.receipt.SnapshotLeftOut = nil, true
		head = j.headItem(&c)
	}
	if size += itemSize(head); size > MaxCommitBytes {
		return nil, &TooLargeError{ID: c.Aggregate, What: "the commit", Size: size, Limit: MaxCommitBytes}
	}
	items[0] = j.writeHead(&c, head)
	t.input = &dynamodb.TransactWriteItemsInput{TransactItems: items, ClientRequestToken: &t.receipt.CommitID}
	return t, nil
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
