package process

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/cenkalti/backoff/v4"
)

// Run fires timeouts when they are due, and sends commands that somebody else has stored and not
// sent, until ctx ends. Run it in every process of the operating system that has the manager: they
// share the work. What goes wrong is logged and tried again. Nothing waits for a publisher that
// does not return: its command is given up after [Config].RetryAfter, or when ctx ends, and tried
// again.
func (m *Manager[S]) Run(ctx context.Context) error {
	between := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(m.config.PollInterval), backoff.WithMaxInterval(m.config.PollInterval), backoff.WithRandomizationFactor(0.1), backoff.WithMaxElapsedTime(0),
	)
	crew := newCrew()
	defer crew.wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		m.look(ctx, crew, func(_ bool, err error) {
			if err != nil && ctx.Err() == nil {
				m.config.Logger.Error("A timeout could not fire, or commands could not be sent; will try again", err, watermill.LogFields{"process_type": m.definition.Type()})
			}
		})
		timer.Reset(between.NextBackOff())
	}
}

// Fire does what is due now, by [Config].Now, once, and waits for it: [Manager.Run] does the same
// each PollInterval, and does not wait. It returns how many timeouts were handled, those included
// whose process had nothing to do any more. The errors of all that failed are joined; it happens
// again after [Config].RetryAfter.
func (m *Manager[S]) Fire(ctx context.Context) (fired int, err error) {
	var (
		mu    sync.Mutex
		count atomic.Int64
		crew  = newCrew()
	)
	m.look(ctx, crew, func(did bool, e error) {
		if did {
			count.Add(1)
		}
		mu.Lock()
		defer mu.Unlock()
		err = errors.Join(err, e)
	})
	crew.wait()
	return int(count.Load()), err
}

// look has a crew see to what is due. Done is told of each row, and of what else fails.
func (m *Manager[S]) look(ctx context.Context, crew *crew, done func(fired bool, err error)) {
	defer m.stats.looks.Add(1)
	now := m.config.Now()
	for n := range m.config.Queues {
		for row, err := range m.due(ctx, m.queueName(n), now) {
			if err != nil {
				m.countFailed(ctx)
				done(false, fmt.Errorf("look for what is due: %w", err))
				break
			}
			err = crew.do(ctx, func() {
				fired, err := m.take(ctx, row)
				if fired {
					m.stats.fired.Add(1)
				}
				done(fired, err)
			})
			if err != nil {
				done(false, err)
				return
			}
		}
	}
}

// due returns the rows of a queue that are due.
func (m *Manager[S]) due(ctx context.Context, queue string, now time.Time) func(yield func(item, error) bool) {
	return func(yield func(item, error) bool) {
		var start item
		for {
			out, err := m.client.Query(ctx, &dynamodb.QueryInput{
				TableName: aws.String(m.config.Table), IndexName: aws.String(dueIndex),
				KeyConditionExpression:    aws.String("#q = :q AND #d <= :now"),
				ExpressionAttributeNames:  map[string]string{"#q": queueAttribute, "#d": dueAttribute},
				ExpressionAttributeValues: item{":q": textValue(queue), ":now": timeValue(now)},
				ExclusiveStartKey:         start,
			})
			if err != nil {
				yield(nil, explain(err, m.config.Table))
				return
			}
			for _, row := range out.Items {
				if !yield(row, nil) {
					return
				}
			}
			if start = out.LastEvaluatedKey; start == nil {
				return
			}
		}
	}
}

// atOnce bounds what a crew does at a time, and makesRoom is after how long something does not
// count any more: what hangs holds up the rest for that long at most, and there is no more of it
// than comes in RetryAfter.
const (
	atOnce    = 8
	makesRoom = time.Second
)

// crew does several things at a time.
type crew struct {
	slots chan struct{}
	work  sync.WaitGroup
}

func newCrew() *crew { return &crew{slots: make(chan struct{}, atOnce)} }

// do begins something when there is room for it.
func (c *crew) do(ctx context.Context, what func()) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case c.slots <- struct{}{}:
	}
	leave := sync.OnceFunc(func() { <-c.slots })
	late := time.AfterFunc(makesRoom, leave)
	c.work.Add(1)
	go func() {
		defer c.work.Done()
		defer leave()
		defer late.Stop()
		what()
	}()
	return nil
}

func (c *crew) wait() { c.work.Wait() }
