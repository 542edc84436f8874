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
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Account is an aggregate whose balances the examples show.
type Account struct{ Balance int }

type Paid struct{ Amount int }

func (Paid) EventType() string  { return "account.paid.v1" }
func (e Paid) Apply(a *Account) { a.Balance += e.Amount }

func pay(amounts ...int) aggregate.Decision[Account] {
	return func(Account) (events aggregate.Events[Account], err error) {
		for _, amount := range amounts {
			events = append(events, Paid{amount})
		}
		return events, nil
	}
}

// balances is the table of the read model, with an item for each account.
var balances = projection.Table{Name: "balances", PartitionKey: "id"}

// balance returns an update of the read model that adds to the balance of an account.
func balance(id aggregate.ID, by int) types.Update {
	return types.Update{
		TableName:                 &balances.Name,
		Key:                       balances.Key(id.Value),
		UpdateExpression:          aws.String("ADD balance :by"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":by": &types.AttributeValueMemberN{Value: fmt.Sprint(by)}},
	}
}

// Each event is one transaction: the writes of its reaction, and the position of the group.
func ExampleNew() {
	b := open()
	defer b.close()
	b.pay("anna", 10, 20, 30)
	p, err := projection.New(b.client, projection.Config{},
		projection.On(func(_ context.Context, e Paid, r *journal.Record) ([]projection.Write, error) {
			return []projection.Write{projection.Update(balance(r.Aggregate, e.Amount))}, nil
		}))
	check(err)
	b.follow("balances", p)
	b.show("anna")
	// Output: anna has 60
}

// A run of events is one transaction: their sum, and the position after the last.
func ExampleNewBatch() {
	b := open()
	defer b.close()
	b.pay("anna", 10, 20, 30)
	p, err := projection.NewBatch(b.client, projection.Config{},
		func(_ context.Context, sum int, run projection.Run) ([]projection.Write, error) {
			return []projection.Write{projection.Update(balance(run.Aggregate, sum))}, nil
		},
		projection.Fold(func(sum *int, e Paid, _ *journal.Record) error { *sum += e.Amount; return nil }),
	)
	check(err)
	b.follow("balances", p)
	b.show("anna")
	// Output: anna has 60
}

// A row for each account is the position of the group too, so an event is one plain update.
func ExampleNewRows() {
	b := open()
	defer b.close()
	b.pay("anna", 10, 20, 30)
	rows, err := projection.NewRows(b.client, projection.RowTable{Table: balances}, projection.Config{},
		projection.OnRow(func(_ context.Context, e Paid, _ *journal.Record) (projection.RowUpdate, error) {
			return projection.RowUpdate{
				Expression: "ADD balance :by",
				Values:     map[string]types.AttributeValue{":by": &types.AttributeValueMemberN{Value: fmt.Sprint(e.Amount)}},
			}, nil
		}))
	check(err)
	b.followWith(subscriber.Config{ConsumerGroup: "balances", Positions: rows}, rows.Handle, groups.WithPositions(rows))
	b.show("anna")
	// Output: anna has 60
}

// An item records the events that have updated it. It takes each of them once, even if another
// group handles it too, or the same group after a reset.
func ExampleIdempotentUpdate() {
	b := open()
	defer b.close()
	b.pay("anna", 10, 20, 30)
	p, err := projection.New(b.client, projection.Config{},
		projection.On(func(_ context.Context, e Paid, r *journal.Record) ([]projection.Write, error) {
			return []projection.Write{projection.IdempotentUpdate(balance(r.Aggregate, e.Amount), r)}, nil
		}))
	check(err)
	b.follow("balances", p)
	b.follow("balances-again", p)
	b.show("anna")
	// Output: anna has 60
}

// With the definition of their aggregate, reactions receive events of old types as current events.
func ExampleConfig_definitions() {
	type paidInCents struct{ Cents int }
	accounts := aggregate.Define[Account]("account", Paid{}).WithUpcasters(
		aggregate.Upcast("account.paid.v0", func(old paidInCents) Paid { return Paid{Amount: old.Cents / 100} }),
	)
	b := open()
	defer b.close()
	b.publish("anna", "account.paid.v0", `{"Cents": 500}`)
	p, err := projection.New(b.client, projection.Config{Definitions: []aggregate.AnyDefinition{accounts}},
		projection.On(func(_ context.Context, e Paid, r *journal.Record) ([]projection.Write, error) {
			return []projection.Write{projection.Update(balance(r.Aggregate, e.Amount))}, nil
		}))
	check(err)
	b.follow("balances", p)
	b.show("anna")
	// Output: anna has 5
}

// A program creates the table of its read model at every start. Only the first call creates it.
func ExampleCreateTable() {
	ctx := context.Background()
	client := dynamotest.Open().Client() // any *dynamodb.Client
	orders := projection.Table{Name: "orders", PartitionKey: "customer", SortKey: "order"}
	for range 2 {
		check(projection.CreateTable(ctx, client, orders))
	}
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &orders.Name, Key: orders.Key("anna", "order-1")})
	check(err)
	fmt.Println("attributes:", len(out.Item))
	// Output: attributes: 0
}

// bank has a journal of accounts and a table of their balances.
type bank struct {
	db     *dynamotest.DB
	client *dynamodb.Client
	j      *journal.Journal
	last   map[string]uint64 // the last event of an account
}

func open() *bank {
	ctx := context.Background()
	db := dynamotest.Open()
	client := db.Client()
	check(journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 1}))
	check(projection.CreateTable(ctx, client, balances))
	j, err := journal.Open(ctx, client, journal.Config{})
	check(err)
	return &bank{db: db, client: client, j: j, last: map[string]uint64{}}
}

func (b *bank) close() { b.db.Close() }

func (b *bank) pay(id string, amounts ...int) {
	accounts, err := repository.New(b.j, aggregate.Define[Account]("account", Paid{}), repository.Config{})
	check(err)
	a, err := accounts.Execute(context.Background(), id, pay(amounts...))
	check(err)
	b.last[id] = a.Version
}

// publish writes the first event of an account, for example an event of an older program.
func (b *bank) publish(id, eventType, payload string) {
	p, err := publisher.NewPublisher(publisher.Config{Journal: b.j}, nil)
	check(err)
	msg := message.NewMessage(watermill.NewUUID(), []byte(payload))
	msg.Metadata.Set(publisher.AggregateIDKey, id)
	msg.Metadata.Set(publisher.NameKey, eventType)
	check(p.Publish("account", msg))
	check(p.Close())
	b.last[id] = 1
}

// follow runs a projection with a group until the group has applied all events.
func (b *bank) follow(group string, p *projection.Projection) {
	b.followWith(subscriber.Config{ConsumerGroup: group}, p.Handle)
}

func (b *bank) followWith(config subscriber.Config, handle message.NoPublishHandlerFunc, options ...groups.Option) {
	ctx, group := context.Background(), config.ConsumerGroup
	config.Journal = b.j
	sub, err := subscriber.NewSubscriber(config, nil)
	check(err)
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	check(err)
	router.AddConsumerHandler(group, "account", sub, handle)
	go func() { check(router.Run(ctx)) }()
	<-router.Running()
	for id, number := range b.last {
		check(groups.New(b.j, options...).WaitApplied(ctx, group, account(id), number))
	}
	check(router.Close())
}

func (b *bank) show(id string) {
	out, err := b.client.GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: &balances.Name, Key: balances.Key(id),
	})
	check(err)
	fmt.Println(id, "has", out.Item["balance"].(*types.AttributeValueMemberN).Value)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
