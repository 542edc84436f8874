package saga

import (
	"context"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/process/processtest"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestAnOrderWithoutAnAnswerIsRejected(t *testing.T) {
	t.Parallel()
	order := process.Input{Source: aggregate.ID{Type: "order", Value: "o1"}}
	processtest.Given(t, Definition).
		When(OrderPlaced{Customer: "anna", Total: 5}, order).
		ThenProcess("o1").
		ThenCommands(ReserveCredit{Customer: "anna", Order: "o1", Total: 5}).
		WhenTimeout("answers", "o1").
		ThenCommands(ReleaseCredit{"anna", "o1"}, RejectOrder{"o1"}).
		ThenEnded()
}

// printer stands in for *testing.T, which an example does not have.
type printer struct{ testing.TB }

func (printer) Helper()                           {}
func (printer) Cleanup(func())                    {}
func (printer) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// A failed test says what differs.
func Example() {
	processtest.Given(printer{}, Definition).
		When(OrderPlaced{Customer: "anna", Total: 5}, process.Input{Source: aggregate.ID{Type: "order", Value: "o1"}}).
		ThenCommands(ReserveCredit{Customer: "anna", Order: "o1", Total: 6}, ApproveOrder{"o1"})
	// Output:
	// When 1 (event "order.placed.v1"): the commands are not as expected (-want +got)
	//   saga.ReserveCredit{
	//     Customer: "anna",
	//     Order:    "o1",
	// -   Total:    6,
	// +   Total:    5,
	//   }
	// - saga.ApproveOrder{Order: "o1"}
	// the step was:
	//   event 1: saga.Begun{Customer: "anna"}
	//   command 1: saga.ReserveCredit{Customer: "anna", Order: "o1", Total: 5}
	//   timeout 1: process.Timeout{Name: "answers", After: 10s}
}

func TestAnOrderIsApproved(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := dynamotest.New(t).Client()
	check(journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 1}))
	j, err := journal.Open(ctx, client, journal.Config{})
	check(err)
	orders, err := repository.New(j, Orders, repository.Config{})
	check(err)
	customers, err := repository.New(j, Customers, repository.Config{})
	check(err)
	p, err := publisher.NewPublisher(publisher.Config{Journal: j}, nil)
	check(err)
	logger := watermill.NopLogger{}
	router, err := message.NewRouter(message.RouterConfig{}, logger)
	check(err)
	commands, err := cqrs.NewCommandProcessorWithConfig(router, cqrs.CommandProcessorConfig{
		Marshaler:              cqrs.JSONMarshaler{},
		GenerateSubscribeTopic: func(cqrs.CommandProcessorGenerateSubscribeTopicParams) (string, error) { return "commands", nil },
		SubscriberConstructor: func(p cqrs.CommandProcessorSubscriberConstructorParams) (message.Subscriber, error) {
			return subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: p.HandlerName}, nil)
		},
	})
	check(err)

	// Timeouts, and commands that are not sent yet.
	check(process.CreateTable(ctx, client, process.DefaultTable))
	manager, err := process.New(j, client, Definition, process.Config{
		Publisher: p, // any Watermill publisher
		GeneratePublishTopic: func(cqrs.CommandBusGeneratePublishTopicParams) (string, error) {
			return "commands", nil
		},
	})
	check(err)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "order-saga"}, logger)
	check(err)
	for _, topic := range []string{"order", "customer"} {
		router.AddConsumerHandler("order-saga/"+topic, topic, sub, manager.Handle)
	}
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }() // returns the error of ctx

	check(commands.AddHandlers(
		cqrs.NewCommandHandler("reserve-credit", func(ctx context.Context, c *ReserveCredit) error {
			_, err := customers.Execute(ctx, c.Customer, Reserve(c.Order, c.Total),
				repository.WithCommandID(cqrs.OriginalMessageFromCtx(ctx).UUID))
			return err
		}),
	))
	routed := make(chan error, 1)
	go func() { routed <- router.Run(ctx) }()
	_, err = orders.Execute(ctx, "o1", Place("anna", 5))
	check(err)

	waiting, stop := context.WithTimeout(ctx, 30*time.Second)
	defer stop()
	saga, err := manager.WaitEnded(waiting, "o1") // process.ErrNotEnded at the deadline
	check(err)
	fmt.Println("the order is", saga.State.Outcome)
	require.Equal(t, "approved", saga.State.Outcome)
	check(router.Close())
	require.NoError(t, <-routed)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
