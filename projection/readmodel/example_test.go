package readmodel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

type OrderPlaced struct{ Cents int }

func (OrderPlaced) EventType() string { return "order.placed" }

// A release has another form of a read model: totals in euros instead of cents. It is built while
// the old form serves and the old release still runs.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db := dynamotest.Open()
	defer db.Close()
	s := shop{client: db.Client()}
	check(journal.Create(ctx, s.client, journal.Config{Layout: journal.Packed, Shards: 1}))
	check(readmodel.CreateTable(ctx, s.client, readmodel.DefaultTable))
	var err error
	s.journal, err = journal.Open(ctx, s.client, journal.Config{})
	check(err)

	before := s.deploy(ctx, "1")
	first, err := before.Serving(ctx)
	check(err)
	check(before.CatchUp(ctx, first, nil))
	s.query(ctx, before, s.place("a", 1999))

	now := s.deploy(ctx, "1", "2")
	// The new generation has form "2", so the earlier release ignores it.
	next, err := now.Begin(ctx)
	check(err)
	s.query(ctx, now, s.place("b", 500))
	check(now.CatchUp(ctx, next, nil))
	check(now.Switch(ctx, next))
	s.query(ctx, now, s.place("c", 250))
	_, err = now.Rollback(ctx, next)
	check(err)
	s.query(ctx, now, s.place("d", 10))
	check(now.Drop(ctx, next, groups.RemoveOptions{}))
	// Output:
	// orders_1 has order a: 1999 cents
	// orders_1 has order b: 500 cents
	// orders_2 has order c: 2.50 euros
	// orders_1 has order d: 10 cents
}

type shop struct {
	client  *dynamodb.Client
	journal *journal.Journal
}

// deploy starts a program of the release that knows these forms.
func (s shop) deploy(ctx context.Context, forms ...string) *readmodel.Model {
	m, err := readmodel.Open(ctx, s.client, readmodel.Config{
		Name: "orders", Journal: s.journal, Topics: []string{"order"}, Forms: forms, MaxLag: 1, Refresh: 10 * time.Millisecond,
	})
	check(err)
	go func() { _ = m.Run(ctx, s.project) }()
	return m
}

// project keeps a generation up to date.
func (s shop) project(ctx context.Context, g readmodel.Generation) error {
	err := projection.CreateTable(ctx, s.client, projection.Table{Name: g.Table("orders"), PartitionKey: "id"})
	if err != nil {
		return err
	}
	total := func(e OrderPlaced) string { return fmt.Sprintf("%d cents", e.Cents) }
	if g.Form == "2" {
		total = func(e OrderPlaced) string { return fmt.Sprintf("%d.%02d euros", e.Cents/100, e.Cents%100) }
	}
	orders, err := projection.New(s.client, projection.Config{},
		projection.On(func(_ context.Context, e OrderPlaced, r *journal.Record) ([]projection.Write, error) {
			return []projection.Write{projection.Put(types.Put{TableName: aws.String(g.Table("orders")), Item: map[string]types.AttributeValue{
				"id": &types.AttributeValueMemberS{Value: r.Aggregate.Value}, "total": &types.AttributeValueMemberS{Value: total(e)},
			}})}, nil
		}))
	if err != nil {
		return err
	}
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: s.journal, ConsumerGroup: g.Group(), Timing: subscriber.Timing{PollInterval: 5 * time.Millisecond, CommitInterval: 10 * time.Millisecond},
	}, nil)
	if err != nil {
		return err
	}
	messages, err := sub.Subscribe(ctx, "order")
	if err != nil {
		return err
	}
	for msg := range messages { // a Watermill router does this
		if orders.Handle(msg) == nil {
			msg.Ack()
		} else {
			msg.Nack()
		}
	}
	return sub.Close()
}

func (s shop) place(id string, cents int) aggregate.ID {
	payload, err := json.Marshal(OrderPlaced{cents})
	check(err)
	p, err := publisher.NewPublisher(publisher.Config{Journal: s.journal}, nil)
	check(err)
	msg := message.NewMessage(watermill.NewUUID(), payload)
	msg.Metadata.Set(publisher.AggregateIDKey, id)
	msg.Metadata.Set(publisher.NameKey, "order.placed")
	check(p.Publish("order", msg))
	check(p.Close())
	return aggregate.ID{Type: "order", Value: id}
}

// query reads an order that was placed just now, from the generation that serves.
func (s shop) query(ctx context.Context, m *readmodel.Model, order aggregate.ID) {
	g, err := m.Serving(ctx)
	check(err)
	check(groups.New(s.journal).WaitApplied(ctx, g.Group(), order, 1))
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(g.Table("orders")), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: order.Value}},
	})
	check(err)
	fmt.Printf("%s has order %s: %s\n", g.Table("orders"), order.Value, out.Item["total"].(*types.AttributeValueMemberS).Value)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
