// Package service wires the booking service: its tables, the handlers of commands and events, and
// its HTTP routes.
package service

import (
	"context"
	"net/http"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/examples/booking/checkout"
	"github.com/millrace-dev/millrace/examples/booking/effects"
	"github.com/millrace-dev/millrace/examples/booking/payment"
	"github.com/millrace-dev/millrace/examples/booking/show"
	"github.com/millrace-dev/millrace/examples/booking/views"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// Settings differ between programs.
type Settings struct {
	Layout          journal.Layout
	ExistingTables  bool // the tables must exist
	Bank            effects.Bank
	Post            effects.Post
	PaymentPatience time.Duration
	Subscriber      func(group string, c *subscriber.Config)
	Process         process.Config
	Backoff         subscriber.Backoff // for calls of the bank and the mail service
	Logger          watermill.LoggerAdapter
}

// App is one process of the service.
type App struct {
	*millrace.App
	shows    *repository.Repository[show.Show]
	payments *repository.Repository[payment.Payment]
	checkout *process.Manager[checkout.Checkout]
	views    *views.Views
}

// Prefix is the prefix of the names of tables.
const Prefix = "booking-"

// Open wires the tables and the handlers of commands and events. The caller serves the Routes, and
// runs the App.
func Open(ctx context.Context, client *dynamodb.Client, c Settings) (*App, error) {
	opened, err := millrace.Open(ctx, client, millrace.Config{
		Prefix: Prefix, Journal: journal.Config{Shards: 4, Layout: c.Layout}, ExistingTables: c.ExistingTables,
		Subscriber: c.Subscriber, Logger: c.Logger,
	})
	if err != nil {
		return nil, err
	}
	a := &App{App: opened, views: views.New(client, Prefix)}
	if err := a.CreateTables(ctx, a.views.Tables()...); err != nil {
		return nil, err
	}
	if a.shows, err = millrace.Repository(a.App, show.Definition, repository.Config{}); err != nil {
		return nil, err
	}
	if a.payments, err = millrace.Repository(a.App, payment.Definition, repository.Config{}); err != nil {
		return nil, err
	}
	a.checkout, err = millrace.Process(ctx, a.App, checkout.Define(c.PaymentPatience), c.Process, "show", "payment")
	if err != nil {
		return nil, err
	}
	if err := a.handleCommands(); err != nil {
		return nil, err
	}
	if _, err := a.Project(millrace.Group{Name: "seats", Topics: []string{"show"}}, a.views.Seats()...); err != nil {
		return nil, err
	}
	if _, err := a.Project(millrace.Group{Name: "bookings", Topics: []string{"show"}}, a.views.Bookings()...); err != nil {
		return nil, err
	}
	deferred := func(s *subscriber.Config) { s.Failures = subscriber.Defer(c.Backoff) }
	err = a.HandleEvents(millrace.Group{Name: "bank", Topics: []string{"payment"}, Subscriber: deferred}, effects.Payments(c.Bank, a.payments)...)
	if err != nil {
		return nil, err
	}
	return a, a.HandleEvents(millrace.Group{Name: "mails", Topics: []string{"show"}, Subscriber: deferred}, effects.Mails(c.Post)...)
}

// handleCommands executes the commands of checkouts.
func (a *App) handleCommands() error {
	return a.HandleCommands(
		command.Handler("request-payment", a.payments, (*checkout.RequestPayment).Route),
		command.Handler("cancel-payment", a.payments, (*checkout.CancelPayment).Route),
		command.Handler("book-seats", a.shows, (*checkout.BookSeats).Route),
		command.Handler("release-seats", a.shows, (*checkout.ReleaseSeats).Route),
	)
}

// Routes returns the routes of the HTTP server. A query waits for the writes of its client. Another
// process may run the groups of the views.
func (a *App) Routes() http.Handler {
	shows := consistency.Config{Topics: []string{"show"}}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /shows/{show}", a.schedule)
	mux.HandleFunc("POST /shows/{show}/bookings", a.hold)
	mux.Handle("GET /shows/{show}/seats", a.Consistent("seats", shows)(http.HandlerFunc(a.seats)))
	mux.Handle("GET /customers/{customer}/bookings", a.Consistent("bookings", shows)(http.HandlerFunc(a.bookings)))
	mux.Handle("GET /readyz", a.ReadyHandler())
	return mux
}
