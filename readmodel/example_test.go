package readmodel_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/readmodel"
	"github.com/millrace-dev/millrace/subscriber"
)

// A read model is built anew, serves, and is rolled back.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db := dynamotest.Open()
	defer db.Close()
	check(journal.Create(ctx, db.Client(), journal.Config{Shards: 1}))
	check(readmodel.CreateTable(ctx, db.Client(), readmodel.DefaultTable))
	j, err := journal.Open(ctx, db.Client(), journal.Config{})
	check(err)
	_, err = j.Append(ctx, journal.Commit{
		Aggregate: aggregate.ID{Type: "order", Value: "1"}, Events: []journal.Event{{Type: "order.placed", Payload: []byte(`{}`)}},
	})
	check(err)

	orders, err := readmodel.Open(ctx, db.Client(), readmodel.Config{
		Name: "orders", Journal: j, Topics: []string{"order"}, Refresh: 10 * time.Millisecond,
	})
	check(err)
	go func() {
		_ = orders.Run(ctx, func(ctx context.Context, g readmodel.Generation) error {
			// Here a projection would write to g.Table("orders"), which it makes if it is missing.
			sub, err := subscriber.NewSubscriber(subscriber.Config{
				Journal: j, ConsumerGroup: g.Group(), CommitInterval: 10 * time.Millisecond,
			}, nil)
			if err != nil {
				return err
			}
			messages, err := sub.Subscribe(ctx, "order")
			if err != nil {
				return err
			}
			for msg := range messages {
				msg.Ack()
			}
			return sub.Close()
		})
	}()

	serves := func() {
		g, err := orders.Serving(ctx)
		check(err)
		fmt.Println("queries read", g.Table("orders"))
	}
	serves()
	next, err := orders.Begin(ctx)
	check(err)
	check(orders.CatchUp(ctx, next, nil))
	check(orders.Switch(ctx, next))
	serves()
	_, err = orders.Rollback(ctx, next)
	check(err)
	serves()
	check(orders.Drop(ctx, next))
	// Output:
	// queries read orders.1
	// queries read orders.2
	// queries read orders.1
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
