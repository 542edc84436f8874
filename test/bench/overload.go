package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// overload measures how fast a new group reads 1,000 aggregates of 30 events while the handlers of
// another 1,000 aggregates nack each message. It compares that with the same work without those
// aggregates. They come first and have one event each, so that there is little more to read: the
// difference is that they fail.
func (b *bench) overload(ctx context.Context) error {
	const name, aggregates, each = "overload", 1000, 30
	measure := func(topic string, failing int) (func(int) (time.Duration, error), error) {
		repo, err := repository.New(b.j, define(topic), repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
		for i := 0; i < failing && err == nil; i++ {
			err = fill(ctx, repo, fmt.Sprint(fails, i), 1, eventBytes)
		}
		if err == nil {
			err = fillAll(ctx, repo, aggregates, each)
		}
		return func(int) (time.Duration, error) { return b.readAmid(ctx, topic, aggregates*each) }, err
	}
	alone, err := measure(name+"-alone", 0)
	if err != nil {
		return err
	}
	amid, err := measure(name, aggregates)
	if err != nil {
		return err
	}
	return alternate(name, max(1, b.many/3), speed, alone, amid)
}

// fails is the first letter of the ids of aggregates whose handlers fail.
const fails = "f"

// readAmid subscribes as a new group, nacks the messages of aggregates that fail, and acks n
// others.
func (b *bench) readAmid(ctx context.Context, topic string, n int) (time.Duration, error) {
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: watermill.NewShortUUID()}, nil)
	if err != nil {
		return 0, err
	}
	took, err := timed(func() error {
		messages, err := sub.Subscribe(ctx, topic)
		if err != nil {
			return err
		}
		for n > 0 {
			msg, open := <-messages
			switch {
			case !open:
				return errors.New("the subscription ended early")
			case strings.HasPrefix(msg.Metadata.Get(subscriber.AggregateIDKey), fails):
				msg.Nack()
			case !msg.Ack():
				return errRefused
			default:
				n--
			}
		}
		return nil
	})
	return took, errors.Join(err, sub.Close())
}
