package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/aggregate"
)

// Limits of DynamoDB, and what follows from them.
//
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
const (
	MaxItemBytes   = 400 << 10 // one item
	MaxCommitBytes = 4 << 20   // one transaction
	MaxEvents      = 99        // one transaction has 100 actions, one of which moves the head
)

// Event is an event to be stored.
type Event struct {
	ID       string // at most 400 KB like all of the event; empty for one derived from its place
	Type     string
	Payload  []byte
	Metadata aggregate.Metadata
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

// Receipt tells what a commit wrote.
type Receipt struct {
	CommitID   string
	Version    uint64 // of the head now
	OccurredAt time.Time
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
// [ErrTooManyEvents], [ErrNoEvents], [ErrInvalidEvent], aggregate.ErrInvalidID, [ErrThrottled],
// [ErrTableMissing] or [ErrAccess]. [ErrOutcomeUnknown] leaves it open, also when
// the context ended in mid-flight: see [Journal.Resolve].
func (j *Journal) Append(ctx context.Context, c Commit) (Receipt, error) {
	t, err := j.build(c)
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
// commit can be under way any more, which takes seconds.
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

func (j *Journal) build(c Commit) (*transaction, error) {
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
		CommitID:   j.config.NewID(),
		Version:    c.Expected + uint64(len(c.Events)),
		OccurredAt: j.config.Now(),
	}}
	items := make([]types.TransactWriteItem, 1, 1+len(c.Events))
	size := 0
	for i, e := range c.Events {
		if err := validateEvent(e); err != nil {
			return nil, fmt.Errorf("append to %s: event %d of the commit: %w", c.Aggregate, i+1, err)
		}
		it := j.itemOf(&Record{
			Aggregate: c.Aggregate, Number: c.Expected + uint64(i) + 1,
			EventID: e.ID, EventType: e.Type, Payload: e.Payload, Metadata: e.Metadata,
			OccurredAt: t.receipt.OccurredAt, CommitID: t.receipt.CommitID,
		})
		bytes := itemSize(it)
		if bytes > MaxItemBytes {
			return nil, &TooLargeError{ID: c.Aggregate, What: fmt.Sprintf("event %d of the commit, %q,", i+1, e.Type), Size: bytes, Limit: MaxItemBytes}
		}
		size += bytes
		items = append(items, j.putEvent(it))
	}
	if size > MaxCommitBytes-headItemSize(c.Aggregate, &Snapshot{}) {
		return nil, &TooLargeError{ID: c.Aggregate, What: "the commit", Size: size, Limit: MaxCommitBytes}
	}
	if c.Snapshot != nil {
		bytes := headItemSize(c.Aggregate, c.Snapshot)
		if bytes > MaxItemBytes || size+bytes > MaxCommitBytes {
			c.Snapshot, t.receipt.SnapshotLeftOut = nil, true
		}
	}
	items[0] = j.writeHead(&c)
	t.input = &dynamodb.TransactWriteItemsInput{TransactItems: items, ClientRequestToken: &t.receipt.CommitID}
	return t, nil
}

// validateEvent refuses what the SDK would change on the way: it replaces bytes that
// are not UTF-8.
func validateEvent(e Event) error {
	if !utf8.ValidString(e.ID) || !utf8.ValidString(e.Type) {
		return fmt.Errorf("%w: id %q or type %q is not UTF-8", ErrInvalidEvent, e.ID, e.Type)
	}
	for k, v := range e.Metadata {
		if k == "" {
			return fmt.Errorf("%w: metadata has an empty key", ErrInvalidEvent)
		}
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fmt.Errorf("%w: metadata %q is not UTF-8; put bytes into the payload", ErrInvalidEvent, k)
		}
	}
	return nil
}

// putEvent never overwrites: a stale writer of the event-store-adapter family could.
func (j *Journal) putEvent(it item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName:                           &j.config.Tables.Journal,
		Item:                                it,
		ConditionExpression:                 aws.String("attribute_not_exists(#pk)"),
		ExpressionAttributeNames:            attributeNames("#pk", j.config.Attributes.PartitionKey),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// send repeats the transaction until its outcome is known. The SDK's own retries are
// off here: they would hide whether an attempt may have been written.
func (j *Journal) send(ctx context.Context, t *transaction) error {
	once := func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(j.config.RetryBudget),
	)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append to %s, nothing written: %w", t.commit.Aggregate, err)
	}
	ambiguous := false
	for {
		_, err := j.client.TransactWriteItems(ctx, t.input, once)
		verdict := j.judge(t, err)
		switch verdict {
		case written:
			return nil
		case refused:
			return j.refusal(ctx, t, err)
		case maybeWritten:
			ambiguous = true
		}
		if ctx.Err() != nil || !sleep(ctx, wait.NextBackOff()) {
			return j.giveUp(ctx, t, err, ambiguous)
		}
	}
}

type verdict int

const (
	written      verdict = iota
	refused              // will never be written: say why
	notWritten           // this attempt was not; the next may be
	maybeWritten         // no reply: only the table knows
)

func (j *Journal) judge(t *transaction, err error) verdict {
	var canceled *types.TransactionCanceledException
	switch {
	case err == nil:
		return written
	case errors.As(err, &canceled):
		for _, reason := range canceled.CancellationReasons {
			switch aws.ToString(reason.Code) {
			case "ConditionalCheckFailed", "ValidationError", "ItemCollectionSizeLimitExceeded":
				return refused
			}
		}
		return notWritten // TransactionConflict, ThrottlingError, ProvisionedThroughputExceeded
	case isThrottle(err):
		return notWritten
	case code(err) == "TransactionInProgressException":
		return maybeWritten
	case isContext(err):
		return maybeWritten
	case isAccess(err), unsent(err) && !isDial(err):
		return refused
	case unsent(err):
		return notWritten
	}
	switch code(err) {
	case "ResourceNotFoundException", "ValidationException", "IdempotentParameterMismatchException", "SerializationException":
		return refused
	}
	return maybeWritten
}

// refusal explains why a transaction can not be written, unless it turns out that an
// attempt whose reply was lost did write it. The old item of the first event's row
// decides that, never the head: a later commit may have moved the head.
func (j *Journal) refusal(ctx context.Context, t *transaction, err error) error {
	id := t.commit.Aggregate
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != len(t.input.TransactItems) {
		return fmt.Errorf("append to %s: %w", id, classify(err, j.config.Tables.Journal))
	}
	reasons := canceled.CancellationReasons
	if commitID, _ := stringOf(reasons[1].Item[attrCommitID]); commitID == t.receipt.CommitID {
		return nil
	}
	failed := func(r types.CancellationReason) bool { return aws.ToString(r.Code) == "ConditionalCheckFailed" }
	if failed(reasons[0]) {
		conflict := &ConflictError{ID: id, Expected: t.commit.Expected}
		if reasons[0].Item != nil {
			conflict.Actual, _ = uintOf(reasons[0].Item[j.config.Attributes.Version])
		}
		return conflict
	}
	for i, reason := range reasons[1:] {
		if failed(reason) {
			// The head is where it should be and the event's place is taken: the head was
			// restored from a backup, or an event was written without it.
			return &CorruptItemError{
				Table: j.config.Tables.Journal, PartitionKey: j.partitionKey(id), SortKey: sortKey(id, t.commit.Expected+uint64(i)+1),
				Reason: fmt.Sprintf("exists although the head of its aggregate is at version %d", t.commit.Expected),
			}
		}
	}
	return fmt.Errorf("append to %s: %w", id, classify(err, j.config.Tables.Journal))
}

func (j *Journal) giveUp(ctx context.Context, t *transaction, err error, ambiguous bool) error {
	id := t.commit.Aggregate
	if !ambiguous {
		if ctx.Err() != nil && !isContext(err) {
			err = errors.Join(ctx.Err(), err)
		}
		return fmt.Errorf("append to %s, nothing written: %w", id, classify(err, j.config.Tables.Journal))
	}
	unknown := &OutcomeUnknownError{ID: id, First: t.commit.Expected + 1, CommitID: t.receipt.CommitID, Err: err}
	if ctx.Err() == nil {
		if done, resolveErr := j.Resolve(ctx, unknown); resolveErr == nil && done {
			return nil
		}
	}
	return unknown
}

// sleep waits unless the context ends or the backoff says stop; false means give up.
func sleep(ctx context.Context, d time.Duration) bool {
	if d == backoff.Stop {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
