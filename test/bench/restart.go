package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// restart measures the time from before Subscribe to the first new event, for a group that has
// handled 100,000 aggregates, and compares it with a group that has handled 100. It uses
// dynamotest, since DynamoDB Local needs minutes to write so many events and positions.
func (b *bench) restart(ctx context.Context) error {
	const name, few, many = "restart", 100, 100_000
	memory, err := b.inMemory(ctx)
	if err != nil {
		return err
	}
	measure := func(topic string, aggregates int) (func(int) (time.Duration, error), error) {
		if err := memory.history(ctx, topic, aggregates); err != nil {
			return nil, err
		}
		if err := memory.finish(ctx, topic, aggregates); err != nil {
			return nil, err
		}
		// Commits through this journal wake no subscriber: the event is found by polling.
		unwatched, err := journal.Open(ctx, memory.client, journal.Config{})
		if err != nil {
			return nil, err
		}
		repo, err := repository.New(unwatched, define(topic), repository.Config{Snapshots: repository.Never})
		return func(pair int) (time.Duration, error) { return memory.resume(ctx, repo, topic, fmt.Sprint("a", pair)) }, err
	}
	short, err := measure(name+"-short", few)
	if err != nil {
		return err
	}
	long, err := measure(name+"-long", many)
	if err != nil {
		return err
	}
	return alternate(name, 3*b.many, cost, short, long)
}

const restartGroup = "restart"

// finish makes the group ack the whole history, and checks that all its positions and cursors are
// stored.
func (b *bench) finish(ctx context.Context, topic string, aggregates int) error {
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: restartGroup}, nil)
	if err != nil {
		return err
	}
	messages, err := sub.Subscribe(ctx, topic)
	for range aggregates {
		if err != nil {
			break
		}
		if msg := <-messages; msg == nil || !msg.Ack() {
			err = errRefused
		}
	}
	deadline := time.Now().Add(time.Minute)
	for err == nil && sub.Stats().Positions < uint64(aggregates) && time.Now().Before(deadline) {
		time.Sleep(restPause)
	}
	return errors.Join(err, sub.Close(), expect(int(sub.Stats().Positions), aggregates))
}

// resume commits an event and makes the group find it.
func (b *bench) resume(ctx context.Context, repo *repository.Repository[account], topic, id string) (time.Duration, error) {
	acc, err := repo.Load(ctx, id)
	if err == nil {
		acc, err = repo.Save(ctx, acc, events(1, eventBytes))
	}
	if err != nil {
		return 0, err
	}
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: restartGroup}, nil)
	if err != nil {
		return 0, err
	}
	var got aggregate.ID
	var number uint64
	took, err := timed(func() error {
		messages, err := sub.Subscribe(ctx, topic)
		if err != nil {
			return err
		}
		msg := <-messages
		got, number, _ = subscriber.AggregateFromContext(msg.Context())
		msg.Ack()
		return nil
	})
	err = errors.Join(err, sub.Close())
	if want := (aggregate.ID{Type: topic, Value: id}); err == nil && (got != want || number != acc.Version) {
		err = fmt.Errorf("the first event after the restart is %d of %s, not %d of %s", number, got, acc.Version, want)
	}
	return took, err
}
