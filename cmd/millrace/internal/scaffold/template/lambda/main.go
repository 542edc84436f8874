// Command millrace-template serves orders. On AWS Lambda it is two functions, which the variable
// FUNCTION selects:
//
//   - "events", the default, handles events. The stream of the journal table and a schedule invoke
//     it.
//   - "http" answers HTTP requests. It has a function URL with the invoke mode RESPONSE_STREAM.
//
// On another machine:
//
//	go run .                 on a database in memory, which ends with the program
//	go run . -create-tables  creates the tables that are missing on AWS, and ends
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdaurl"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/awslambda"
	"github.com/millrace-dev/millrace/dynamotest"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold/template/service"
)

var (
	address = flag.String("http", "127.0.0.1:8080", "the `address` to serve on")
	create  = flag.Bool("create-tables", false, "create the tables that are missing on AWS, and end")

	logger = watermill.NewSlogLogger(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
)

// patience is how long a customer has to pay.
const patience = 15 * time.Minute

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	run := serve
	switch {
	case os.Getenv("AWS_LAMBDA_RUNTIME_API") != "":
		run = function
	case *create:
		run = createTables
	}
	err := run(ctx)
	stop()
	if err != nil {
		slog.Error("The service has failed", "err", err)
		os.Exit(1)
	}
}

// function handles the invocations of a function. It does not return unless it cannot start.
func function(ctx context.Context) error {
	app, err := open(ctx, true)
	if err != nil {
		return err
	}
	switch name := os.Getenv("FUNCTION"); name {
	case "http":
		lambdaurl.Start(app.Routes())
	case "", "events":
		events, err := awslambda.New(awslambda.Config{Journal: app.Journal(), CatchUp: app.CatchUp}, logger)
		if err != nil {
			return err
		}
		lambda.Start(events)
	default:
		return fmt.Errorf("FUNCTION is %q: want events or http", name)
	}
	return nil
}

func createTables(ctx context.Context) error {
	_, err := open(ctx, false)
	return err
}

func open(ctx context.Context, existingTables bool) (*service.App, error) {
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	return service.Open(ctx, dynamodb.NewFromConfig(c), service.Settings{
		Patience: patience, ExistingTables: existingTables, Logger: logger,
	})
}

// serve runs the whole service in this process, on a database in memory.
func serve(ctx context.Context) error {
	app, err := service.Open(ctx, dynamotest.Open().Client(), service.Settings{Patience: patience, Logger: logger})
	if err != nil {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *address)
	if err != nil {
		return err
	}
	if err := app.Serve(listener, &http.Server{Handler: app.Routes(), ReadHeaderTimeout: 10 * time.Second}); err != nil {
		return err
	}
	fmt.Println("serving on http://" + listener.Addr().String())
	return app.Run(ctx)
}
