package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

// send repeats the transaction until its outcome is known. The SDK's own retries are
// off here: they would hide whether an attempt may have been written.
func (j *engine) send(ctx context.Context, t *transaction) error {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(j.config.RetryBudget),
	)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append to %s, nothing written: %w", t.commit.Aggregate, err)
	}
	ambiguous := false // an attempt before this one may have been written
	for {
		err := j.attempt(ctx, t, j.left(t))
		switch judge(err) {
		case written:
			return nil
		case refused:
			if err := j.refusal(ctx, t, err, ambiguous, j.left(t)); !errors.Is(err, errRefit) {
				return err
			}
			continue
		case maybeWritten:
			ambiguous = true
		}
		if !sleep(ctx, wait.NextBackOff()) {
			return j.giveUp(ctx, t, err, ambiguous, j.left(t))
		}
		if !ambiguous {
			j.dateAgain(t)
		}
	}
}

// left is what is left of the budget.
func (j *engine) left(t *transaction) time.Duration {
	return time.Until(t.begun.Add(j.config.RetryBudget))
}

// attempt sends the transaction once. A connection that hangs must not outlast the budget: an event
// must not show long after its date.
func (j *engine) attempt(ctx context.Context, t *transaction, left time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, max(left, minAttempt))
	defer cancel()
	once := func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }
	_, err := j.client.TransactWriteItems(ctx, t.input, once)
	return err
}

const minAttempt = time.Second

type verdict int

const (
	written      verdict = iota
	refused              // this attempt was not, nor will another be: say why
	notWritten           // this attempt was not; the next may be
	maybeWritten         // no reply: only the table knows
)

func judge(err error) verdict {
	var canceled *types.TransactionCanceledException
	switch {
	case err == nil:
		return written
	case errors.As(err, &canceled):
		// While another transaction is under way on an item, what the conditions of the others
		// found is of that one in part: an event whose head is still to move, for example.
		if slices.ContainsFunc(canceled.CancellationReasons, isFinal) && !slices.ContainsFunc(canceled.CancellationReasons, isUnderWay) {
			return refused
		}
		return notWritten // TransactionConflict, ThrottlingError, ProvisionedThroughputExceeded
	case dynamo.IsThrottle(err), dynamo.IsContended(err):
		return notWritten
	case dynamo.IsContext(err):
		return maybeWritten
	case dynamo.IsAccess(err):
		return refused
	case dynamo.IsUnreachable(err):
		return notWritten
	case dynamo.IsUnsent(err):
		return refused
	}
	switch dynamo.Code(err) {
	case "ResourceNotFoundException", "ValidationException", "IdempotentParameterMismatchException", "SerializationException":
		return refused
	}
	return maybeWritten // also TransactionInProgressException: an earlier attempt is under way
}

func isFinal(r types.CancellationReason) bool {
	switch aws.ToString(r.Code) {
	case "ConditionalCheckFailed", "ValidationError", "ItemCollectionSizeLimitExceeded":
		return true
	}
	return false
}

func isUnderWay(r types.CancellationReason) bool {
	return aws.ToString(r.Code) == "TransactionConflict"
}

func conditionFailed(r types.CancellationReason) bool {
	return aws.ToString(r.Code) == "ConditionalCheckFailed"
}

// refusal explains why a transaction cannot be written, unless it turns out that an
// attempt whose reply was lost did write it; see [transaction.isWritten].
func (j *engine) refusal(ctx context.Context, t *transaction, err error, ambiguous bool, left time.Duration) error {
	id := t.commit.Aggregate
	var reasons []types.CancellationReason
	var canceled *types.TransactionCanceledException
	if errors.As(err, &canceled) && len(canceled.CancellationReasons) == len(t.input.TransactItems) {
		reasons = canceled.CancellationReasons
		if t.isWritten(reasons) {
			return nil
		}
	}
	if ambiguous {
		// DynamoDB does not promise to evaluate all conditions once one has failed. And a
		// refusal that is not a failed condition says nothing of the attempts before.
		unknown := t.unknown(err)
		if done, readErr := j.resolveWithin(ctx, unknown, left); done {
			return nil
		} else if readErr != nil || !slices.ContainsFunc(reasons, conditionFailed) {
			return unknown
		}
		if reasons != nil && t.guard == 0 && j.mayBeRemoved(t, reasons[0].Item) {
			return unknown
		}
	}
	if t.guard > 0 && reasons != nil && conditionFailed(reasons[t.guard]) {
		return j.duplicate(t.commit, reasons[t.guard].Item)
	}
	for i, reason := range reasons {
		switch {
		case !isFinal(reason):
		case i >= t.writes && ambiguous:
			// The caller's condition may come true again while an earlier attempt is still on its
			// way.
			return t.unknown(err)
		case i >= t.writes:
			return t.writeRefused(i, reason)
		case !conditionFailed(reason):
		case i == 0 && j.refit(t, reason.Item):
			return errRefit
		case i == 0:
			refused := j.conflict(t.commit, reason.Item)
			var conflict *ConflictError
			if ambiguous && errors.As(refused, &conflict) && conflict.Actual < conflict.Expected {
				// The head may yet come to where an attempt on its way expects it.
				return t.unknown(err)
			}
			return refused
		default:
			return j.taken(ctx, t, i, ambiguous, left)
		}
	}
	return fmt.Errorf("append to %s, nothing written: %w", id, j.explain(err, t))
}

// taken explains why the place of an event is taken though the head's condition was not found
// false. Either it was not evaluated, and there is a conflict, or the head is where it should be:
// it was restored from a backup, or an event was written without it.
func (j *engine) taken(ctx context.Context, t *transaction, action int, ambiguous bool, left time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, max(left, minAttempt))
	defer cancel()
	id := t.commit.Aggregate
	row, err := j.getItem(ctx, j.config.Tables.Snapshot, j.key(id, 0))
	if err != nil && ambiguous {
		return t.unknown(err)
	}
	if err != nil {
		return fmt.Errorf("append to %s, nothing written: %w", id, err)
	}
	version, _ := uintOf(row[j.config.Attributes.Version])
	if version > t.commit.Expected || row[attrDeletedAt] != nil {
		return j.conflict(t.commit, row)
	}
	item := t.input.TransactItems[action].Put.Item
	partition, sort := j.keysOf(item)
	number, _ := uintOf(item[j.config.Attributes.SequenceNumber])
	return &CorruptItemError{
		Aggregate: id, Number: number, Table: j.config.Tables.Journal, PartitionKey: partition, SortKey: sort,
		Reason: fmt.Sprintf("exists although the head of its aggregate is at version %d", version),
	}
}

// mayBeRemoved reports that the head no longer vouches for the commit's first event, which would
// tell whose it is.
func (j *engine) mayBeRemoved(t *transaction, head item) bool {
	before, _ := uintOf(head[attrTruncatedBefore])
	return before > t.commit.Expected+1
}

// errRefit: the transaction was changed and is to be sent again.
var errRefit = errors.New("send again")

// resolveWithin looks for a commit no longer than its attempts may take, for connections that hang.
func (j *engine) resolveWithin(ctx context.Context, unknown *OutcomeUnknownError, left time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, max(left, minAttempt))
	defer cancel()
	written, _, err := j.lookFor(ctx, unknown)
	return written, err
}

func (j *engine) conflict(c *commit, head item) error {
	conflict := &ConflictError{ID: c.Aggregate, Expected: c.Expected}
	if head == nil {
		return conflict
	}
	h, err := j.headOf(c.Aggregate, head)
	if err == nil && !h.DeletedAt.IsZero() {
		err = h.deleted()
	}
	if err != nil {
		return fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, err)
	}
	conflict.Actual = h.Version
	return conflict
}

func (j *engine) duplicate(c *commit, guard item) error {
	command, err := j.commandOf(guard)
	if err != nil {
		return fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, err)
	}
	return &DuplicateCommandError{
		ID: c.Aggregate, CommandID: command.ID, CommitID: command.CommitID, First: command.First, Version: command.Version,
	}
}

func (j *engine) giveUp(ctx context.Context, t *transaction, err error, ambiguous bool, left time.Duration) error {
	if !ambiguous {
		err = j.explain(err, t)
	}
	if ctx.Err() != nil && !dynamo.IsContext(err) {
		err = errors.Join(ctx.Err(), err)
	}
	if !ambiguous {
		return fmt.Errorf("append to %s, nothing written: %w", t.commit.Aggregate, err)
	}
	unknown := t.unknown(err)
	if ctx.Err() == nil {
		if done, _ := j.resolveWithin(ctx, unknown, left); done {
			return nil
		}
	}
	return unknown
}

// unknown keeps the SDK's error as it is: the sentinels of this package say that nothing was
// written.
func (t *transaction) unknown(err error) *OutcomeUnknownError {
	return &OutcomeUnknownError{
		ID: t.commit.Aggregate, First: t.commit.Expected + 1, CommitID: t.receipt.CommitID, CommandID: t.commit.CommandID, Err: err,
	}
}

// sleep waits unless the context ends or the backoff says stop; false means give up.
func sleep(ctx context.Context, d time.Duration) bool {
	if d == backoff.Stop || ctx.Err() != nil {
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
