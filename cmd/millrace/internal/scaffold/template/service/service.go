// Package service wires the service: its tables, its handlers of events and commands, and its
// routes.
package service

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold/template/order"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold/template/payment"
	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold/template/views"
)

// Prefix is the beginning of the names of all tables.
const Prefix = "millrace-template-"

// Settings differ between programs that run the service, such as tests.
type Settings struct {
	Patience       time.Duration // that a customer has to pay
	ExistingTables bool          // false creates missing tables
	Subscriber     func(group string, c *subscriber.Config)
	Process        process.Config
	Logger         watermill.LoggerAdapter
}

// App is one instance of the service.
type App struct {
	*millrace.App
	orders *repository.Repository[order.Order]
	views  projection.Reader[views.Order]
}

// Open wires an instance. Nothing runs yet.
func Open(ctx context.Context, client *dynamodb.Client, s Settings) (*App, error) {
	opened, err := millrace.Open(ctx, client, millrace.Config{
		Prefix: Prefix,
		// Both are fixed when the tables are created. 4 shards serve 1,000 events a second.
		Journal:        journal.Config{Layout: journal.Packed, Shards: 4},
		ExistingTables: s.ExistingTables,
		Subscriber:     s.Subscriber,
		Logger:         s.Logger,
	})
	if err != nil {
		return nil, err
	}
	table := views.OrderTable(Prefix + "orders")
	if err := opened.CreateTables(ctx, table.Table); err != nil {
		return nil, err
	}
	a := &App{App: opened, views: views.OrderReader(client, table)}
	if a.orders, err = millrace.Repository(a.App, order.Definition, repository.Config{}); err != nil {
		return nil, err
	}
	if _, err := a.ProjectRows(millrace.Group{Name: "orders", Topics: []string{"order"}}, table, views.OrderReaction(a.orders)); err != nil {
		return nil, err
	}
	if _, err := millrace.Process(ctx, a.App, payment.Define(s.Patience), s.Process, "order"); err != nil {
		return nil, err
	}
	return a, a.HandleCommands(command.Handler("cancel-order", a.orders, (*payment.CancelOrder).Route))
}
