package command_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

type Account struct{ Balance int }

type Deposited struct{ Amount int }

func (Deposited) EventType() string  { return "account.deposited.v1" }
func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }

type Withdrawn struct{ Amount int }

func (Withdrawn) EventType() string  { return "account.withdrawn.v1" }
func (e Withdrawn) Apply(a *Account) { a.Balance -= e.Amount }

var Accounts = aggregate.Define[Account]("account", Deposited{}, Withdrawn{})

// Transfer is a command for two accounts.
type Transfer struct {
	From, To string
	Amount   int
}

// A transfer changes both accounts or none, once, however often its message is delivered. Pass the
// handler to App.HandleCommands, or to a cqrs.CommandProcessor.
func ExampleTransactionHandler() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // in production dynamodb.NewFromConfig
	if err := journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 1}); err != nil {
		log.Fatal(err)
	}
	j, err := journal.Open(ctx, client, journal.Config{})
	if err != nil {
		log.Fatal(err)
	}
	accounts, err := repository.New(j, Accounts, repository.Config{})
	if err != nil {
		log.Fatal(err)
	}

	transfers := command.TransactionHandler("transfer",
		func(tx *repository.Transaction, t *Transfer) func() error {
			from, to := accounts.AddTo(tx, t.From), accounts.AddTo(tx, t.To)
			return func() error {
				if from.State.Balance < t.Amount {
					return errors.New("insufficient funds")
				}
				from.Append(Withdrawn{t.Amount})
				to.Append(Deposited{t.Amount})
				return nil
			}
		},
		command.OnRefused(func(_ context.Context, t *Transfer, refused *repository.RefusedError) error {
			fmt.Println(t.Amount, "refused:", refused.Err)
			return nil
		}))

	marshaler := cqrs.JSONMarshaler{}
	handle, err := command.Dispatch(marshaler, transfers)
	if err != nil {
		log.Fatal(err)
	}
	_, err = accounts.Execute(ctx, "alice", func(Account) (aggregate.Events[Account], error) {
		return aggregate.Events[Account]{Deposited{100}}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, amount := range []int{30, 90} {
		msg, err := marshaler.Marshal(&Transfer{From: "alice", To: "bob", Amount: amount})
		if err != nil {
			log.Fatal(err)
		}
		for _, delivery := range []*message.Message{msg, msg.Copy()} {
			if err := handle(delivery); err != nil {
				log.Fatal(err)
			}
		}
	}
	bob, err := accounts.Load(ctx, "bob")
	fmt.Println(bob.State.Balance, err)

	// Output:
	// 90 refused: insufficient funds
	// 90 refused: insufficient funds
	// 30 <nil>
}
