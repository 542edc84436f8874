package process

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/cenkalti/backoff/v4"

	"github.com/millrace-dev/millrace/internal/retry"
)

// Run fires timeouts when they are due, and sends stored commands that were not sent, until ctx
// ends. Overdue timeouts of one process fire one after the other, in the order of their times. This
// includes those that the step of one of them sets for a later time that has passed too. The order
// can differ if one of them fails, or if several managers run. Run returns the error of ctx. Run it
// in every program that has the manager: the programs share the work. Failures are logged and
// retried. If the publisher does not return, the attempt at its command ends after
// [Config].RetryAfter, or when ctx ends, and is repeated later.
func (m *Manager[S]) Run(ctx context.Context) error {
	between := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(m.config.PollInterval), backoff.WithMaxInterval(m.config.PollInterval), backoff.WithRandomizationFactor(0.1), backoff.WithMaxElapsedTime(0),
	)
	pool := newWorkerPool()
	defer pool.wait()
	timer := time.NewTimer(retry.Soon)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		m.newPass(pool, func(_ bool, err error) {
			if err != nil && ctx.Err() == nil {
				m.config.Logger.Error("Timeouts or commands that are due could not be handled; will try again", err, watermill.LogFields{"process_type": m.definition.Type()})
			}
		}).poll(ctx)
		timer.Reset(between.NextBackOff())
	}
}

// Fire handles all timeouts and commands that are due now, by [Config].Now, and waits until that is
// done. Without a clock of its own, a manager fires a timeout only when DynamoDB's clock has also
// reached its time, see [Config].Now. [Manager.Run] does the same each PollInterval, without
// waiting. Fire returns the number of timeouts that were handled, including those whose process had
// nothing to do any more. It joins the errors of all failures. Timeouts and commands that failed
// are due again after [Config].RetryAfter.
func (m *Manager[S]) Fire(ctx context.Context) (fired int, err error) {
	var (
		mu    sync.Mutex
		count atomic.Int64
		pool  = newWorkerPool()
	)
	p := m.newPass(pool, func(did bool, e error) {
		if did {
			count.Add(1)
		}
		mu.Lock()
		defer mu.Unlock()
		err = errors.Join(err, e)
	})
	for left := true; left && ctx.Err() == nil; {
		left = p.poll(ctx)
		pool.wait()
	}
	return int(count.Load()), err
}

// visit calls do for some queues until ctx ends. The order is random, since other managers visit
// the queues too.
func (m *Manager[S]) visit(ctx context.Context, from, to int, do func(queue string)) {
	for _, n := range rand.Perm(to - from) {
		if ctx.Err() != nil {
			return
		}
		do(m.queues.name(from + n))
	}
}

func rowName(row item) string { return text(row[pkey]) + separator + text(row[skey]) }

// dueAtOnce is the number of rows that are read at once, about 20 KB of keys.
const dueAtOnce = 200

// due returns a page of the due rows of a queue, and the key after which the next page begins.
func (m *Manager[S]) due(ctx context.Context, queue string, now time.Time, start item) (rows []item, last item, err error) {
	out, err := m.client.Query(ctx, &dynamodb.QueryInput{
		TableName: aws.String(m.config.Table), IndexName: aws.String(dueIndex),
		KeyConditionExpression:    aws.String("#q = :q AND #d <= :now"),
		ExpressionAttributeNames:  map[string]string{"#q": queueAttribute, "#d": dueAttribute},
		ExpressionAttributeValues: item{":q": textValue(queue), ":now": timeValue(now)},
		ExclusiveStartKey:         start, Limit: aws.Int32(dueAtOnce),
	})
	if err != nil {
		return nil, nil, explain(err, m.config.Table)
	}
	if rows, err = m.withoutEarly(ctx, out.Items); err != nil {
		return nil, nil, err
	}
	return rows, out.LastEvaluatedKey, nil
}

// withoutEarly removes rows that are not due. Somebody may have set the clock that selected them,
// which the reply has shown. A timeout waits until DynamoDB's clock has certainly reached its time.
func (m *Manager[S]) withoutEarly(ctx context.Context, rows []item) ([]item, error) {
	if m.ownClock || len(rows) == 0 {
		return rows, nil
	}
	if err := m.journal.ConfirmClock(ctx); err != nil {
		return nil, err
	}
	now := m.config.Now()
	reached, ok := m.journal.Reached()
	if !ok {
		reached = now
	}
	return slices.DeleteFunc(rows, func(row item) bool {
		due := timeOf(row[dueAttribute])
		return due.After(now) || strings.HasPrefix(text(row[skey]), timeoutPrefix) && due.After(reached)
	}), nil
}
