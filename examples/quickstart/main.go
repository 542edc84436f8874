// Command quickstart stores the events of a bank account and handles them.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// An account is an aggregate: a state that only its events change.
type (
	Account   struct{ Balance int }
	Deposited struct{ Amount int }
	Withdrawn struct{ Amount int }

	Events   = aggregate.Events[Account]
	Decision = aggregate.Decision[Account]
)

func (Deposited) EventType() string  { return "account.deposited.v1" }
func (Withdrawn) EventType() string  { return "account.withdrawn.v1" }
func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }
func (e Withdrawn) Apply(a *Account) { a.Balance -= e.Amount }

var Accounts = aggregate.Define[Account]("account", Deposited{}, Withdrawn{})

// Decisions return the events to store. They have no side effects: after a conflict they run again.
func Deposit(amount int) Decision {
	return func(Account) (Events, error) { return Events{Deposited{amount}}, nil }
}

func Withdraw(amount int) Decision {
	return func(a Account) (Events, error) {
		if a.Balance < amount {
			return nil, fmt.Errorf("insufficient funds: the balance is %d", a.Balance)
		}
		return Events{Withdrawn{amount}}, nil
	}
}

func main() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // on AWS: dynamodb.NewFromConfig(awsConfig)

	app := must(millrace.Open(ctx, client, millrace.Config{ // creates the tables
		Journal: journal.Config{Layout: journal.Packed, Shards: 4},
	}))
	accounts := must(millrace.Repository(app, Accounts, repository.Config{}))

	// Handle the events of all accounts: each at least once, in order for each account.
	mails := make(chan int, 10)
	check(app.HandleEvents(millrace.Group{Name: "mails", Topics: []string{"account"}},
		cqrs.NewGroupEventHandler(func(_ context.Context, e *Withdrawn) error {
			mails <- e.Amount
			return nil
		})))
	stop := must(app.Start(ctx))

	// Execute commands: load the account, decide, and commit the events in one atomic write.
	must(accounts.Execute(ctx, "alice", Deposit(100)))
	alice := must(accounts.Execute(ctx, "alice", Withdraw(30)))
	fmt.Println("balance:", alice.State.Balance)
	_, err := accounts.Execute(ctx, "alice", Withdraw(1_000_000))
	fmt.Println("withdraw 1000000:", err)
	fmt.Println("mail: withdrawn", <-mails)
	check(stop())
}

func must[T any](v T, err error) T { check(err); return v }

func check(err error) {
	if err != nil {
		log.Fatalln("quickstart:", err)
	}
}
