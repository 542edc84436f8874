// Command millrace-template serves orders.
//
//	go run .                       on a database in memory, which ends with the program
//	go run . -aws                  on DynamoDB, with the AWS configuration
//	go run . -aws -create-tables   creates the tables that are missing, and ends
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
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/millrace-dev/millrace/dynamotest"

	"github.com/millrace-dev/millrace/cmd/millrace/internal/scaffold/template/service"
)

var (
	address  = flag.String("http", "127.0.0.1:8080", "the `address` to serve on")
	patience = flag.Duration("patience", 15*time.Minute, "how long a customer has to pay")
	onAWS    = flag.Bool("aws", false, "use the DynamoDB of the AWS configuration; default: one in memory")
	create   = flag.Bool("create-tables", false, "create the tables that are missing, and end")
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		slog.Error("The service has failed", "err", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	client, err := connect(ctx)
	if err != nil {
		return err
	}
	app, err := service.Open(ctx, client, service.Settings{
		Patience:       *patience,
		ExistingTables: *onAWS && !*create,
		Logger:         watermill.NewSlogLogger(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))),
	})
	if err != nil || *create {
		return err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", app.Routes())
	mux.Handle("GET /readyz", app.ReadyHandler())
	if err := app.Serve(listener, &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}); err != nil {
		return err
	}
	fmt.Println("serving on http://" + listener.Addr().String())
	return app.Run(ctx) // until a signal comes; then it stops the server, and after it the handlers
}

func connect(ctx context.Context) (*dynamodb.Client, error) {
	if !*onAWS {
		return dynamotest.Open().Client(), nil
	}
	c, err := config.LoadDefaultConfig(ctx)
	return dynamodb.NewFromConfig(c), err
}
