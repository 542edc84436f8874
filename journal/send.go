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

// sending is a commit that is being sent: it makes the requests of a layout that write the commit,
// and interprets their errors.
type sending interface {
	target() string     // for errors
	begunAt() time.Time // when RetryBudget began
	// attempt sends one request, without the SDK's retries; see once.
	attempt(ctx context.Context) error
	// refusal returns the reason why no attempt can succeed any more. It returns nil if an earlier
	// attempt was written after all. It returns errSendAgain if it has changed the commit, which
	// should be sent again. Ambiguous is true if an earlier attempt may have been written.
	refusal(ctx context.Context, err error, ambiguous bool, left time.Duration) error
	// redate replaces the date of a commit if it is old. It may only be called if no attempt can
	// have been written: otherwise its events could have two dates.
	redate(now time.Time)
	// explain converts an error of DynamoDB, and names the tables that it is about.
	explain(err error) error
	unknown(err error) *OutcomeUnknownError
	// isWritten reads the table to find out whether the commit was written.
	isWritten(ctx context.Context) (bool, error)
}

// send repeats attempts at a commit until its outcome is known. The SDK's own retries are off here,
// because they would hide whether an attempt may have been written.
func (s *store) send(ctx context.Context, w sending) error {
	wait := s.patience()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append to %s, nothing written: %w", w.target(), err)
	}
	ambiguous := false // whether an earlier attempt may have been written
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
			// The change is soon out of date if other processes write the same aggregate.
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

// left returns the rest of the retry budget.
func (s *store) left(w sending) time.Duration {
	return time.Until(w.begunAt().Add(s.config.RetryBudget))
}

// attemptWithin makes one attempt. A connection that hangs must not outlast the retry budget,
// because an event must become visible soon after its date.
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
	written attemptOutcome = iota
	// this attempt was not written, and a repetition would not be: return the reason
	refused
	notWritten   // this attempt was not written; a repetition may be
	maybeWritten // there was no reply: only the table shows the outcome
)

func classify(err error) attemptOutcome {
	var canceled *types.TransactionCanceledException
	switch {
	case err == nil:
		return written
	case errors.As(err, &canceled):
		// Another transaction may be under way on an item. Then the conditions of other items may
		// be evaluated on a part of its writes, for example on an event whose head has not moved
		// yet.
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

// sendAgainPause is the longest pause before a changed commit is sent again.
const sendAgainPause = 5 * time.Millisecond

// errSendAgain means that the commit was changed and should be sent again.
var errSendAgain = errors.New("send again")

// isWrittenWithin looks for a commit for no longer than an attempt may take, because a connection
// can hang.
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

// unknown keeps the error of the SDK unchanged, because the sentinels of this package mean that
// nothing was written.
func (d *draft) unknown(err error) *OutcomeUnknownError {
	return &OutcomeUnknownError{ID: d.Aggregate, First: d.Expected + 1, CommitID: d.receipt.CommitID, CommandID: d.CommandID, Err: err}
}

// dateAge is how old the date of a commit may be when it is sent again.
const dateAge = 100 * time.Millisecond

// sleep waits for d. It returns false if the context ended or the backoff says stop.
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

// explainActions calls dynamo.Explain for a transaction. It passes the tables of the actions that
// DynamoDB names, or all tables if it names none.
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
		creator = "journal.Create, or the package that uses the other table,"
	}
	return dynamo.ExplainAny(err, tables, creator)
}
