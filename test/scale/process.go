package scale

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/internal/retry"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// process is a member of each group.
type process struct {
	subscribers []*subscriber.Subscriber // by group
	consumers   sync.WaitGroup
}

// startAll starts all processes within a short time, as a deployment does.
func (r *run) startAll(ctx context.Context) error {
	for range r.Members {
		p, err := r.start(ctx)
		if err != nil {
			return err
		}
		r.processes = append(r.processes, p)
		if !retry.Sleep(ctx, starting/time.Duration(r.Members)) {
			return ctx.Err()
		}
	}
	return nil
}

func (r *run) start(ctx context.Context) (*process, error) {
	j, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	p := &process{}
	for g := range r.Groups {
		sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: fmt.Sprint("group-", g+1)}, nil)
		if err != nil {
			return nil, err
		}
		p.subscribers = append(p.subscribers, sub)
		messages, err := sub.Subscribe(ctx, topic)
		if err != nil {
			return nil, err
		}
		p.consumers.Add(1)
		go func() {
			defer p.consumers.Done()
			r.consume(g, messages)
		}()
	}
	return p, nil
}

func (r *run) open(ctx context.Context) (*journal.Journal, error) {
	return journal.Open(ctx, newWire(r.db, r.random.Uint64()), journal.Config{})
}

func (r *run) consume(group int, messages <-chan *message.Message) {
	for msg := range messages {
		record, _ := subscriber.RecordFromContext(msg.Context())
		r.truth.handled(group, record)
		msg.Ack()
	}
}

func (p *process) close() {
	var closing sync.WaitGroup
	for _, sub := range p.subscribers {
		closing.Add(1)
		go func() {
			defer closing.Done()
			_ = sub.Close() // it returns no error
		}()
	}
	closing.Wait()
	p.consumers.Wait()
}

func (r *run) closeAll() {
	for _, p := range r.processes {
		p.close()
	}
}

// Work counts the work of the members of a group.
type Work struct{ Positions, Claims, Fetched, Late, Repeated uint64 }

// work sums up the work of all members so far.
func (r *run) work() (sum Work) {
	for _, all := range [][]*process{r.processes, r.retired} {
		for _, p := range all {
			for _, sub := range p.subscribers {
				s := sub.Stats()
				sum.Positions += s.Positions
				sum.Claims += s.Claims
				sum.Fetched += s.Fetched
				sum.Late += s.Late
			}
		}
	}
	sum.Repeated = r.truth.repeated.Load()
	return sum
}

func (w Work) minus(before Work) Work {
	return Work{
		w.Positions - before.Positions, w.Claims - before.Claims, w.Fetched - before.Fetched, w.Late - before.Late, w.Repeated - before.Repeated,
	}
}
