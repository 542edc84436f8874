// Command operators serves the console of an application.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/ThreeDotsLabs/watermill"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

type (
	Account   struct{ Balance int }
	Deposited struct{ Amount int }
)

func (Deposited) EventType() string  { return "account.deposited.v1" }
func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }

var Accounts = aggregate.Define[Account]("account", Deposited{})

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	listener, err := net.Listen("tcp", "127.0.0.1:8080")
	if err == nil {
		err = run(ctx, listener)
	}
	stop()
	if err != nil {
		log.Fatalln("operators:", err)
	}
}

func run(ctx context.Context, listener net.Listener) error {
	db := dynamotest.Open() // on AWS: dynamodb.NewFromConfig
	defer db.Close()
	logger := watermill.NewStdLogger(false, false)
	app, err := millrace.Open(ctx, db.Client(), millrace.Config{Journal: journal.Config{Layout: journal.Packed, Shards: 4}, Logger: logger})
	if err != nil {
		return err
	}
	accounts, err := millrace.Repository(app, Accounts, repository.Config{})
	if err != nil {
		return err
	}
	operators, err := console.New(console.Config{App: app, Logger: logger})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/console/", operators)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	server.RegisterOnShutdown(operators.Close) // ends the live tails
	if err := app.Serve(listener, server); err != nil {
		return err
	}
	deposit := func(Account) (aggregate.Events[Account], error) {
		return aggregate.Events[Account]{Deposited{100}}, nil
	}
	if _, err := accounts.Execute(ctx, "alice", deposit); err != nil {
		return err
	}
	fmt.Printf("http://%s/console/\n", listener.Addr())
	return app.Run(ctx) // until it is interrupted
}
