package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// lateVisible measures the time from before a commit until a handler receives its event, in a group
// with the default poll intervals. It compares a tail index that shows events 10 to 100 ms late,
// and so out of order, with one that shows them at once.
func (b *bench) lateVisible(ctx context.Context) error {
	const name, commits, pause = "late-visible", 1_500, 12 * time.Millisecond
	at99 := func(delayed bool) (time.Duration, error) {
		db := dynamotest.Open()
		defer db.Close()
		if err := journal.Create(ctx, db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}); err != nil {
			return 0, err
		}
		if delayed {
			db.Inject(dynamotest.DelayIndex(10*time.Millisecond, 100*time.Millisecond))
		}
		took, err := polled(ctx, db, commits, pause)
		if err != nil {
			return 0, err
		}
		return percentile(took, 99), nil
	}
	prompt, err := at99(false)
	if err != nil {
		return err
	}
	late, err := at99(true)
	if err != nil {
		return err
	}
	fmt.Printf("# %s: %d commits to one shard, polled as by default; 99th percentile %v, with an index that is 10 to 100 ms late %v\n",
		name, commits, prompt.Round(time.Millisecond), late.Round(time.Millisecond))
	fmt.Printf("ratio %s %.2f\n", name, float64(late)/float64(prompt))
	return nil
}

// polled commits through one journal and reads through another, which the commits do not wake.
func polled(ctx context.Context, db *dynamotest.DB, commits int, pause time.Duration) ([]time.Duration, error) {
	writing, err := journal.Open(ctx, db.Client(), journal.Config{})
	if err != nil {
		return nil, err
	}
	reading, err := journal.Open(ctx, db.Client(), journal.Config{})
	if err != nil {
		return nil, err
	}
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: reading, ConsumerGroup: "late"}, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Close() }()
	messages, err := sub.Subscribe(ctx, "late")
	if err != nil {
		return nil, err
	}
	const aggregates = 500
	repo, err := repository.New(writing, define("late"), repository.Config{Snapshots: repository.Never, Cache: aggregates})
	if err != nil {
		return nil, err
	}
	written := make(chan error, 1)
	go func() {
		for i := range commits {
			time.Sleep(rand.N(2 * pause))
			if _, err := repo.Execute(ctx, fmt.Sprint("a", i%aggregates), depositNow); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	var took []time.Duration
	for len(took) < commits {
		select {
		case msg, open := <-messages:
			if !open {
				return nil, ctx.Err()
			}
			var e deposited
			if err := json.Unmarshal(msg.Payload, &e); err != nil {
				return nil, err
			}
			took = append(took, time.Since(time.Unix(0, int64(e.Amount))))
			msg.Ack()
		case <-time.After(time.Minute):
			return nil, fmt.Errorf("%d of %d events arrived", len(took), commits)
		}
	}
	return took, <-written
}
