package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// positions counts the write units of a member that took all shards over from an earlier one, for
// each event. Each event is of another aggregate. The count is compared with one unit, the cost of
// storing a position. It includes the writes for membership and cursors. It uses dynamotest, which
// bills by the published rules of AWS.
func (b *bench) positions(ctx context.Context) error {
	const name, aggregates = "positions", 10_000
	db := dynamotest.Open()
	defer db.Close()
	memory := &bench{client: db.Client()}
	if err := journal.Create(ctx, memory.client, journal.Config{Layout: journal.Classic, Shards: 16}); err != nil {
		return err
	}
	var err error
	if memory.j, err = journal.Open(ctx, memory.client, journal.Config{}); err != nil {
		return err
	}
	if _, err := memory.term(ctx, name, 0); err != nil {
		return err
	}
	if err := memory.history(ctx, name, aggregates); err != nil {
		return err
	}
	recording := db.Record()
	stats, err := memory.term(ctx, name, aggregates)
	recording.Stop()
	if err != nil {
		return err
	}
	_, write := recording.Units()
	fmt.Printf("# %s: %d events of as many aggregates, %d positions written and %d claimed, %.0f write units\n",
		name, aggregates, stats.Positions, stats.Claims, write)
	fmt.Printf("ratio %s %.2f\n", name, write/aggregates)
	return nil
}

// term makes a member of a group take all shards, ack n messages and close, which stores all
// positions.
func (b *bench) term(ctx context.Context, name string, n int) (subscriber.Stats, error) {
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: name}, nil)
	if err != nil {
		return subscriber.Stats{}, err
	}
	messages, err := sub.Subscribe(ctx, name)
	for err == nil && ctx.Err() == nil && len(sub.Shards()) < b.j.Shards() {
		time.Sleep(restPause)
	}
	for range n {
		if err != nil {
			break
		}
		if msg := <-messages; msg == nil || !msg.Ack() {
			err = errRefused
		}
	}
	err = errors.Join(err, sub.Close())
	return sub.Stats(), errors.Join(err, expect(int(sub.Stats().Positions), n))
}
