package repository_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func openJournal(ctx context.Context) (*journal.Journal, error) {
	client := dynamotest.Open().Client() // any *dynamodb.Client
	if err := journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 16}); err != nil {
		return nil, err
	}
	return journal.Open(ctx, client, journal.Config{})
}

func Example() {
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := repository.New(j, Accounts, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	account, err := accounts.Execute(ctx, "42", Deposit(100))
	fmt.Println(account.State, account.Version, err)

	account, err = accounts.Execute(ctx, "42", Withdraw(30))
	fmt.Println(account.State, account.Version, err)

	_, err = accounts.Execute(ctx, "42", Withdraw(300))
	fmt.Println(err)

	account, err = accounts.Load(ctx, "42")
	fmt.Println(account.ID, account.State.Balance, err)

	// Output:
	// {100} 1 <nil>
	// {70} 2 <nil>
	// insufficient funds
	// account-42 70 <nil>
}

func ExampleRepository_Save() {
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := repository.New(j, Accounts, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	account, _ := accounts.NewAggregate("42")
	// in one transaction
	account, err = accounts.Save(ctx, account, Events{Deposited{100}, Withdrawn{30}})
	fmt.Println(account.State, account.Version, err)

	stale := account
	account, err = accounts.Save(ctx, account, Events{Withdrawn{10}})
	fmt.Println(account.State, account.Version, err)

	_, err = accounts.Save(ctx, stale, Events{Withdrawn{70}})
	fmt.Println(errors.Is(err, journal.ErrConflict))

	// Output:
	// {70} 2 <nil>
	// {60} 3 <nil>
	// true
}

func ExampleRepository_Execute_metadata() {
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := repository.New(j, Accounts, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx = aggregate.ContextWithMetadata(ctx, aggregate.Metadata{aggregate.CorrelationIDKey: "request-1"})
	account, err := accounts.Execute(ctx, "42", Deposit(100))
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range j.Events(ctx, account.ID, 1, account.Version) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Number, event.EventType, string(event.Payload), event.Metadata.CorrelationID())
	}

	// Output: 1 account.deposited.v1 {"Amount":100} request-1
}

func ExampleRepository_upcasters() {
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	// An older program has stored these events.
	if err := storeOther(ctx, j, "42", PaidIn{Cents: 10000}, Exchanged{In: 20, Out: 30}, Viewed{By: "Ada"}); err != nil {
		fmt.Println(err)
		return
	}

	// The types of old events need no methods.
	type paidIn struct{ Cents int }
	type exchanged struct{ In, Out int }
	accounts, err := repository.New(j, Accounts.WithUpcasters(
		aggregate.Upcast("account.paid_in.v1", func(old paidIn) Deposited { return Deposited{old.Cents / 100} }),
		aggregate.Split("account.exchanged.v1", func(old exchanged) (aggregate.Events[Account], error) {
			return aggregate.Events[Account]{Deposited{old.In}, Withdrawn{old.Out}}, nil
		}),
		aggregate.Drop("account.viewed.v1"),
	// The states of the older program have the number 0.
	), repository.Config{SnapshotSchema: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	account, err := accounts.Execute(ctx, "42", Withdraw(40))
	fmt.Println(account.State, account.Version, err)

	// Output: {50} 4 <nil>
}

func ExampleUnknownEvents() {
	ctx := context.Background()
	j, err := openJournal(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := repository.New(j, Accounts, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := accounts.Execute(ctx, "42", Deposit(100)); err != nil {
		fmt.Println(err)
		return
	}
	// A newer program stores this event.
	if err := storeOther(ctx, j, "42", Nicknamed{Name: "savings"}); err != nil {
		fmt.Println(err)
		return
	}

	for _, mode := range []repository.UnknownEvents{repository.FailOnUnknown, repository.SkipUnknown} {
		accounts, err := repository.New(j, Accounts, repository.Config{UnknownEvents: mode})
		if err != nil {
			fmt.Println(err)
			return
		}
		account, err := accounts.Load(ctx, "42")
		fmt.Println(errors.As(err, new(*aggregate.UnknownEventError)), account.State, account.Version, account.Partial())
	}

	// Output:
	// true {0} 0 false
	// false {100} 2 true
}

func ExampleEvery() {
	policy := repository.Every(100)
	fmt.Println(policy(repository.Commit{Before: 98, After: 99}))
	fmt.Println(policy(repository.Commit{Before: 99, After: 102}))

	// Output:
	// false
	// true
}

func ExampleSnapshotPolicy() {
	// A snapshot is useful when the year is closed.
	config := repository.Config{Snapshots: func(c repository.Commit) bool {
		return c.Events[len(c.Events)-1].Type == "account.year_closed.v1"
	}}
	fmt.Println(config.Snapshots(repository.Commit{Events: []repository.EventInfo{{Type: "account.deposited.v1"}}}))
	fmt.Println(config.Snapshots(repository.Commit{Events: []repository.EventInfo{{Type: "account.year_closed.v1"}}}))

	// Output:
	// false
	// true
}

// OtherAccount is the account in another version of the program, which has other events.
type (
	OtherAccount   struct{}
	OtherDeposited struct{ Amount int }
	PaidIn         struct{ Cents int }
	Exchanged      struct{ In, Out int }
	Viewed         struct{ By string }
	Nicknamed      struct{ Name string }
)

func (OtherDeposited) EventType() string { return "account.deposited.v1" }

func (PaidIn) EventType() string    { return "account.paid_in.v1" }
func (Exchanged) EventType() string { return "account.exchanged.v1" }
func (Viewed) EventType() string    { return "account.viewed.v1" }
func (Nicknamed) EventType() string { return "account.nicknamed.v1" }

func (OtherDeposited) Apply(*OtherAccount) {}

func (PaidIn) Apply(*OtherAccount)    {}
func (Exchanged) Apply(*OtherAccount) {}
func (Viewed) Apply(*OtherAccount)    {}
func (Nicknamed) Apply(*OtherAccount) {}

var OtherAccounts = aggregate.Define[OtherAccount]("account", OtherDeposited{}, PaidIn{}, Exchanged{}, Viewed{}, Nicknamed{})

// storeOther writes events as the other version of the program does.
func storeOther(ctx context.Context, j *journal.Journal, id string, events ...aggregate.Event[OtherAccount]) error {
	accounts, err := repository.New(j, OtherAccounts, repository.Config{})
	if err != nil {
		return err
	}
	_, err = accounts.Execute(ctx, id, func(OtherAccount) (aggregate.Events[OtherAccount], error) { return events, nil })
	return err
}
