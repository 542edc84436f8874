package projection_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/groups"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// Account is an aggregate whose balances the examples show.
type Account struct{ Balance int }

type Paid struct{ Amount int }

func (Paid) EventType() string  { return "account.paid.v1" }
func (e Paid) Apply(a *Account) { a.Balance += e.Amount }

func pay(amounts ...int) aggregate.Decision[Account] {
	return func(Account) (events []aggregate.Event[Account], err error) {
		for _, amount := range amounts {
			events = append(events, Paid{amount})
		}
		return events, nil
	}
}

// balance is a write of the read model: what the balance of an account grows by.
func balance(id aggregate.ID, by int) projection.Write {
	return projection.Update(types.Update{
		TableName:                 aws.String("balances"),
		Key:                       map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id.Value}},
		UpdateExpression:          aws.String("ADD balance :by"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":by": &types.AttributeValueMemberN{Value: fmt.Sprint(by)}},
	})
}

// Each event is one transaction: the writes of its reaction, and the position of the group.
func ExampleNew() {
	show(func(client *dynamodb.Client) (*projection.Projection, error) {
		return projection.New(client, projection.Config{},
			projection.On(func(_ context.Context, e Paid, r *journal.Record) ([]projection.Write, error) {
				return []projection.Write{balance(r.Aggregate, e.Amount)}, nil
			}))
	})
	// Output: anna has 60
}

// A run of events is one transaction: the sum of them, and the position behind the last.
func ExampleNewBatch() {
	show(func(client *dynamodb.Client) (*projection.Projection, error) {
		return projection.NewBatch(client, projection.Config{},
			func(_ context.Context, sum int, run projection.Run) ([]projection.Write, error) {
				return []projection.Write{balance(run.Aggregate, sum)}, nil
			},
			projection.Into(func(sum *int, e Paid, _ *journal.Record) error { *sum += e.Amount; return nil }),
		)
	})
	// Output: anna has 60
}

// show pays into an account, waits until the projection has applied that, and looks.
func show(balances func(*dynamodb.Client) (*projection.Projection, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db := dynamotest.Open()
	defer db.Close()
	client := db.Client()
	check(journal.Create(ctx, client, journal.Config{Shards: 1}))
	check(journal.EnsureTable(ctx, client, &dynamodb.CreateTableInput{
		TableName:            aws.String("balances"),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	}))
	j, err := journal.Open(ctx, client, journal.Config{})
	check(err)
	accounts, err := repository.New(j, aggregate.Define[Account]("account", Paid{}), repository.Config{})
	check(err)

	p, err := balances(client)
	check(err)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "balances"}, nil)
	check(err)
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	check(err)
	router.AddConsumerHandler("balances", "account", sub, p.Handle)
	go func() { check(router.Run(ctx)) }()
	<-router.Running()

	anna, err := accounts.Execute(ctx, "anna", pay(10, 20, 30))
	check(err)
	for err = groups.ErrNoGroup; err != nil; { // the group is made by its first member
		err = groups.New(j).WaitApplied(ctx, "balances", anna.ID, anna.Version)
	}
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String("balances"), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "anna"}},
	})
	check(err)
	fmt.Println("anna has", out.Item["balance"].(*types.AttributeValueMemberN).Value)
	check(router.Close())
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
