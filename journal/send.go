package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/dynamo"
)

// sending is a commit on its way: the requests of a layout that write it, and what their errors
// mean.
type sending interface {
	target() string     // in errors
	begunAt() time.Time // from where RetryBudget counts
	// attempt sends one request, without the SDK's retries; see once.
	attempt(ctx context.Context) error
	// refusal explains why no attempt can succeed any more. It returns nil if an earlier attempt
	// was written after all, and errSendAgain to have the commit sent again, changed. Ambiguous says
	// that an earlier attempt may have been written.
	refusal(ctx context.Context, err error, ambiguous bool, left time.Duration) error
	// redate replaces the date of a commit whose date is old. No attempt can have been written:
	// otherwise its events could have two dates.
	redate(now time.Time)
	// explain says what an error means, and for which tables.
	explain(err error) error
	unknown(err error) *OutcomeUnknownError
	// isWritten reads the table.
	isWritten(ctx context.Context) (bool, error)
}

// send repeats the attempts at a commit until its outcome is known. The SDK's own retries are off
// here: they would hide whether an attempt may have been written.
func (s *store) send(ctx context.Context, w sending) error {
	wait := s.patience()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append to %s, nothing written: %w", w.target(), err)
	}
	ambiguous := false // an attempt before this one may have been written
	repeats := 0
	for {
		err := attemptWithin(ctx, w, s.left(w))
		switch classify(err) {
		case written:
			return nil
		case refused:
			if err := w.refusal(ctx, err, ambiguous, s.left(w)); !errors.Is(err, errSendAgain) {
				return err
			}
			// What it is changed to is out of date soon, where others write the same.
			if repeats++; repeats > 1 && (s.left(w) <= 0 || !sleep(ctx, rand.N(sendAgainPause))) {
				return giveUp(ctx, w, ErrContended, ambiguous, s.left(w))
			}
			if !ambiguous {
				w.redate(s.now())
			}
			continue
		case maybeWritten:
			ambiguous = true
		}
		if !sleep(ctx, wait.NextBackOff()) {
			return giveUp(ctx, w, err, ambiguous, s.left(w))
		}
		if !ambiguous {
			w.redate(s.now())
		}
	}
}

// left is what is left of the budget.
func (s *store) left(w sending) time.Duration {
	return time.Until(w.begunAt().Add(s.config.RetryBudget))
}

// attemptWithin makes one attempt. A connection that hangs must not outlast the budget: an event
// must not show long after its date.
func attemptWithin(ctx context.Context, w sending, left time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, max(left, minAttempt))
	defer cancel()
	return w.attempt(ctx)
}

// once turns the SDK's retries off for a request.
func once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

const minAttempt = time.Second

type attemptOutcome int

const (
	written      attemptOutcome = iota
	refused                     // this attempt was not, nor will another be: say why
	notWritten                  // this attempt was not; the next may be
	maybeWritten                // no reply: only the table knows
)

func classify(err error) attemptOutcome {
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
	case "ConditionalCheckFailedException", "ResourceNotFoundException", "ValidationException", "IdempotentParameterMismatchException", "SerializationException":
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

// sendAgainPause is how long a commit waits at most before it is sent again, changed.
const sendAgainPause = 5 * time.Millisecond

// errSendAgain: the commit was changed and is to be sent again.
var errSendAgain = errors.New("send again")

// isWrittenWithin looks for a commit no longer than its attempts may take, for connections that
// hang.
func isWrittenWithin(ctx context.Context, w sending, left time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, max(left, minAttempt))
	defer cancel()
	return w.isWritten(ctx)
}

func giveUp(ctx context.Context, w sending, err error, ambiguous bool, left time.Duration) error {
	if !ambiguous {
		err = w.explain(err)
	}
	if ctx.Err() != nil && !dynamo.IsContext(err) {
		err = errors.Join(ctx.Err(), err)
	}
	if !ambiguous {
		return fmt.Errorf("append to %s, nothing written: %w", w.target(), err)
	}
	if ctx.Err() == nil {
		if done, _ := isWrittenWithin(ctx, w, left); done {
			return nil
		}
	}
	return w.unknown(err)
}

func (d *draft) target() string     { return d.Aggregate.String() }
func (d *draft) begunAt() time.Time { return d.begun }

// unknown keeps the SDK's error as it is: the sentinels of this package say that nothing was
// written.
func (d *draft) unknown(err error) *OutcomeUnknownError {
	return &OutcomeUnknownError{ID: d.Aggregate, First: d.Expected + 1, CommitID: d.receipt.CommitID, CommandID: d.CommandID, Err: err}
}

// dateAge is how old the date of a commit may be when it is sent again.
const dateAge = 100 * time.Millisecond

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

// explainActions is dynamo.Explain for a transaction: the tables are those of the actions that
// DynamoDB names, or all if it names none.
func (s *store) explainActions(err error, actions []types.TransactWriteItem) error {
	var tables []string
	add := func(action types.TransactWriteItem) {
		if t, _ := targetOf(action); !slices.Contains(tables, t.table) {
			tables = append(tables, t.table)
		}
	}
	for _, i := range dynamo.PassingActions(err) {
		if i < len(actions) {
			add(actions[i])
		}
	}
	if len(tables) == 0 {
		for _, action := range actions {
			add(action)
		}
	}
	slices.Sort(tables)
	creator := "journal.Create"
	if slices.ContainsFunc(tables, func(table string) bool { return table != s.config.Tables.Journal && table != s.config.Tables.Snapshot }) {
		creator = "journal.Create, or the package that has the other table,"
	}
	return dynamo.ExplainAny(err, tables, creator)
}
