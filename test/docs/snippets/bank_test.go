// Package snippets has the code of documentation pages that no example program has. Its tests run
// it.
package snippets

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Account is the aggregate of the pages.
type Account struct{ Balance int }

type (
	Deposited struct{ Amount int }
	Withdrawn struct{ Amount int }

	// Withdraw is a command.
	Withdraw struct {
		Account string
		Amount  int
	}
)

func (Deposited) EventType() string  { return "account.deposited.v1" }
func (Withdrawn) EventType() string  { return "account.withdrawn.v1" }
func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }
func (e Withdrawn) Apply(a *Account) { a.Balance -= e.Amount }

var definition = aggregate.Define[Account]("account", Deposited{}, Withdrawn{})

func withdraw(amount int) aggregate.Decision[Account] {
	return func(Account) (aggregate.Events[Account], error) {
		return aggregate.Events[Account]{Withdrawn{amount}}, nil
	}
}

func deposit(amount int) aggregate.Decision[Account] {
	return func(Account) (aggregate.Events[Account], error) {
		return aggregate.Events[Account]{Deposited{amount}}, nil
	}
}

// balance is an update of the read model that adds to the balance of an account.
func balance(table string, id aggregate.ID, amount int) types.Update {
	return types.Update{
		TableName:                 &table,
		Key:                       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id.Value}},
		UpdateExpression:          aws.String("ADD balance :by"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":by": &types.AttributeValueMemberN{Value: fmt.Sprint(amount)}},
	}
}

var balances = projection.Table{Name: "balances", PartitionKey: "id"}

// shown returns the balance of an account in the read model.
func shown(ctx context.Context, client *dynamodb.Client, table, id string) string {
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: balances.Key(id)})
	check(err)
	n, _ := out.Item["balance"].(*types.AttributeValueMemberN)
	if n == nil {
		return ""
	}
	return n.Value
}

// bank is a journal, with what most pages use.
type bank struct {
	client    *dynamodb.Client
	j         *journal.Journal
	accounts  *repository.Repository[Account]
	publisher *publisher.Publisher
	router    *message.Router
}

func open(t *testing.T) *bank {
	t.Helper()
	client := dynamotest.New(t).Client()
	check(journal.Create(t.Context(), client, journal.Config{Layout: journal.Packed, Shards: 1}))
	check(projection.CreateTable(t.Context(), client, balances))
	j, err := journal.Open(t.Context(), client, journal.Config{})
	check(err)
	accounts, err := repository.New(j, definition, repository.Config{})
	check(err)
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	check(err)
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	check(err)
	return &bank{client, j, accounts, p, router}
}

// run runs the router until the test ends.
func (b *bank) run(t *testing.T) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- b.router.Run(context.WithoutCancel(t.Context())) }()
	<-b.router.Running()
	t.Cleanup(func() {
		check(b.router.Close())
		check(<-ended)
		check(b.publisher.Close())
	})
}

// write executes a deposit of 100 and a withdrawal of 30.
func (b *bank) write(ctx context.Context, id string) repository.Aggregate[Account] {
	_, err := b.accounts.Execute(ctx, id, deposit(100))
	check(err)
	account, err := b.accounts.Execute(ctx, id, withdraw(30))
	check(err)
	return account
}

func (b *bank) wait(ctx context.Context, group string, account repository.Aggregate[Account]) {
	check(groups.New(b.j).WaitApplied(ctx, group, account.ID, account.Version))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
