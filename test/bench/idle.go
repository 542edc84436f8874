package main

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// idle counts the reads of a subscriber with default settings while nothing is committed. It uses
// dynamotest, which bills by the published rules of AWS.
func (b *bench) idle(ctx context.Context) error {
	const name, shards, looks = "idle", 16, 8
	db := dynamotest.Open()
	defer db.Close()
	client := db.Client()
	if err := journal.Create(ctx, client, journal.Config{Layout: journal.Classic, Shards: shards}); err != nil {
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
	// After some seconds, the pauses between polls have reached their maximum, and cursors and
	// positions are stored.
	time.Sleep(6 * time.Second)
	start, recording := time.Now(), db.Record()
	for len(recording.Calls("Query")) < looks*shards {
		time.Sleep(restPause)
	}
	took := time.Since(start)
	recording.Stop()
	read, _ := recording.Units()
	fmt.Printf("# %s: %.0f read units per shard and hour; counted over %d polls of %d shards in %v\n",
		name, read/shards/took.Hours(), len(recording.Calls("Query")), shards, took.Round(time.Millisecond))
	return nil
}
