package main

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/examples/ordersaga/saga"
	"github.com/millrace-dev/millrace/examples/ordersaga/services"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
)

// app has all services and the saga in one program. Each part could be its own program.
type app struct {
	customers *repository.Repository[services.Customer]
	orders    *repository.Repository[services.Order]
	close     func() error
}

// start wires the application. Now is the clock of the timeouts.
func start(ctx context.Context, client *dynamodb.Client, now func() time.Time) (*app, error) {
	m, err := millrace.Open(ctx, client, millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 4}})
	if err != nil {
		return nil, err
	}
	customers, err1 := millrace.Repository(m, services.Customers, repository.Config{})
	tickets, err2 := millrace.Repository(m, services.Tickets, repository.Config{})
	payments, err3 := millrace.Repository(m, services.Payments, repository.Config{})
	orders, err4 := millrace.Repository(m, services.Orders, repository.Config{})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	topics := []string{services.Orders.Type(), services.Customers.Type(), services.Tickets.Type(), services.Payments.Type()}
	_, err = millrace.Process(ctx, m, saga.Definition, process.Config{Now: now, PollInterval: 50 * time.Millisecond}, topics...)
	if err != nil {
		return nil, err
	}
	err = m.HandleCommands(
		command.Handler("reserve-credit", customers, func(c *saga.ReserveCredit) (string, aggregate.Decision[services.Customer]) {
			return c.Customer, services.Reserve(c.Order, c.Total)
		}),
		command.Handler("release-credit", customers, func(c *saga.ReleaseCredit) (string, aggregate.Decision[services.Customer]) {
			return c.Customer, services.Release(c.Order)
		}),
		command.Handler("create-ticket", tickets, func(c *saga.CreateTicket) (string, aggregate.Decision[services.Ticket]) {
			return c.Order, services.CreateTicket
		}),
		command.Handler("cancel-ticket", tickets, func(c *saga.CancelTicket) (string, aggregate.Decision[services.Ticket]) {
			return c.Order, services.CancelTicket
		}),
		command.Handler("authorise-payment", payments, func(c *saga.AuthorisePayment) (string, aggregate.Decision[services.Payment]) {
			return c.Order, services.Authorise(c.Total)
		}),
		command.Handler("approve-order", orders, func(c *saga.ApproveOrder) (string, aggregate.Decision[services.Order]) {
			return c.Order, services.Approve
		}),
		command.Handler("reject-order", orders, func(c *saga.RejectOrder) (string, aggregate.Decision[services.Order]) {
			return c.Order, services.Reject(c.Reason)
		}),
	)
	if err != nil {
		return nil, err
	}
	stop, err := m.Start(ctx)
	return &app{customers, orders, stop}, err
}

func (a *app) grant(ctx context.Context, customer string, amount int) error {
	_, err := a.customers.Execute(ctx, customer, services.Grant(amount))
	return err
}

func (a *app) place(ctx context.Context, order, customer string, total int) error {
	_, err := a.orders.Execute(ctx, order, services.Place(customer, total))
	return err
}

// outcome waits until an order is approved or rejected.
func (a *app) outcome(ctx context.Context, order string) (services.Order, error) {
	return await(ctx, a.orders, order, func(o services.Order) bool { return o.Status != "placed" })
}

// credit waits until a customer is in the wanted state, and returns the remaining credit.
func (a *app) credit(ctx context.Context, customer string, wanted func(services.Customer) bool) (int, error) {
	c, err := await(ctx, a.customers, customer, wanted)
	return c.Credit, err
}

func await[S any](ctx context.Context, r *repository.Repository[S], id string, wanted func(S) bool) (state S, err error) {
	for {
		loaded, err := r.Load(ctx, id)
		if err != nil || wanted(loaded.State) {
			return loaded.State, err
		}
		select {
		case <-ctx.Done():
			return state, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
