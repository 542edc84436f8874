package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// deposit is the public message of an event.
type deposit struct {
	Account string
	Amount  int
	Note    string
}

func (deposit) EventType() string { return "Deposit" }

// forward compares a new group that forwards 10,000 events to NATS, up to the last ack, with the
// bare publisher that publishes the same messages in one call, which keeps their order. The second
// comparison is with 64 goroutines that publish the messages of different aggregates at the same
// time, as the group does.
func (b *bench) forward(ctx context.Context) (err error) {
	const name, aggregates, each = "forward", 100, 100
	b, err = b.inPacked(ctx)
	if err != nil {
		return err
	}
	broker, stop, err := startNATS(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	repo, err := repository.New(b.j, define(name), repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
	if err != nil {
		return err
	}
	for i := range aggregates {
		for range each / 2 {
			_, err := repo.Execute(ctx, fmt.Sprint("a", i), func(account) (aggregate.Events[account], error) { return events(2, eventBytes), nil })
			if err != nil {
				return err
			}
		}
	}
	all := &collected{messages: map[string][]*message.Message{}}
	if _, err := b.forwardAll(ctx, name, all, aggregates*each); err != nil {
		return err
	}
	ours := func(int) (time.Duration, error) { return b.forwardAll(ctx, name, broker, aggregates*each) }
	inOrder := slices.Concat(slices.Collect(maps.Values(all.messages))...)
	return errors.Join(
		alternate(name, b.many, speed,
			func(int) (time.Duration, error) {
				return timed(func() error { return broker.Publish(name, inOrder...) })
			}, ours),
		alternate(name+"-parallel", b.many, speed,
			func(int) (time.Duration, error) { return timed(func() error { return all.publish(broker, name) }) }, ours),
	)
}

// startNATS starts a server with JetStream and a stream, and returns a publisher. The window for
// duplicates is short, because the same messages are published several times.
func startNATS(subject string) (message.Publisher, func() error, error) {
	folder, err := os.MkdirTemp("", "millrace-bench-nats-")
	if err != nil {
		return nil, nil, err
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, JetStream: true, StoreDir: folder})
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(folder))
	}
	stop := func() error {
		s.Shutdown()
		s.WaitForShutdown()
		return os.RemoveAll(folder)
	}
	go s.Start()
	if !s.ReadyForConnections(time.Minute) {
		return nil, nil, errors.Join(errors.New("NATS does not start"), stop())
	}
	connection, err := natsgo.Connect(s.ClientURL())
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	js, err := connection.JetStream()
	if err == nil {
		_, err = js.AddStream(&natsgo.StreamConfig{Name: subject, Duplicates: 100 * time.Millisecond})
	}
	connection.Close()
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	p, err := nats.NewPublisher(nats.PublisherConfig{URL: s.ClientURL(), JetStream: nats.JetStreamConfig{TrackMsgId: true}}, nil)
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return p, func() error { return errors.Join(p.Close(), stop()) }, nil
}

// forwardAll forwards n events as a new group. The time ends with the ack of the last one.
func (b *bench) forwardAll(ctx context.Context, topic string, to message.Publisher, n int) (took time.Duration, err error) {
	f, err := forward.New(forward.Config{Publisher: to, Definitions: []aggregate.AnyDefinition{define(topic)}},
		forward.On(topic, func(_ context.Context, e deposited, r *journal.Record) ([]deposit, error) {
			return []deposit{{r.Aggregate.Value, e.Amount, e.Note}}, nil
		}))
	if err != nil {
		return 0, err
	}
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: watermill.NewShortUUID(), NoReplay: true}, nil)
	if err != nil {
		return 0, err
	}
	router, err := message.NewRouter(message.RouterConfig{}, nil)
	if err != nil {
		return 0, err
	}
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	router.AddConsumerHandler("forward", topic, sub, func(msg *message.Message) error {
		err := f.Handle(msg)
		if err == nil && left.Add(-1) == 0 {
			close(done)
		}
		return err
	})
	start := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- router.Run(ctx) }()
	select {
	case <-done:
		took = time.Since(start)
	case err := <-ended:
		return 0, errors.Join(errors.New("the router ended early"), err)
	}
	return took, errors.Join(router.Close(), expect(int(f.Stats().Messages), n)) //nolint:gosec // it is small
}

// collected keeps messages by their keys.
type collected struct {
	mu       sync.Mutex
	messages map[string][]*message.Message
}

func (c *collected) Publish(_ string, messages ...*message.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, msg := range messages {
		key := msg.Metadata.Get(forward.KeyKey)
		c.messages[key] = append(c.messages[key], msg)
	}
	return nil
}

func (*collected) Close() error { return nil }

// publish publishes all messages.
func (c *collected) publish(to message.Publisher, topic string) error {
	var workers sync.WaitGroup
	keys := make(chan []*message.Message)
	errs := make(chan error, inFlight)
	for range inFlight {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for list := range keys {
				for _, msg := range list {
					if err := to.Publish(topic, msg); err != nil {
						errs <- err
						return
					}
				}
			}
		}()
	}
	for _, list := range c.messages {
		keys <- list
	}
	close(keys)
	workers.Wait()
	close(errs)
	return <-errs
}
