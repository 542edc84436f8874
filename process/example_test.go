package process_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// Reminder is a process that reminds of an invoice until it is paid.
type Reminder struct {
	Sent int
	Paid bool
}

type (
	Sent struct{}
	Paid struct{}
)

func (Sent) EventType() string { return "reminder.sent" }
func (Paid) EventType() string { return "reminder.paid" }
func (Sent) Apply(r *Reminder) { r.Sent++ }
func (Paid) Apply(r *Reminder) { r.Paid = true }

// The process reacts to these events of an invoice.
type (
	Invoice     struct{ Open bool }
	InvoiceSent struct{ Total int }
	InvoicePaid struct{}
)

func (InvoiceSent) EventType() string { return "invoice.sent" }
func (InvoicePaid) EventType() string { return "invoice.paid" }
func (InvoiceSent) Apply(i *Invoice)  { i.Open = true }
func (InvoicePaid) Apply(i *Invoice)  { i.Open = false }

// Remind is the command that the process sends.
type Remind struct {
	Invoice string
	Time    int
}

// A process reminds of an invoice each week, until it is paid.
func Example() {
	const week = 7 * 24 * time.Hour
	source := func(in process.Input) string { return in.Source.Value }
	reminders := process.Define(
		aggregate.Define[Reminder]("reminder", Sent{}, Paid{}),
		process.On(func(_ InvoiceSent, in process.Input) string { return source(in) },
			func(Reminder, InvoiceSent, process.Input) (process.Step[Reminder], error) {
				return process.Record(Sent{}).SetTimeout("unpaid", week), nil
			}).Starts(),
		process.On(func(_ InvoicePaid, in process.Input) string { return source(in) },
			func(Reminder, InvoicePaid, process.Input) (process.Step[Reminder], error) {
				return process.Record(Paid{}).CancelTimeout("unpaid"), nil
			}),
		process.OnTimeout("unpaid", func(r Reminder, in process.Input) (process.Step[Reminder], error) {
			return process.Record(Sent{}).
				Send(Remind{Invoice: in.Process, Time: r.Sent}).
				SetTimeout("unpaid", week), nil
		}),
	).EndsWhen(func(r Reminder) bool { return r.Paid })

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	db := dynamotest.Open()
	defer db.Close()
	check(journal.Create(ctx, db.Client(), journal.Config{Layout: journal.Packed, Shards: 1}))
	check(process.CreateTable(ctx, db.Client(), process.DefaultTable))
	j, err := journal.Open(ctx, db.Client(), journal.Config{})
	check(err)

	now := time.Now() // a clock that can be moved
	manager, err := process.New(j, db.Client(), reminders, process.Config{
		Publisher:            printer{},
		GeneratePublishTopic: func(p cqrs.CommandBusGeneratePublishTopicParams) (string, error) { return "mail", nil },
		Now:                  func() time.Time { return now },
	})
	check(err)

	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "reminder"}, nil)
	check(err)
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	check(err)
	handled := make(chan struct{}, 10)
	router.AddConsumerHandler("reminder", "invoice", sub, func(msg *message.Message) error {
		err := manager.Handle(msg)
		handled <- struct{}{}
		return err
	})
	go func() { check(router.Run(ctx)) }()

	invoices, err := repository.New(j, aggregate.Define[Invoice]("invoice", InvoiceSent{}, InvoicePaid{}), repository.Config{})
	check(err)
	happens := func(e aggregate.Event[Invoice]) {
		_, err := invoices.Execute(ctx, "42", func(Invoice) (aggregate.Events[Invoice], error) { return aggregate.Events[Invoice]{e}, nil })
		check(err)
		<-handled
	}
	happens(InvoiceSent{Total: 100})
	for range 2 {
		now = now.Add(week)
		_, err = manager.Fire(ctx) // manager.Run does this by itself
		check(err)
	}
	happens(InvoicePaid{})
	now = now.Add(week)
	fired, err := manager.Fire(ctx)
	check(err)
	fmt.Println("timeouts after it was paid:", fired)
	check(router.Close())
	// Output:
	// mail: {"Invoice":"42","Time":1}
	// mail: {"Invoice":"42","Time":2}
	// timeouts after it was paid: 0
}

// printer is a message.Publisher that prints messages.
type printer struct{}

func (printer) Publish(topic string, messages ...*message.Message) error {
	for _, msg := range messages {
		fmt.Printf("%s: %s\n", topic, msg.Payload)
	}
	return nil
}

func (printer) Close() error { return nil }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
