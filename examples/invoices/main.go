// Command invoices writes an invoice for each order of another program, example orderhistory, which
// publishes its orders to NATS. The two programs share no table and no code.
//
//	go run ./examples/orderhistory -nats 127.0.0.1:4222
//	go run ./examples/invoices -nats nats://127.0.0.1:4222
//
// NATS delivers a message at least once. The invoice has the id of the order, and each message is a
// command with its UUID as its id, so nothing is invoiced twice.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/examples/internal/broker"
	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/forward"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/receive"
	"github.com/millrace-dev/millrace/repository"
)

// topic is the topic of the other program.
const topic = "ftgo-orders"

// Messages of the other program, with the fields that this one needs.
type (
	OrderPlaced struct {
		Order      string `json:"order"`
		Consumer   string `json:"consumer"`
		TotalCents int64  `json:"totalCents"`
	}
	OrderChanged struct {
		Order      string `json:"order"`
		TotalCents int64  `json:"totalCents"`
	}
	OrderEnded struct {
		Order string `json:"order"`
	}
)

func (OrderPlaced) EventType() string  { return "OrderPlaced" }
func (OrderChanged) EventType() string { return "OrderChanged" }
func (OrderEnded) EventType() string   { return "OrderEnded" }

// Invoice is the state of an invoice, and its events are below.
type Invoice struct {
	Consumer string
	Cents    int64
	Open     bool
}

type (
	Issued struct {
		Consumer string
		Cents    int64
	}
	Corrected struct{ Cents int64 }
	Withdrawn struct{}
)

func (Issued) EventType() string     { return "invoice.issued.v1" }
func (Corrected) EventType() string  { return "invoice.corrected.v1" }
func (Withdrawn) EventType() string  { return "invoice.withdrawn.v1" }
func (e Issued) Apply(i *Invoice)    { *i = Invoice{e.Consumer, e.Cents, true} }
func (e Corrected) Apply(i *Invoice) { i.Cents = e.Cents }
func (Withdrawn) Apply(i *Invoice)   { i.Open = false }

var invoices = aggregate.Define[Invoice]("invoice", Issued{}, Corrected{}, Withdrawn{})

// whileOpen returns a decision for messages that may come after the end of an order.
func whileOpen(event aggregate.Event[Invoice]) aggregate.Decision[Invoice] {
	return func(i Invoice) (aggregate.Events[Invoice], error) {
		if !i.Open {
			return nil, nil
		}
		return aggregate.Events[Invoice]{event}, nil
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	url := flag.String("nats", "nats://127.0.0.1:4222", "URL of the NATS server to which orderhistory publishes")
	flag.Parse()
	client, err := dynamo.Client(ctx)
	if err == nil {
		err = run(ctx, client, *url, os.Stdout, os.Stderr)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "invoices:", err)
		os.Exit(1)
	}
}

// run receives orders, and prints what becomes of invoices, until ctx ends.
func run(ctx context.Context, client *dynamodb.Client, url string, out, log io.Writer) error {
	logger := watermill.NewSlogLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn})))
	app, err := millrace.Open(ctx, client, millrace.Config{
		Prefix: "invoices-", Journal: journal.Config{Layout: journal.Packed, Shards: 4}, Logger: logger,
	})
	if err != nil {
		return err
	}
	repo, err := millrace.Repository(app, invoices, repository.Config{})
	if err != nil {
		return err
	}
	orders, err := broker.NewSubscriber(url, "invoices", logger)
	if err != nil {
		return fmt.Errorf("%w: start orderhistory with -nats first", err)
	}
	_, err = app.Receive(millrace.Group{Name: "orders"},
		millrace.Inbox{Subscriber: orders, Topics: []string{topic}, Receive: receive.Config{
			Key:           func(msg *message.Message) string { return msg.Metadata.Get(forward.KeyKey) },
			IgnoreUnknown: true, // the other program may publish more
		}},
		command.Handler("issue", repo, func(m *OrderPlaced) (string, aggregate.Decision[Invoice]) {
			return m.Order, func(Invoice) (aggregate.Events[Invoice], error) {
				return aggregate.Events[Invoice]{Issued{m.Consumer, m.TotalCents}}, nil
			}
		}),
		command.Handler("correct", repo, func(m *OrderChanged) (string, aggregate.Decision[Invoice]) {
			return m.Order, whileOpen(Corrected{m.TotalCents})
		}),
		command.Handler("withdraw", repo, func(m *OrderEnded) (string, aggregate.Decision[Invoice]) {
			return m.Order, whileOpen(Withdrawn{})
		}),
	)
	if err != nil {
		return errors.Join(err, orders.Close())
	}
	order := func(ctx context.Context) string {
		return cqrs.OriginalMessageFromCtx(ctx).Metadata.Get(publisher.AggregateIDKey)
	}
	err = app.HandleEvents(millrace.Group{Name: "printer", Topics: []string{invoices.Type()}},
		cqrs.NewGroupEventHandler(func(ctx context.Context, e *Issued) error {
			_, err := fmt.Fprintf(out, "%s: %s owes %d cents\n", order(ctx), e.Consumer, e.Cents)
			return err
		}),
		cqrs.NewGroupEventHandler(func(ctx context.Context, e *Corrected) error {
			_, err := fmt.Fprintf(out, "%s: it is %d cents now\n", order(ctx), e.Cents)
			return err
		}),
		cqrs.NewGroupEventHandler(func(ctx context.Context, _ *Withdrawn) error {
			_, err := fmt.Fprintf(out, "%s: nothing is owed\n", order(ctx))
			return err
		}),
	)
	if err == nil {
		err = app.Run(ctx)
	}
	return errors.Join(err, orders.Close())
}
