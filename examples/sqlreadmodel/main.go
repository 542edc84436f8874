// Command sqlreadmodel keeps a read model in an SQL database, here an SQLite in the process. It is
// a table of balances in which each event counts once, even if its message is delivered again. A
// query waits until it includes the client's last write.
//
//	go run ./examples/sqlreadmodel
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	_ "modernc.org/sqlite" // the program chooses the driver

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

type Account struct{ Balance int }

type Events = aggregate.Events[Account]

type Deposited struct{ Amount int }

func (Deposited) EventType() string  { return "account.deposited.v1" }
func (e Deposited) Apply(a *Account) { a.Balance += e.Amount }

var Accounts = aggregate.Define[Account]("account", Deposited{})

func Deposit(amounts ...int) aggregate.Decision[Account] {
	return func(Account) (events Events, err error) {
		for _, amount := range amounts {
			events = append(events, Deposited{amount})
		}
		return events, nil
	}
}

func main() {
	ctx := context.Background()
	client := must(dynamo.Client(ctx))
	// creates the tables if they are missing
	check(journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 4}))
	j := must(journal.Open(ctx, client, journal.Config{}))
	accounts := must(repository.New(j, Accounts, repository.Config{}))
	anna := must(accounts.Execute(ctx, uuid.NewString(), Deposit(100, 20)))
	berta := must(accounts.Execute(ctx, uuid.NewString(), Deposit(7)))

	dir := must(os.MkdirTemp("", "sqlreadmodel"))
	defer os.RemoveAll(dir)
	db := must(sql.Open("sqlite", "file:"+filepath.Join(dir, "balances.db")+"?_pragma=busy_timeout(10000)"))
	defer db.Close()
	must(db.ExecContext(ctx, "CREATE TABLE balances (account TEXT PRIMARY KEY, balance INTEGER NOT NULL)"))

	// The positions of the group are in a table beside the read model, and move in the transaction
	// that changes it.
	store := must(sqlprojection.New(db, sqlprojection.Config{Dialect: sqlprojection.SQLite}))
	check(store.CreateTable(ctx))
	balances := must(store.React(
		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO balances (account, balance) VALUES (?, ?)
				ON CONFLICT (account) DO UPDATE SET balance = balance + excluded.balance`, r.Aggregate.Value, e.Amount)
			return err
		}),
	))

	group := filepath.Base(dir)
	sub := must(subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: group, Positions: store}, nil))
	router := must(message.NewRouter(message.RouterConfig{}, watermill.NopLogger{}))
	var done sync.WaitGroup
	done.Add(2)
	failed := false
	router.AddConsumerHandler("balances", Accounts.Type(), sub, func(msg *message.Message) error {
		if err := balances(msg); err != nil {
			return err
		}
		switch id, number, _ := subscriber.AggregateFromContext(msg.Context()); {
		case id == berta.ID && !failed:
			failed = true
			// The message is delivered again, and counts once.
			return errors.New("after the commit")
		case id == anna.ID && number == anna.Version, id == berta.ID && number == berta.Version:
			done.Done()
		}
		return nil
	})
	ended := make(chan error, 1)
	go func() { ended <- router.Run(ctx) }()
	done.Wait()

	balance := func(id aggregate.ID) (n int) {
		check(db.QueryRowContext(ctx, "SELECT balance FROM balances WHERE account = ?", id.Value).Scan(&n))
		return n
	}
	fmt.Println("anna has", balance(anna.ID), "and berta", balance(berta.ID))

	now := must(accounts.Execute(ctx, berta.ID.Value, Deposit(5)))
	waiting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	check(groups.New(j, groups.WithPositions(store)).WaitApplied(waiting, group, now.ID, now.Version))
	fmt.Println("berta reads that she has", balance(berta.ID))

	check(router.Close())
	check(<-ended)
}

func must[T any](v T, err error) T { check(err); return v }

func check(err error) {
	if err != nil {
		log.Fatalln("sqlreadmodel:", err)
	}
}
