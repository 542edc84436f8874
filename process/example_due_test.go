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

// List the overdue timeouts, the earliest first. During an attempt a timeout is due later, so pass
// a time in the future.
func ExampleBacklog_Due() {
	ctx := context.Background()
	db := dynamotest.Open()
	defer db.Close()
	check(journal.Create(ctx, db.Client(), journal.Config{Layout: journal.Packed, Shards: 1}))
	check(process.CreateTable(ctx, db.Client(), process.DefaultTable))
	j, err := journal.Open(ctx, db.Client(), journal.Config{})
	check(err)

	reminders := process.Define(
		aggregate.Define[Reminder]("reminder", Sent{}, Paid{}),
		process.On(func(_ InvoiceSent, in process.Input) string { return in.Source.Value },
			func(Reminder, InvoiceSent, process.Input) (process.Step[Reminder], error) {
				return process.Record(Sent{}).SetTimeout("unpaid", time.Hour), nil
			}).Starts(),
		process.OnTimeout("unpaid", func(Reminder, process.Input) (process.Step[Reminder], error) {
			return process.Step[Reminder]{}, fmt.Errorf("the mail server is not reachable")
		}),
	)
	now := time.Now() // a clock that can be moved
	manager, err := process.New(j, db.Client(), reminders, process.Config{Now: func() time.Time { return now }})
	check(err)
	for _, invoice := range []string{"42", "43", "44"} {
		msg := message.NewMessageWithContext(ctx, "event-"+invoice, []byte(`{}`))
		msg.Metadata = message.Metadata{"name": "invoice.sent", "aggregate_type": "invoice", "aggregate_id": invoice}
		check(manager.Handle(msg))
		now = now.Add(time.Hour)
	}
	_, err = manager.Fire(ctx)
	fmt.Println(err != nil)

	backlog := process.NewBacklog(db.Client(), process.DefaultTable)
	for p, err := range backlog.Due(ctx, "reminder", now.Add(time.Hour)) {
		check(err)
		if p.At.Before(now.Add(-time.Minute)) {
			fmt.Println(p.Process, p.Timeout, now.Sub(p.At).Round(time.Hour), "late")
		}
	}
	// Unordered output:
	// true
	// reminder-42 unpaid 2h0m0s late
	// reminder-43 unpaid 1h0m0s late
}
