package subscriber_test

import (
	"context"
	"fmt"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

func ExampleSubscriber_Subscribe() {
	subscribe := func(ctx context.Context, j *journal.Journal) error {
		sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "audit"}, watermill.NewSlogLogger(nil))
		if err != nil {
			return err
		}
		defer func() { _ = sub.Close() }()
		messages, err := sub.Subscribe(ctx, "account")
		if err != nil {
			return err
		}
		for msg := range messages {
			id, number, _ := subscriber.AggregateFromContext(msg.Context())
			fmt.Printf("%s #%d: %s\n", id, number, msg.Metadata.Get(subscriber.MetadataName))
			msg.Ack()
		}
		return ctx.Err()
	}
	_ = subscribe
}
