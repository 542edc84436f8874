package process

import (
	"context"
	"errors"
	"fmt"
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
// ends. It returns the error of ctx. Run it in every program that has the manager: the programs
// share the work. Failures are logged and retried. If the publisher does not return, the attempt at
// its command ends after [Config].RetryAfter, or when ctx ends, and is repeated later.
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
		m.poll(ctx, pool, func(_ bool, err error) {
			if err != nil && ctx.Err() == nil {
				m.config.Logger.Error("Timeouts or commands that are due could not be handled; will try again", err, watermill.LogFields{"process_type": m.definition.Type()})
			}
		})
		timer.Reset(between.NextBackOff())
	}
}

// Fire handles once all timeouts and commands that are due now, by [Config].Now, and waits until
// that is done. Without a clock of its own, a manager fires a timeout only when DynamoDB's clock
// has also reached its time, see [Config].Now. [Manager.Run] does the same each PollInterval,
// without waiting. Fire returns the number of timeouts that were handled, including those whose
// process had nothing to do any more. It joins the errors of all failures. Timeouts and commands
// that failed are due again after [Config].RetryAfter.
func (m *Manager[S]) Fire(ctx context.Context) (fired int, err error) {
	var (
		mu    sync.Mutex
		count atomic.Int64
		pool  = newWorkerPool()
	)
	m.poll(ctx, pool, func(did bool, e error) {
		if did {
			count.Add(1)
		}
		mu.Lock()
		defer mu.Unlock()
		err = errors.Join(err, e)
	})
	pool.wait()
	return int(count.Load()), err
}

// poll passes due rows to the workers of a pool. It calls done for each row, and for each other
// failure. It reads the number of queues after it has visited the known ones, so that the known
// queues do not wait for the read.
func (m *Manager[S]) poll(ctx context.Context, pool *workerPool, done func(fired bool, err error)) {
	defer m.stats.polls.Add(1)
	failed := func(err error) {
		if err != nil {
			m.countFailed(ctx)
			done(false, err)
		}
	}
	now, known := m.config.Now(), m.queues.count()
	m.visit(ctx, 0, known, func(queue string) { failed(m.pollQueue(ctx, queue, now, pool, done)) })
	failed(m.queues.refresh(ctx))
	m.visit(ctx, known, m.queues.count(), func(queue string) { failed(m.pollQueue(ctx, queue, now, pool, done)) })
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

// pollQueue takes the due rows of a queue. Other managers see the same rows, so it takes them in
// random order, a batch at a time. If another manager already holds a row, pollQueue takes fewer
// and queries again, since a lost attempt costs one write unit.
func (m *Manager[S]) pollQueue(ctx context.Context, queue string, now time.Time, pool *workerPool, done func(fired bool, err error)) error {
	var start item
	tried, batch := map[string]bool{}, 1
	for {
		page, last, err := m.due(ctx, queue, now, start)
		if err != nil {
			return fmt.Errorf("poll for due timeouts and commands: %w", err)
		}
		page = slices.DeleteFunc(page, func(row item) bool { return tried[rowName(row)] })
		rand.Shuffle(len(page), func(i, j int) { page[i], page[j] = page[j], page[i] })
		lost := false
		for len(page) > 0 && !lost {
			rows := page[:min(batch, len(page))]
			page = page[len(rows):]
			for _, row := range rows {
				tried[rowName(row)] = true
			}
			if lost, err = m.takeAll(ctx, rows, pool, done); err != nil {
				return err
			}
			if batch = min(2*batch, atOnce); lost {
				batch = max(1, batch/4)
			}
		}
		switch {
		case lost: // read the rest of the page again
		case last == nil:
			return nil
		default:
			start, tried = last, map[string]bool{}
		}
	}
}

// takeAll starts to take some rows and waits for their leases, at most for slotTimeout. Lost
// reports whether another manager held one of them.
func (m *Manager[S]) takeAll(ctx context.Context, rows []item, pool *workerPool, done func(fired bool, err error)) (lost bool, err error) {
	leased := make(chan bool, len(rows))
	for _, row := range rows {
		err := pool.do(ctx, func() {
			fired, err := m.take(ctx, row, leased)
			if fired {
				m.stats.fired.Add(1)
			}
			done(fired, err)
		})
		if err != nil {
			return lost, err
		}
	}
	late := time.NewTimer(slotTimeout)
	defer late.Stop()
	for range rows {
		select {
		case own := <-leased:
			lost = lost || !own
		case <-late.C:
			return lost, nil
		}
	}
	return lost, nil
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
