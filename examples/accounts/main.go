// Command accounts stores the events of bank accounts and keeps a read model of their balances.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
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

// Commands decide which events to store. They have no side effects: a conflict repeats them.
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

// balances is the table of the read model, with one item for each account.
var balances = projection.Table{Name: "balances", PartitionKey: "account"}

func addToBalance(account string, amount int) []projection.Write {
	return []projection.Write{projection.Update(types.Update{
		TableName: &balances.Name, Key: balances.Key(account), UpdateExpression: aws.String("ADD balance :by"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":by": &types.AttributeValueMemberN{Value: fmt.Sprint(amount)}},
	})}
}

func main() {
	onAWS := flag.Bool("aws", false, "use DynamoDB on AWS instead of a database in this process")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	client := dynamotest.Open().Client()
	if *onAWS {
		client = dynamodb.NewFromConfig(must(config.LoadDefaultConfig(ctx)))
	}
	app := must(millrace.Open(ctx, client, millrace.Config{ // creates the tables that are missing
		Journal: journal.Config{Layout: journal.Packed, Shards: 4}, // neither ever changes
		Logger:  watermill.NewStdLogger(false, false),
	}))
	check(projection.CreateTable(ctx, client, balances))
	accounts := must(millrace.Repository(app, Accounts, repository.Config{}))

	// Project events into the read model, each exactly once and in order per account.
	must(app.Project(millrace.Group{Name: "balances", Topics: []string{Accounts.Type()}},
		projection.On(func(_ context.Context, e Deposited, r *journal.Record) ([]projection.Write, error) {
			return addToBalance(r.Aggregate.Value, e.Amount), nil
		}),
		projection.On(func(_ context.Context, e Withdrawn, r *journal.Record) ([]projection.Write, error) {
			return addToBalance(r.Aggregate.Value, -e.Amount), nil
		})))
	stopped := make(chan error, 1)
	go func() { defer stop(); stopped <- app.Run(ctx) }()

	// Execute commands: load the account, decide, and commit the events in one atomic write.
	must(accounts.Execute(ctx, "alice", Deposit(100)))
	alice := must(accounts.Execute(ctx, "alice", Withdraw(30)))
	_, err := accounts.Execute(ctx, "alice", Withdraw(1_000_000))
	fmt.Println("withdraw 1000000:", err)

	// Wait for the projection, so that the query sees what was just written.
	patience, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	check(app.Groups().WaitApplied(patience, "balances", alice.ID, alice.Version))
	item := must(client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &balances.Name, Key: balances.Key("alice"), ConsistentRead: aws.Bool(true),
	})).Item
	fmt.Println("balance:", item["balance"].(*types.AttributeValueMemberN).Value)

	stop() // as SIGINT does: take no more events, finish those in progress, store the positions
	check(<-stopped)
}

func must[T any](v T, err error) T { check(err); return v }
func check(err error) {
	if err != nil {
		log.Fatalln("accounts:", err)
	}
}
