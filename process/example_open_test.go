package process_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

// List the processes that have begun and have not ended: here reminders of unpaid invoices.
func ExampleBacklog_OpenProcesses() {
	ctx := context.Background()
	db := dynamotest.Open()
	defer db.Close()
	check(journal.Create(ctx, db.Client(), journal.Config{Layout: journal.Packed, Shards: 1}))
	check(process.CreateTable(ctx, db.Client(), process.DefaultTable))
	j, err := journal.Open(ctx, db.Client(), journal.Config{})
	check(err)

	invoice := func(in process.Input) string { return in.Source.Value }
	reminders := process.Define(
		aggregate.Define[Reminder]("reminder", Sent{}, Paid{}),
		process.On(func(_ InvoiceSent, in process.Input) string { return invoice(in) },
			func(Reminder, InvoiceSent, process.Input) (process.Step[Reminder], error) {
				return process.Record(Sent{}), nil
			}).Starts(),
		process.On(func(_ InvoicePaid, in process.Input) string { return invoice(in) },
			func(Reminder, InvoicePaid, process.Input) (process.Step[Reminder], error) {
				return process.Record(Paid{}), nil
			}),
	).EndsWhen(func(r Reminder) bool { return r.Paid })
	manager, err := process.New(j, db.Client(), reminders, process.Config{})
	check(err)

	// A subscriber would pass such messages to the manager.
	for i, event := range []struct{ name, invoice string }{
		{"invoice.sent", "42"},
		{"invoice.sent", "43"},
		{"invoice.paid", "42"},
	} {
		msg := message.NewMessageWithContext(ctx, fmt.Sprint("event-", i), []byte(`{}`))
		msg.Metadata = message.Metadata{"name": event.name, "aggregate_type": "invoice", "aggregate_id": event.invoice}
		check(manager.Handle(msg))
	}

	backlog := process.NewBacklog(db.Client(), process.DefaultTable)
	for p, err := range backlog.OpenProcesses(ctx, process.BacklogQuery{Type: "reminder"}) {
		check(err)
		fmt.Println(p.Process, "began less than a minute ago:", time.Since(p.Begun) < time.Minute)
	}
	// Output:
	// reminder-43 began less than a minute ago: true
}
