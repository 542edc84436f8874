package tail_test

import (
	"context"
	"fmt"
	"log"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/tail"
	"github.com/millrace-dev/millrace/repository"
)

type Deposited struct{ Amount int }

func (Deposited) EventType() string    { return "account.deposited.v1" }
func (e Deposited) Apply(balance *int) { *balance += e.Amount }
func deposit(amount int) aggregate.Decision[int] {
	return func(int) (aggregate.Events[int], error) { return aggregate.Events[int]{Deposited{amount}}, nil }
}

// Show the events of a topic. With Follow, Run continues with new events until ctx ends.
func ExampleRun() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // on AWS: dynamodb.NewFromConfig(...)
	config := journal.Config{Layout: journal.Packed, Shards: 4}
	if err := journal.Create(ctx, client, config); err != nil {
		log.Fatal(err)
	}
	j, err := journal.Open(ctx, client, config)
	if err != nil {
		log.Fatal(err)
	}
	accounts, err := repository.New(j, aggregate.Define[int]("account", Deposited{}), repository.Config{})
	if err != nil {
		log.Fatal(err)
	}
	for _, amount := range []int{10, 20} {
		if _, err := accounts.Execute(ctx, "alice", deposit(amount)); err != nil {
			log.Fatal(err)
		}
	}

	err = tail.Run(ctx, tail.Config{Journal: j, Topic: "account"}, func(events []*journal.Record) error {
		for _, stored := range events {
			r, err := j.Decode(ctx, stored)
			if err != nil {
				return err
			}
			fmt.Printf("%s %d %s %s\n", r.Aggregate, r.Number, r.EventType, r.Payload)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// account-alice 1 account.deposited.v1 {"Amount":10}
	// account-alice 2 account.deposited.v1 {"Amount":20}
	// <nil>
}
