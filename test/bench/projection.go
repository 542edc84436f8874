package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/tables"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// inFlight is the default number of concurrent messages of the subscriber, and so the number of
// bare writers.
const inFlight = 64

// exactlyOnce compares a projection that writes one item for each event with a handler that does
// the same without the position.
func (b *bench) exactlyOnce(ctx context.Context) error {
	const name = "exactly-once"
	return b.besidePlain(ctx, name, func(model string) (consumer, error) {
		p, err := projection.New(b.client, projection.Config{}, projection.On(func(_ context.Context, _ deposited, r *journal.Record) ([]projection.Write, error) {
			return []projection.Write{projection.Update(addTo(model, r.Aggregate, 1))}, nil
		}))
		if err != nil {
			return consumer{}, err
		}
		return consumer{handle: p.Handle, handled: func() uint64 { return p.Stats().Applied }}, nil
	})
}

// exactlyOnceRow is exactlyOnce for a projection whose rows are the positions.
func (b *bench) exactlyOnceRow(ctx context.Context) error {
	const name = "exactly-once-row"
	return b.besidePlain(ctx, name, func(model string) (consumer, error) {
		table := projection.RowTable{Table: projection.Table{Name: "models", PartitionKey: "id"}, Prefix: model + "/"}
		rows, err := projection.NewRows(b.client, table, projection.Config{}, projection.OnRow(
			func(_ context.Context, _ deposited, r *journal.Record) (projection.RowUpdate, error) {
				u := addTo(model, r.Aggregate, 1)
				return projection.RowUpdate{Expression: *u.UpdateExpression, Names: u.ExpressionAttributeNames, Values: u.ExpressionAttributeValues}, nil
			}))
		if err != nil {
			return consumer{}, err
		}
		return consumer{rows.Handle, func() uint64 { return rows.Stats().Applied }, rows}, nil
	})
}

// besidePlain compares a projection that changes one item for each event with a handler that makes
// the same updates without a position.
func (b *bench) besidePlain(ctx context.Context, name string, once func(model string) (consumer, error)) error {
	const aggregates, each = 100, 20
	if err := b.historyOf(ctx, name, aggregates, each); err != nil {
		return err
	}
	plain := func(model string) consumer {
		var handled atomic.Uint64
		return consumer{handled: handled.Load, handle: func(msg *message.Message) error {
			id, _, _ := subscriber.AggregateFromContext(msg.Context())
			u := addTo(model, id, 1)
			_, err := b.client.UpdateItem(msg.Context(), &dynamodb.UpdateItemInput{
				TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression,
				ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
			})
			handled.Add(1)
			return err
		}}
	}
	return alternate(name, max(1, b.many/4), cost,
		func(int) (time.Duration, error) {
			model := watermill.NewShortUUID()
			return b.project(ctx, name, model, aggregates*each, plain(model))
		},
		func(int) (time.Duration, error) {
			model := watermill.NewShortUUID()
			c, err := once(model)
			if err != nil {
				return 0, err
			}
			return b.project(ctx, name, model, aggregates*each, c)
		},
	)
}

// rebuild measures a new group whose projection handles 100,000 events in runs. It is compared with
// paged queries of the same index, followed by the same number of transactions of an item and a
// position, with the same concurrency.
func (b *bench) rebuild(ctx context.Context) error {
	const name, aggregates, each = "rebuild", 100, 1000
	if err := b.historyOf(ctx, name, aggregates, each); err != nil {
		return err
	}
	var transactions atomic.Int64
	runs := func(model string) (consumer, error) {
		p, err := projection.NewBatch(&countingClient{b.client, &transactions}, projection.Config{},
			func(_ context.Context, sum int, run projection.Run) ([]projection.Write, error) {
				return []projection.Write{projection.Update(addTo(model, run.Aggregate, sum))}, nil
			},
			projection.Fold(func(sum *int, e deposited, _ *journal.Record) error { *sum++; return nil }))
		if err != nil {
			return consumer{}, err
		}
		return consumer{handle: p.Handle, handled: func() uint64 { return p.Stats().Applied }}, nil
	}
	var last int64
	err := alternate(name, max(1, b.many/4), cost,
		func(pair int) (time.Duration, error) {
			n := last
			if pair == 0 {
				n = aggregates * each / 100
			}
			return timed(func() error {
				return errors.Join(b.tailBare(ctx, name, aggregates*each), b.projectBare(ctx, aggregates, int(n)))
			})
		},
		func(int) (time.Duration, error) {
			transactions.Store(0)
			model := watermill.NewShortUUID()
			c, err := runs(model)
			if err != nil {
				return 0, err
			}
			took, err := b.project(ctx, name, model, aggregates*each, c)
			last = transactions.Load()
			return took, err
		},
	)
	fmt.Printf("# rebuild: %d events in %d transactions\n", aggregates*each, last)
	return err
}

type countingClient struct {
	projection.Client
	n *atomic.Int64
}

func (c *countingClient) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.n.Add(1)
	return c.Client.TransactWriteItems(ctx, in, o...)
}

func (b *bench) historyOf(ctx context.Context, topic string, aggregates, each int) error {
	err := tables.Ensure(ctx, b.client, &dynamodb.CreateTableInput{
		TableName:            aws.String("models"),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	})
	if err != nil {
		return err
	}
	repo, err := repository.New(b.j, define(topic), repository.Config{Snapshots: repository.Never})
	if err != nil {
		return err
	}
	return fillAll(ctx, repo, aggregates, each)
}

// addTo returns an update of a read model with an item for each aggregate.
func addTo(model string, id aggregate.ID, n int) types.Update {
	return types.Update{
		TableName: aws.String("models"), Key: item{"id": text(model + "/" + id.Value)}, UpdateExpression: aws.String("ADD #n :n"),
		ExpressionAttributeNames: map[string]string{"#n": "events"}, ExpressionAttributeValues: item{":n": number(n)},
	}
}

// consumer handles messages, and returns how many events it has handled.
type consumer struct {
	handle  func(*message.Message) error
	handled func() uint64
	store   subscriber.PositionStore // nil for the checkpoint table
}

// project makes a new group handle a topic, and returns the time from before Subscribe until all
// events are handled.
func (b *bench) project(ctx context.Context, topic, group string, events uint64, c consumer) (time.Duration, error) {
	start := time.Now()
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: b.j, ConsumerGroup: group, Positions: c.store}, nil)
	if err != nil {
		return 0, err
	}
	messages, err := sub.Subscribe(ctx, topic)
	if err != nil {
		return 0, errors.Join(err, sub.Close())
	}
	results := make(chan error, inFlight)
	for err == nil && c.handled() < events {
		select {
		case msg := <-messages:
			go func() {
				err := c.handle(msg)
				msg.Ack()
				results <- err
			}()
		case err = <-results:
		}
	}
	took := time.Since(start)
	return took, errors.Join(err, sub.Close())
}

// projectBare makes transactions of an item and a position, like those of a projection.
func (b *bench) projectBare(ctx context.Context, aggregates, transactions int) error {
	model := watermill.NewShortUUID()
	errs := make([]error, inFlight)
	var writers sync.WaitGroup
	for w := range inFlight {
		writers.Add(1)
		go func() {
			defer writers.Done()
			for a := w; a < aggregates && errs[w] == nil; a += inFlight {
				for n := 0; n < transactions/aggregates && errs[w] == nil; n++ {
					errs[w] = b.positionAndItem(ctx, model, aggregate.ID{Type: "bare", Value: fmt.Sprint("a", a)}, n)
				}
			}
		}()
	}
	writers.Wait()
	return errors.Join(errs...)
}

func (b *bench) positionAndItem(ctx context.Context, model string, id aggregate.ID, from int) error {
	effect := addTo(model, id, 1)
	_, err := b.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Update: &types.Update{
			TableName: aws.String("checkpoint"), Key: item{"pkey": text(model), "skey": text("position/" + id.Value)},
			UpdateExpression:          aws.String("SET #p = :to, #e = :e"),
			ConditionExpression:       aws.String("attribute_not_exists(#p) OR #p = :from AND #e = :e"),
			ExpressionAttributeNames:  map[string]string{"#p": "position", "#e": "epoch"},
			ExpressionAttributeValues: item{":from": number(from), ":to": number(from + 1), ":e": number(1)},
		}},
		{Update: &effect},
	}})
	return err
}
