// Package lambda runs the handlers of a shop in AWS Lambda.
package lambda

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/awslambda"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/consistency"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/test/docs/howto/shop"
)

// Main is the main function of the program.
func Main() {
	ctx, logger := context.Background(), watermill.NewSlogLogger(nil)
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatalln(err)
	}
	function, err := Open(ctx, dynamodb.NewFromConfig(cfg), logger)
	if err != nil {
		log.Fatalln(err) // Lambda starts the program again
	}
	lambda.Start(function)
}

// ShipOrder is a command that comes by a queue.
type ShipOrder struct{ Order string }

// Open opens the App, adds everything to it, and returns the function.
func Open(ctx context.Context, client journal.Client, logger watermill.LoggerAdapter) (*awslambda.Function, error) {
	app, err := millrace.Open(ctx, client, millrace.Config{Prefix: "shop-", ExistingTables: true, Logger: logger})
	if err != nil {
		return nil, err
	}
	orders, err := millrace.Repository(app, shop.Orders, repository.Config{})
	if err != nil {
		return nil, err
	}
	err = app.HandleEvents(millrace.Group{Name: "mails", Topics: []string{"order"}},
		cqrs.NewGroupEventHandler(func(_ context.Context, e *shop.Shipped) error {
			fmt.Println("a mail to", e.Customer)
			return nil
		}))
	if err != nil {
		return nil, err
	}
	commands, err := command.Dispatch(app.Marshaler(), command.Handler("ship", orders,
		func(c *ShipOrder) (string, aggregate.Decision[shop.Order]) { return c.Order, shop.Ship }))
	if err != nil {
		return nil, err
	}
	return awslambda.New(awslambda.Config{
		Journal: app.Journal(), CatchUp: app.CatchUp, Commands: commands, Wakeups: app.Wakeups(),
	}, logger)
}

// Consistent returns a middleware for queries of a group. A query with a consistency token handles
// the events that the token names, if no one else has.
func Consistent(app *millrace.App, group string) func(http.Handler) http.Handler {
	return consistency.Middleware(func(ctx context.Context, token aggregate.Token) error {
		var hints []subscriber.Hint
		for _, v := range token {
			hints = append(hints, subscriber.Hint{Aggregate: v.ID, Version: v.Version})
		}
		if _, err := app.CatchUp(ctx, hints...); err != nil {
			return err
		}
		return app.Groups().WaitToken(ctx, group, token) // another burst may do it
	}, consistency.Config{Timeout: 5 * time.Second})
}
