package packed

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
	"github.com/millrace-dev/millrace/internal/table"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// The methods below make commit a table.Sending.

func (c *commit) Attempt(ctx context.Context) (err error) {
	if c.transaction == nil {
		_, err = c.p.Client.PutItem(ctx, c.put, table.Once)
		return err
	}
	_, err = c.p.Client.TransactWriteItems(ctx, c.transaction, table.Once)
	return err
}

func (c *commit) Redate(now time.Time) {
	if now.Sub(c.Receipt.OccurredAt) < table.DateAge {
		return
	}
	c.Receipt.OccurredAt = now
	for _, it := range c.items {
		if len(c.Events) > 0 {
			it[attrTime] = table.NumberValue(now.UnixMilli())
		} else if noted, err := c.p.commandsValue(append(slices.Clip(c.noted), c.dated())); err == nil && len(c.noted) < fewNoted {
			it[attrNoted] = noted
		}
	}
	if c.transaction != nil {
		c.transaction.ClientRequestToken = aws.String(c.p.Config.NewID())
	}
}

func (c *commit) Explain(err error) error {
	if c.transaction != nil {
		return c.p.ExplainActions(err, c.transaction.TransactItems)
	}
	return dynamo.ExplainAny(err, []string{c.p.Config.Tables.Journal}, "journal.Create")
}

func (c *commit) IsWritten(ctx context.Context) (bool, error) {
	return c.p.isAt(ctx, c.Aggregate, c.Expected+1, c.Receipt.CommitID)
}

// isAt reports whether a commit wrote the item under a number, or whether the item notes its
// command.
func (p *layout) isAt(ctx context.Context, id aggregate.ID, number uint64, commitID string) (bool, error) {
	raw, err := p.GetItem(ctx, p.Config.Tables.Journal, p.key(id, number))
	if err != nil || raw == nil {
		return false, err
	}
	it, err := p.parse(raw)
	return err == nil && it.isOf(commitID), err
}

// Refusal compares the commit with the items in its places. These never disappear, so they show
// permanently which commit has the place.
func (c *commit) Refusal(ctx context.Context, err error, ambiguous bool, left time.Duration) error {
	within, cancel := context.WithTimeout(ctx, max(left, table.MinAttempt))
	defer cancel()
	explained := c.explainRefusal(within, err, ambiguous)
	var unread *unreadError
	switch {
	case !errors.As(explained, &unread):
		return explained
	case ambiguous && len(c.Events) == 0: // its command may be among the guards
		return c.Unknown(unread.err)
	case !errors.Is(unread.err, context.DeadlineExceeded) || ctx.Err() != nil:
		return c.notWritten(unread.err)
	}
	// The retry budget has ended, not the caller's deadline.
	return fmt.Errorf("append to %s, nothing written: %w: the items of other commits could not be read in time: %s", c.Aggregate, journaltype.ErrUnavailable, unread.err.Error())
}

// unreadError reports that the items of other commits could not be read.
type unreadError struct{ err error }

func (e *unreadError) Error() string { return e.err.Error() }

func (c *commit) explainRefusal(ctx context.Context, err error, ambiguous bool) error {
	taken, refused := c.taken(err)
	if taken != nil {
		it, err := c.p.parse(taken)
		switch {
		case err != nil:
			return fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, err)
		case it.isOf(c.Receipt.CommitID):
			return nil
		case it.isPlaceholder() && it.first == c.Expected+1:
			return c.replace(ctx, it, taken)
		}
		if c.ReadsOn && !ambiguous && !it.isTombstone() {
			return &journaltype.ConflictError{ID: c.Aggregate, Expected: c.Expected, Actual: max(it.last(), it.partOf.last)}
		}
		return c.conflict(ctx, it)
	}
	if ambiguous {
		if written, _ := c.IsWritten(ctx); written {
			return nil
		}
		// An attempt may still be under way even if the item is absent.
		return c.Unknown(err)
	}
	if refused != nil {
		return refused
	}
	return fmt.Errorf("append to %s, nothing written: %w", c.Aggregate, c.Explain(err))
}

// taken returns the item that occupies one of the places of the commit. If a write of the caller
// was refused, it returns an error.
func (c *commit) taken(err error) (table.Item, error) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, nil
	}
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != len(c.transaction.TransactItems) {
		return nil, nil
	}
	for _, reason := range canceled.CancellationReasons[:c.writes] {
		if table.ConditionFailed(reason) {
			return reason.Item, nil
		}
	}
	for i, reason := range canceled.CancellationReasons[c.writes:] {
		if table.IsFinal(reason) {
			w, _ := table.TargetOf(c.Writes[i])
			return nil, &journaltype.WriteRefusedError{
				ID: c.Aggregate, Index: i, Table: w.Table,
				Code: aws.ToString(reason.Code), Message: aws.ToString(reason.Message), Item: reason.Item,
			}
		}
	}
	return nil, nil
}

// conflict explains why the place of the commit is taken: by the command itself, or by other
// events. DynamoDB does not promise to evaluate all conditions. So the command may be that of this
// commit even if the reply does not contain its item.
func (c *commit) conflict(ctx context.Context, taken *item) error {
	if c.CommandID != "" {
		found := &storage.Commands{}
		err := c.p.query(ctx, c.Aggregate, strconv.FormatUint(c.Expected+1, 10), endOfNumbers, c.p.withoutEvents, func(it *item, err error) error {
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
		case executed && earlier.CommitID == c.Receipt.CommitID:
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
		// the actual version is not known
		return &journaltype.ConflictError{ID: c.Aggregate, Expected: c.Expected}
	case end.isTombstone():
		return c.notWritten(end.deletedError())
	}
	return &journaltype.ConflictError{ID: c.Aggregate, Expected: c.Expected, Actual: end.last()}
}
