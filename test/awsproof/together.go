package awsproof

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/subscriber"
)

// together runs work in several goroutines, and waits for all. The first error, which may be a
// panic, ends the context of the others.
func together(ctx context.Context, workers int, work func(ctx context.Context, worker int) error) error {
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	for worker := range workers {
		running.Add(1)
		go func() {
			defer running.Done()
			if _, err := guarded(func() (string, error) { return "", work(working, worker) }); err != nil {
				stop(err)
			}
		}()
	}
	running.Wait()
	return context.Cause(working)
}

// paced calls do for 0 to n-1 with a constant rate a second, or later if all workers are busy.
func paced(ctx context.Context, rate float64, n, workers int, do func(ctx context.Context, k int) error) error {
	start := time.Now()
	var next atomic.Int64
	return together(ctx, workers, func(ctx context.Context, _ int) error {
		for {
			k := int(next.Add(1)) - 1
			if k >= n {
				return nil
			}
			if !sleep(ctx, time.Until(start.Add(time.Duration(float64(k)/rate*float64(time.Second))))) {
				return context.Cause(ctx)
			}
			if err := do(ctx, k); err != nil {
				return err
			}
		}
	})
}

// stall is the time after which a group that receives nothing has lost events.
const stall = 2 * time.Minute

// arrivals are the events that arrived again, the attempts to handle one that failed, and the last
// of their errors.
type arrivals struct {
	repeated, failed int
	err              error
}

func (a arrivals) String() string {
	text := fmt.Sprintf("%d arrived again, %d attempts to handle one failed", a.repeated, a.failed)
	if a.err != nil {
		text += fmt.Sprintf(", the last because of: %v", a.err)
	}
	return text
}

// receive acks n events of a topic for a group. It passes each to handle first, in several
// goroutines. It is an error if events are missing, or arrive in another order than that of their
// aggregate.
func receive(ctx context.Context, c subscriber.Config, topic string, n, workers int, handle func(*message.Message) error) (a arrivals, err error) {
	sub, err := subscriber.NewSubscriber(c, nil)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, sub.Close()) }()
	messages, err := sub.Subscribe(ctx, topic)
	if err != nil {
		return a, err
	}
	var mu sync.Mutex
	last, arrived, all := map[aggregate.ID]uint64{}, 0, make(chan struct{})
	take := func(msg *message.Message) error {
		failed := handle(msg)
		mu.Lock()
		defer mu.Unlock()
		id, number, _ := subscriber.AggregateFromContext(msg.Context())
		switch {
		case number > last[id]+1:
			return fmt.Errorf("group %s: %v: event %d arrived after %d", c.ConsumerGroup, id, number, last[id])
		case failed != nil:
			a.failed, a.err = a.failed+1, failed
			msg.Nack()
			return nil
		case number <= last[id]:
			a.repeated++
		default:
			last[id] = number
			if arrived++; arrived == n {
				close(all)
			}
		}
		msg.Ack()
		return nil
	}
	err = together(ctx, workers, func(ctx context.Context, _ int) error {
		for {
			select {
			case <-all:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(stall):
				mu.Lock()
				defer mu.Unlock()
				return fmt.Errorf("group %s: only %d of %d events arrived; %v", c.ConsumerGroup, arrived, n, a)
			case msg, open := <-messages:
				if !open {
					return errors.Join(errors.New("the subscription ended"), context.Cause(ctx))
				}
				if err := take(msg); err != nil {
					return err
				}
			}
		}
	})
	return a, err
}

// percentile returns the value that p percent of the values do not exceed.
func percentile(values []time.Duration, p int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, len(sorted)*p/100)].Round(10 * time.Microsecond)
}
