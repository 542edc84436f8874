package main

import (
	"context"
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/subscriber"
)

// reading holds the results of a member of a group.
type reading struct {
	acked time.Duration // from before Subscribe to the last ack
	// From before Subscribe to the end of Close, when all positions are stored.
	closed time.Duration
	stats  subscriber.Stats
}

var errRefused = errors.New("a message could not be acked")

// read subscribes as a new group, acks n messages and closes. It does not ack messages for which
// hold returns true.
func (b *bench) read(ctx context.Context, topic string, n int, hold func(*message.Message) bool) (reading, error) {
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: watermill.NewShortUUID()}, nil)
	if err != nil {
		return reading{}, err
	}
	var r reading
	var held []*message.Message
	start := time.Now()
	messages, err := sub.Subscribe(ctx, topic)
	for n > 0 && err == nil {
		msg := <-messages
		switch {
		case msg == nil:
			err = errors.New("the subscription ended early")
		case hold != nil && hold(msg):
			held = append(held, msg)
		case !msg.Ack():
			err = errRefused
		default:
			n--
		}
	}
	r.acked = time.Since(start)
	for _, msg := range held {
		msg.Nack()
	}
	err = errors.Join(err, sub.Close())
	r.closed, r.stats = time.Since(start), sub.Stats()
	return r, err
}

func (b *bench) subscribe(ctx context.Context, topic, group string) (<-chan *message.Message, func(), error) {
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: group}, nil)
	if err != nil {
		return nil, nil, err
	}
	messages, err := sub.Subscribe(ctx, topic)
	return messages, func() { _ = sub.Close() }, err
}
