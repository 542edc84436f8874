package projection_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

const (
	patience = 2 * time.Minute
	topic    = "account"
	table    = "totals"
)

type item = map[string]types.AttributeValue

// Deposited adds its amount to a total, so that a lost or repeated effect is visible.
type Deposited struct{ Amount int }

func (Deposited) EventType() string { return "deposited" }

// Noted has no reaction.
type Noted struct{}

func (Noted) EventType() string { return "noted" }

type event interface{ EventType() string }

type world struct {
	t      *testing.T
	client *dynamodb.Client
	j      *journal.Journal
}

// setup makes a journal and a read model of totals.
func setup(t *testing.T) *world {
	t.Helper()
	return setupOn(t, testdb.Client(t), journal.Classic)
}

func setupOn(t *testing.T, client *dynamodb.Client, layout journal.Layout) *world {
	t.Helper()
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: layout, Shards: 2}))
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String(table),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	j := testjournal.Open(t, client, journal.Config{})
	return &world{t: t, client: client, j: j}
}

func account(id string) aggregate.ID { return aggregate.ID{Type: topic, Value: id} }

// write appends events to an aggregate that has had events so far.
func (w *world) write(id string, after int, events ...event) {
	w.t.Helper()
	commit := storage.Commit{Aggregate: account(id), Expected: uint64(after)}
	for _, e := range events {
		payload, err := json.Marshal(e)
		require.NoError(w.t, err)
		commit.Events = append(commit.Events, storage.Event{Type: e.EventType(), Payload: payload})
	}
	testjournal.Append(w.t, w.j, commit)
}

func (w *world) total(id string) int {
	w.t.Helper()
	out, err := w.client.GetItem(w.t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(table), Key: key(id), ConsistentRead: aws.Bool(true),
	})
	require.NoError(w.t, err)
	n, ok := out.Item["total"].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	total, err := strconv.Atoi(n.Value)
	require.NoError(w.t, err)
	return total
}

// consumer is a subscriber with the handlers of its messages.
type consumer struct {
	*subscriber.Subscriber
	handlers *sync.WaitGroup
}

// Close closes the subscriber and waits for the handlers. Counters are final then.
func (c consumer) Close() error {
	err := c.Subscriber.Close()
	c.handlers.Wait()
	return err
}

// consume handles the messages of a subscriber as the Router does: each message in its own
// goroutine, acked unless handle fails. The subscriber must be the only member of its group: its
// lease does not end on a slow machine.
func (w *world) consume(config subscriber.Config, handle func(*message.Message) error) consumer {
	w.t.Helper()
	config.Journal, config.ConsumerGroup = w.j, "totals"
	config.Timing.PollInterval, config.Timing.MaxPollInterval = 5*time.Millisecond, 50*time.Millisecond
	config.NackResendSleep, config.MaxNackResendSleep = time.Millisecond, time.Millisecond
	config.Timing.LeaseDuration, config.CloseTimeout = patience, patience
	sub, err := subscriber.NewSubscriber(config, nil)
	require.NoError(w.t, err)
	messages, err := sub.Subscribe(w.t.Context(), topic)
	require.NoError(w.t, err)
	handlers := &sync.WaitGroup{}
	handlers.Add(1)
	go func() {
		defer handlers.Done()
		for msg := range messages {
			handlers.Add(1)
			go func() {
				defer handlers.Done()
				if handle(msg) == nil {
					msg.Ack()
				} else {
					msg.Nack()
				}
			}()
		}
	}()
	c := consumer{sub, handlers}
	w.t.Cleanup(func() { require.NoError(w.t, c.Close()) })
	return c
}

// handleNext returns the result of handle for the first message, and does not ack the message.
func (w *world) handleNext(handle func(*message.Message) error) error {
	w.t.Helper()
	return w.handleNextOf(subscriber.Config{}, handle)
}

func (w *world) handleNextOf(config subscriber.Config, handle func(*message.Message) error) error {
	w.t.Helper()
	errs := make(chan error, 1)
	sub := w.consume(config, func(msg *message.Message) error {
		err := handle(msg)
		select {
		case errs <- err:
		default:
		}
		return errors.New("do not ack it")
	})
	err := await.Receive(w.t, errs, "a message")
	require.NoError(w.t, sub.Close())
	return err
}

func newProjection(t *testing.T, client projection.Client, reactions ...projection.Reaction) *projection.Projection {
	t.Helper()
	p, err := projection.New(client, projection.Config{}, reactions...)
	require.NoError(t, err)
	return p
}

// sum adds amounts, an effect that is not idempotent.
var sum = projection.On(func(_ context.Context, e Deposited, r *journal.Record) ([]projection.Write, error) {
	return []projection.Write{projection.Update(add(r.Aggregate.Value, e.Amount))}, nil
})

func add(id string, amount int) types.Update {
	return types.Update{
		TableName:                 aws.String(table),
		Key:                       key(id),
		UpdateExpression:          aws.String("ADD #total :amount"),
		ExpressionAttributeNames:  map[string]string{"#total": "total"},
		ExpressionAttributeValues: item{":amount": number(amount)},
	}
}

func key(id string) item { return item{"id": &types.AttributeValueMemberS{Value: id}} }

func number(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }

var eventually = await.True
