// Command quickstart shows the path from a decision to a consumer: an account takes commands, and a Watermill
// router hears of the events.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// An account is its state, its events and its decisions.

type Account struct{ Balance int }

type Events = aggregate.Events[Account]

type (
	Deposited struct{ Amount int }
	Withdrawn struct{ Amount int }
)

func (Deposited) EventType() string  { return "account.deposited.v1" }
func (Withdrawn) EventType() string  { return "account.withdrawn.v1" }
func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }
func (e Withdrawn) Apply(a *Account) { a.Balance -= e.Amount }

var Accounts = aggregate.Define[Account]("account", Deposited{}, Withdrawn{})

var ErrInsufficientFunds = errors.New("insufficient funds")

func Deposit(n int) aggregate.Decision[Account] {
	return func(Account) (Events, error) {
		return Events{Deposited{n}}, nil
	}
}

func Withdraw(n int) aggregate.Decision[Account] {
	return func(a Account) (Events, error) {
		if a.Balance < n {
			return nil, ErrInsufficientFunds
		}
		return Events{Withdrawn{n}}, nil
	}
}

func main() {
	ctx := context.Background()
	client := must(dynamo.Client(ctx))
	config := journal.Config{Shards: 4}
	check(journal.Create(ctx, client, config)) // makes the tables, unless they are there
	j := must(journal.Open(ctx, client, config))

	accounts := must(repository.New(j, Accounts, repository.Config{}))
	id := uuid.NewString()
	must(accounts.Execute(ctx, id, Deposit(100)))
	must(accounts.Execute(ctx, id, Withdraw(30)))
	_, err := accounts.Execute(ctx, id, Withdraw(71))
	fmt.Println("withdraw 71:", err)
	account := must(accounts.Load(ctx, id))
	fmt.Printf("account: balance %d after %d events\n", account.State.Balance, account.Version)

	// The group goes on where it was when this program ran last, so it hears of each event once.
	sub := must(subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "quickstart"}, nil))
	router := must(message.NewRouter(message.RouterConfig{}, watermill.NopLogger{}))
	router.AddConsumerHandler("printer", Accounts.Type(), sub, func(msg *message.Message) error {
		fmt.Println("event:", msg.Metadata.Get(subscriber.MetadataName), string(msg.Payload))
		if of, number, _ := subscriber.AggregateFromContext(msg.Context()); of == account.ID && number == account.Version {
			go sub.Close() // that was the last; the router ends with its subscriber
		}
		return nil
	})
	check(router.Run(ctx))
}

func must[T any](v T, err error) T { check(err); return v }

func check(err error) {
	if err != nil {
		log.Fatalln("quickstart:", err)
	}
}
