// Package gochannel is put in the place of Watermill's package of the same name. It has the same
// constructor, and stores messages in a journal on dynamotest. Each subscription is a broadcast,
// and each message is an aggregate of its own, because a GoChannel delivers messages concurrently.
package gochannel

import (
	"context"
	"errors"
	"sync"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
)

// Config has the fields of Watermill's. OutputChannelBuffer and PreserveContext have no effect.
type Config struct {
	OutputChannelBuffer            int64
	Persistent                     bool
	BlockPublishUntilSubscriberAck bool
	PreserveContext                bool
}

// GoChannel is a publisher and a subscriber of one journal.
type GoChannel struct {
	config Config
	pub    *publisher.Publisher
	sub    *subscriber.Subscriber
	close  func() error

	mu      sync.Mutex
	changed *sync.Cond
	closed  bool
	readers map[string]int // by topic
	acks    map[string]int // by UUID
}

// NewGoChannel opens a journal on a database of its own.
func NewGoChannel(config Config, logger watermill.LoggerAdapter) *GoChannel {
	g := &GoChannel{config: config, readers: map[string]int{}, acks: map[string]int{}}
	g.changed = sync.NewCond(&g.mu)
	db, ctx := dynamotest.Open(), context.Background()
	must(journal.Create(ctx, db.Client(), journal.Config{Shards: 4, Layout: journal.Packed}))
	j, err := journal.Open(ctx, db.Client(), journal.Config{})
	must(err)
	g.pub, err = publisher.NewPublisher(publisher.Config{
		Journal:     j,
		AggregateID: func(string, *message.Message) (string, error) { return uuid.NewString(), nil },
	}, logger)
	must(err)
	start := subscriber.Now()
	if config.Persistent {
		start = subscriber.Beginning()
	}
	g.sub, err = subscriber.NewBroadcast(subscriber.BroadcastConfig{
		Journal: j, Start: start, Unmarshaler: counting{g},
		NackResendSleep: -1, // a GoChannel sends again at once
	}, logger)
	must(err)
	g.close = sync.OnceValue(func() error {
		defer db.Close()
		g.change(func() { g.closed = true })
		return errors.Join(g.pub.Close(), g.sub.Close())
	})
	return g
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Publish stores the messages. Like a GoChannel it does not pass their contexts on, from which the
// publisher would take the correlation and causation ids of the handled message. With
// BlockPublishUntilSubscriberAck it waits for all subscriptions.
func (g *GoChannel) Publish(topic string, messages ...*message.Message) error {
	copies := make([]*message.Message, len(messages))
	for i, msg := range messages {
		copies[i] = msg.Copy()
	}
	if err := g.pub.Publish(topic, copies...); err != nil || !g.config.BlockPublishUntilSubscriberAck {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, msg := range messages {
		for !g.closed && g.acks[msg.UUID] < g.readers[topic] {
			g.changed.Wait()
		}
	}
	return nil
}

// Subscribe receives all messages of a topic.
func (g *GoChannel) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	messages, err := g.sub.Subscribe(ctx, topic)
	if err == nil {
		g.change(func() { g.readers[topic]++ })
		context.AfterFunc(ctx, func() { g.change(func() { g.readers[topic]-- }) })
	}
	return messages, err
}

// Close closes the publisher, the subscriber and the database.
func (g *GoChannel) Close() error { return g.close() }

func (g *GoChannel) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	g.changed.Broadcast()
}

// counting makes messages as they were published, and counts their acks.
type counting struct{ *GoChannel }

func (c counting) Unmarshal(r *journal.Record) (*message.Message, error) {
	msg, err := subscriber.PlainUnmarshaler{}.Unmarshal(r)
	if err == nil && c.config.BlockPublishUntilSubscriberAck {
		go func() {
			<-msg.Acked()
			c.change(func() { c.acks[msg.UUID]++ })
		}()
	}
	return msg, err
}
