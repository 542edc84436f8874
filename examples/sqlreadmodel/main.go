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
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	_ "modernc.org/sqlite" // the program chooses the driver

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/examples/internal/dynamo"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/repository"
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
	app := must(millrace.Open(ctx, client, millrace.Config{
		Journal: journal.Config{Layout: journal.Packed, Shards: 4}, Middleware: []message.HandlerMiddleware{failOnce},
	}))
	accounts := must(millrace.Repository(app, Accounts, repository.Config{}))

	dir := must(os.MkdirTemp("", "sqlreadmodel"))
	defer os.RemoveAll(dir)
	db := must(sql.Open("sqlite", "file:"+filepath.Join(dir, "balances.db")+"?_pragma=busy_timeout(10000)"))
	defer db.Close()
	must(db.ExecContext(ctx, "CREATE TABLE balances (account TEXT PRIMARY KEY, balance INTEGER NOT NULL)"))

	// The positions of the group are in a table beside the read model, and move in the transaction
	// that changes it.
	store := must(sqlprojection.New(db, sqlprojection.Config{Dialect: sqlprojection.SQLite}))
	check(store.CreateTable(ctx))
	group := filepath.Base(dir)
	check(app.ProjectSQL(millrace.Group{Name: group, Topics: []string{Accounts.Type()}}, store,
		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO balances (account, balance) VALUES (?, ?)
				ON CONFLICT (account) DO UPDATE SET balance = balance + excluded.balance`, r.Aggregate.Value, e.Amount)
			return err
		}),
	))
	stop := must(app.Start(ctx))

	waiting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	// balance returns a balance that includes what the client has written.
	balance := func(written repository.Aggregate[Account]) (n int) {
		check(app.Groups().WaitApplied(waiting, group, written.ID, written.Version))
		check(db.QueryRowContext(ctx, "SELECT balance FROM balances WHERE account = ?", written.ID.Value).Scan(&n))
		return n
	}
	anna := must(accounts.Execute(ctx, uuid.NewString(), Deposit(100, 20)))
	berta := must(accounts.Execute(ctx, uuid.NewString(), Deposit(7)))
	fmt.Println("anna has", balance(anna), "and berta", balance(berta))
	berta = must(accounts.Execute(ctx, berta.ID.Value, Deposit(5)))
	fmt.Println("berta reads that she has", balance(berta))
	check(stop())
}

// failOnce fails after the first event was applied. So its message is delivered again, and counts
// once.
func failOnce(next message.HandlerFunc) message.HandlerFunc {
	var failed atomic.Bool
	return func(msg *message.Message) ([]*message.Message, error) {
		produced, err := next(msg)
		if err == nil && !failed.Swap(true) {
			err = errors.New("after the commit")
		}
		return produced, err
	}
}

func must[T any](v T, err error) T { check(err); return v }

func check(err error) {
	if err != nil {
		log.Fatalln("sqlreadmodel:", err)
	}
}
