package table

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

	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal/journaltype"
)

// Dates holds when the retry budget begins, and the date of the events.
type Dates struct{ Begun, OccurredAt time.Time }

// Sending is a commit that is being sent: it makes the requests of a layout that write the commit,
// and interprets their errors. engine.Draft has Target, BegunAt and Unknown, and the layouts have
// the other methods.
type Sending interface {
	Target() string     // for errors
	BegunAt() time.Time // when RetryBudget began
	// Attempt sends one request, without the SDK's retries.
	Attempt(ctx context.Context) error
	// Refusal returns the reason why no attempt can succeed any more. It returns nil if an earlier
	// attempt was written after all. It returns ErrSendAgain if it has changed the commit, which
	// should be sent again. Ambiguous is true if an earlier attempt may have been written.
	Refusal(ctx context.Context, err error, ambiguous bool, left time.Duration) error
	// Redate replaces the date of a commit if it is old. It may only be called if no attempt can
	// have been written: otherwise its events could have two dates.
	Redate(now time.Time)
	// Explain converts an error of DynamoDB, and names the tables that it is about.
	Explain(err error) error
	Unknown(err error) *journaltype.OutcomeUnknownError
	// IsWritten reads the table to find out whether the commit was written.
	IsWritten(ctx context.Context) (bool, error)
}

// Send repeats attempts at a commit until its outcome is known. The SDK's own retries are off here,
// because they would hide whether an attempt may have been written.
func (t *Table) Send(ctx context.Context, w Sending) error {
	wait := t.Patience()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("append to %s, nothing written: %w", w.Target(), err)
	}
	ambiguous := false // whether an earlier attempt may have been written
	repeats := 0
	for {
		sent := time.Now()
		err := attemptWithin(ctx, w, t.left(ctx, w))
		outcome := classify(err)
		if outcome == written || outcome == refused {
			t.quotas.succeeded(t.shardOf(w))
		}
		switch outcome {
		case written:
			return nil
		case refused:
			if err := w.Refusal(ctx, err, ambiguous, t.left(ctx, w)); !errors.Is(err, ErrSendAgain) {
				return err
			}
			// The change is soon out of date if other processes write the same aggregate.
			if repeats++; repeats > 1 && (t.left(ctx, w) <= 0 || !retry.Sleep(ctx, rand.N(SendAgainPause))) {
				return giveUp(ctx, w, journaltype.ErrContended, ambiguous, t.left(ctx, w))
			}
			if !ambiguous {
				w.Redate(t.Now())
			}
			continue
		case maybeWritten:
			ambiguous = true
		}
		if !t.mayRepeat(ctx, w, wait.NextBackOff(), sent, err) {
			return giveUp(ctx, w, err, ambiguous, t.left(ctx, w))
		}
		if !ambiguous {
			w.Redate(t.Now())
		}
	}
}

// left returns the rest of the retry budget, or of the one that the requests of ctx share.
func (t *Table) left(ctx context.Context, w Sending) time.Duration {
	return retry.BudgetOf(ctx).Left(time.Until(w.BegunAt().Add(t.Config.RetryBudget)))
}

// attemptWithin makes one attempt. A connection that hangs must not outlast the retry budget,
// because an event must become visible soon after its date.
func attemptWithin(ctx context.Context, w Sending, left time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, max(left, MinAttempt))
	defer cancel()
	return w.Attempt(ctx)
}

// Once turns the SDK's retries off for a request.
func Once(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} }

// MinAttempt is the time that an attempt has at least.
const MinAttempt = time.Second

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
		if slices.ContainsFunc(canceled.CancellationReasons, IsFinal) && !slices.ContainsFunc(canceled.CancellationReasons, isUnderWay) {
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

// IsFinal reports whether an action can never succeed, because of its condition or its content.
func IsFinal(r types.CancellationReason) bool {
	switch aws.ToString(r.Code) {
	case "ConditionalCheckFailed", "ValidationError", "ItemCollectionSizeLimitExceeded":
		return true
	}
	return false
}

func isUnderWay(r types.CancellationReason) bool {
	return aws.ToString(r.Code) == "TransactionConflict"
}

// ConditionFailed reports whether the condition of an action was false.
func ConditionFailed(r types.CancellationReason) bool {
	return aws.ToString(r.Code) == "ConditionalCheckFailed"
}

// SendAgainPause is the longest pause before a changed commit is sent again.
const SendAgainPause = 5 * time.Millisecond

// ErrSendAgain means that the commit was changed and should be sent again.
var ErrSendAgain = errors.New("send again")

// IsWrittenWithin looks for a commit for no longer than an attempt may take, because a connection
// can hang.
func IsWrittenWithin(ctx context.Context, w Sending, left time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, max(left, MinAttempt))
	defer cancel()
	return w.IsWritten(ctx)
}

func giveUp(ctx context.Context, w Sending, err error, ambiguous bool, left time.Duration) error {
	if !ambiguous {
		err = w.Explain(err)
	}
	if ctx.Err() != nil && !dynamo.IsContext(err) {
		err = errors.Join(ctx.Err(), err)
	}
	if !ambiguous {
		return fmt.Errorf("append to %s, nothing written: %w", w.Target(), err)
	}
	if ctx.Err() == nil {
		if done, _ := IsWrittenWithin(ctx, w, left); done {
			return nil
		}
	}
	return w.Unknown(err)
}

// DateAge is how old the date of a commit may be when it is sent again.
const DateAge = 100 * time.Millisecond

// ExplainActions calls dynamo.Explain for a transaction. It passes the tables of the actions that
// DynamoDB names, or all tables if it names none.
func (t *Table) ExplainActions(err error, actions []types.TransactWriteItem) error {
	var tables []string
	add := func(action types.TransactWriteItem) {
		if t, _ := TargetOf(action); !slices.Contains(tables, t.Table) {
			tables = append(tables, t.Table)
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
	if slices.ContainsFunc(tables, func(name string) bool { return name != t.Config.Tables.Journal && name != t.Config.Tables.Snapshot }) {
		creator = "journal.Create, or the package that uses the other table,"
	}
	return dynamo.ExplainAny(err, tables, creator)
}
