package sqlsuite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/subscriber"
)

// A table of totals follows the deposits of all accounts, each counted once.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	j := must(openJournal(ctx))
	pay := func(account string, payloads ...string) {
		commit := journal.Commit{Aggregate: aggregate.ID{Type: "account", Value: account}}
		for _, payload := range payloads {
			commit.Events = append(commit.Events, journal.Event{Type: "deposited", Payload: []byte(payload)})
		}
		must(j.Append(ctx, commit))
	}
	pay("alice", `{"Amount":100}`, `{"Amount":20}`)
	pay("bob", `{"Amount":7}`)

	dir := must(os.MkdirTemp("", "totals"))
	defer os.RemoveAll(dir)
	db := must(sql.Open("sqlite", "file:"+filepath.Join(dir, "totals.db")+"?_pragma=busy_timeout(10000)"))
	defer db.Close()
	must(db.ExecContext(ctx, "CREATE TABLE totals (account TEXT PRIMARY KEY, total INTEGER NOT NULL)"))

	// The positions are in a table beside it.
	store := must(sqlprojection.New(db, sqlprojection.Config{Dialect: sqlprojection.SQLite}))
	check(store.EnsureTable(ctx))
	totals := must(store.React(
		sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO totals (account, total) VALUES (?, ?)
				ON CONFLICT (account) DO UPDATE SET total = total + excluded.total`, r.Aggregate.Value, e.Amount)
			return err
		}),
	))

	sub := must(subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "totals", Positions: store}, nil))
	router := must(message.NewRouter(message.RouterConfig{}, watermill.NopLogger{}))
	handled := make(chan struct{}, 10)
	router.AddConsumerHandler("totals", "account", sub, func(msg *message.Message) error {
		err := totals(msg)
		handled <- struct{}{}
		return err
	})
	ended := make(chan error)
	go func() { ended <- router.Run(ctx) }()
	for range 3 {
		<-handled
	}
	stop()
	check(<-ended)

	rows := must(db.Query("SELECT account, total FROM totals ORDER BY account"))
	defer rows.Close()
	for rows.Next() {
		var account string
		var total int
		check(rows.Scan(&account, &total))
		fmt.Println(account, total)
	}

	// Output:
	// alice 120
	// bob 7
}

// Whoever has a way of their own to run transactions moves the position in it.
func ExampleStore_AdvanceIn() {
	ctx := context.Background()
	j := must(openJournal(ctx))
	must(j.Append(ctx, journal.Commit{
		Aggregate: aggregate.ID{Type: "account", Value: "alice"},
		Events:    []journal.Event{{Type: "deposited", Payload: []byte(`{"Amount":100}`)}},
	}))
	dir := must(os.MkdirTemp("", "totals"))
	defer os.RemoveAll(dir)
	db := must(sql.Open("sqlite", "file:"+filepath.Join(dir, "totals.db")))
	defer db.Close()
	store := must(sqlprojection.New(db, sqlprojection.Config{Dialect: sqlprojection.SQLite}))
	check(store.EnsureTable(ctx))
	inTransaction := func(ctx context.Context, run func(*sql.Tx) error) error { // that of an ORM, say
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := run(tx); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	}

	handle := func(msg *message.Message) error {
		position, ok := subscriber.PositionFromContext(msg.Context())
		if !ok {
			return subscriber.ErrNoPosition
		}
		return position.CommitIn(msg.Context(), store, func(ctx context.Context, advance subscriber.Advance) error {
			return inTransaction(ctx, func(tx *sql.Tx) error {
				if err := store.AdvanceIn(ctx, tx, advance); err != nil {
					return err
				}
				fmt.Println("the effects of", string(msg.Payload))
				return nil
			})
		})
	}

	sub := must(subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "totals", Positions: store}, nil))
	defer sub.Close()
	messages := must(sub.Subscribe(ctx, "account"))
	msg := <-messages
	check(handle(msg))
	msg.Nack() // by mistake
	again := <-messages
	fmt.Println(handle(again)) // the effects are there already
	again.Ack()

	// Output:
	// the effects of {"Amount":100}
	// <nil>
}

func openJournal(ctx context.Context) (*journal.Journal, error) {
	client := dynamotest.Open().Client()
	if err := journal.Create(ctx, client, journal.Config{Shards: 2}); err != nil {
		return nil, err
	}
	return journal.Open(ctx, client, journal.Config{})
}

func must[T any](v T, err error) T { check(err); return v }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
