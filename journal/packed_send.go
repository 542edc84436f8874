package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/storage"
)

// What follows makes packedCommit a sending.

func (c *packedCommit) attempt(ctx context.Context) (err error) {
	if c.transaction == nil {
		_, err = c.p.client.PutItem(ctx, c.put, once)
		return err
	}
	_, err = c.p.client.TransactWriteItems(ctx, c.transaction, once)
	return err
}

func (c *packedCommit) redate(now time.Time) {
	if now.Sub(c.receipt.OccurredAt) < dateAge {
		return
	}
	c.receipt.OccurredAt = now
	for _, it := range c.items {
		if len(c.Events) > 0 {
			it[attrTime] = numberValue(now.UnixMilli())
		} else if noted, err := commandsValue(append(slices.Clip(c.noted), c.dated())); err == nil && len(c.noted) < fewNoted {
			it[attrNoted] = noted
		}
	}
	if c.transaction != nil {
		c.transaction.ClientRequestToken = aws.String(c.p.config.NewID())
	}
}

func (c *packedCommit) explain(err error) error {
	if c.transaction != nil {
		return c.p.explainActions(err, c.transaction.TransactItems)
	}
	return dynamo.ExplainAny(err, []string{c.p.config.Tables.Journal}, "journal.Create")
}

func (c *packedCommit) isWritten(ctx context.Context) (bool, error) {
	return c.p.isAt(ctx, c.Aggregate, c.Expected+1, c.receipt.CommitID)
}

// isAt reports whether a commit wrote the item under a number, or noted its command there.
func (p *packed) isAt(ctx context.Context, id aggregate.ID, number uint64, commitID string) (bool, error) {
	raw, err := p.getItem(ctx, p.config.Tables.Journal, p.key(id, number))
	if err != nil || raw == nil {
		return false, err
	}
	it, err := p.parse(raw)
	return err == nil && it.isOf(commitID), err
}

// refusal goes by the items that are where this commit's would be. They never disappear, so they
// tell for good whose the place is.
func (c *packedCommit) refusal(ctx context.Context, err error, ambiguous bool, left time.Duration) error {
	within, cancel := context.WithTimeout(ctx, max(left, minAttempt))
	defer cancel()
	explained := c.explainRefusal(within, err, ambiguous)
	var unread *unreadError
	switch {
	case !errors.As(explained, &unread):
		return explained
	case ambiguous && len(c.Events) == 0: // it may be among the guards
		return c.unknown(unread.err)
	case !errors.Is(unread.err, context.DeadlineExceeded) || ctx.Err() != nil:
		return c.notWritten(unread.err)
	}
	// The time that was left has passed, not the caller's.
	return fmt.Errorf("append to %s, nothing written: %w: what others have written could not be read in time: %s", c.Aggregate, ErrUnavailable, unread.err.Error())
}

// unreadError: what others have written could not be read.
type unreadError struct{ err error }

func (e *unreadError) Error() string { return e.err.Error() }

func (c *packedCommit) explainRefusal(ctx context.Context, err error, ambiguous bool) error {
	taken, refused := c.taken(err)
	if taken != nil {
		it, err := c.p.parse(taken)
		switch {
		case err != nil:
			return fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, err)
		case it.isOf(c.receipt.CommitID):
			return nil
		case it.isPlaceholder() && it.first == c.Expected+1:
			return c.replace(ctx, it, taken)
		}
		return c.conflict(ctx, it)
	}
	if ambiguous {
		if written, _ := c.isWritten(ctx); written {
			return nil
		}
		return c.unknown(err) // also where it is not there yet: an attempt may still be on its way
	}
	if refused != nil {
		return refused
	}
	return fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, c.explain(err))
}

// taken returns the item that is in the place of one of the commit's own, or else which of the
// caller's writes was refused.
func (c *packedCommit) taken(err error) (item, error) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, nil
	}
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != len(c.transaction.TransactItems) {
		return nil, nil
	}
	for _, reason := range canceled.CancellationReasons[:c.writes] {
		if conditionFailed(reason) {
			return reason.Item, nil
		}
	}
	for i, reason := range canceled.CancellationReasons[c.writes:] {
		if isFinal(reason) {
			w, _ := targetOf(c.Writes[i])
			return nil, &WriteRefusedError{
				ID: c.Aggregate, Index: i, Table: w.table,
				Code: aws.ToString(reason.Code), Message: aws.ToString(reason.Message), Item: reason.Item,
			}
		}
	}
	return nil, nil
}

// conflict says what is in the commit's place: the command itself, or other events. DynamoDB does
// not promise to evaluate all conditions, so the command may also be this commit's, and its own
// item was not in the reply.
func (c *packedCommit) conflict(ctx context.Context, taken *packedItem) error {
	if c.CommandID != "" {
		found := &storage.Commands{}
		err := c.p.query(ctx, c.Aggregate, strconv.FormatUint(c.Expected+1, 10), endOfNumbers, c.p.withoutEvents, func(it *packedItem, err error) error {
			if err != nil {
				return err
			}
			it.addTo(found)
			return nil
		})
		if err != nil {
			return &unreadError{err}
		}
		earlier, executed, err := c.p.executed(ctx, c.Aggregate, found, c.CommandID)
		switch {
		case err != nil:
			return &unreadError{err}
		case executed && earlier.CommitID == c.receipt.CommitID:
			return nil
		case executed:
			return c.duplicate(earlier)
		}
	}
	end, err := c.p.end(ctx, c.Aggregate)
	switch {
	case taken.isTombstone():
		return c.notWritten(taken.deletedError())
	case err != nil:
		return &ConflictError{ID: c.Aggregate, Expected: c.Expected} // how much further it is, is not known
	case end.isTombstone():
		return c.notWritten(end.deletedError())
	}
	return &ConflictError{ID: c.Aggregate, Expected: c.Expected, Actual: end.last()}
}
