package main

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// idle counts what a subscriber with default settings reads while nothing is committed. It is on
// dynamotest, which bills by the rules that AWS publishes.
func (b *bench) idle(ctx context.Context) error {
	const name, shards, looks = "idle", 16, 8
	db := dynamotest.Open()
	defer db.Close()
	client := db.Client()
	if err := journal.Create(ctx, client, journal.Config{Shards: shards}); err != nil {
		return err
	}
	j, err := journal.Open(ctx, client, journal.Config{})
	if err != nil {
		return err
	}
	if err := (&bench{client: client, j: j}).history(ctx, name, 10*shards); err != nil {
		return err
	}
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: name}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Close() }()
	messages, err := sub.Subscribe(ctx, name)
	if err != nil {
		return err
	}
	for range 10 * shards {
		(<-messages).Ack()
	}
	// The pauses between looks have grown as long as they get, and cursors and positions are
	// stored, after some seconds.
	time.Sleep(6 * time.Second)
	start, recording := time.Now(), db.Record()
	for len(recording.Calls("Query")) < looks*shards {
		time.Sleep(settle)
	}
	took := time.Since(start)
	recording.Stop()
	read, _ := recording.Units()
	fmt.Printf("# %s: %.0f read units per shard and hour; counted over %d looks at %d shards in %v\n",
		name, read/shards/took.Hours(), len(recording.Calls("Query")), shards, took.Round(time.Millisecond))
	return nil
}
