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

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber"
)

// A program that runs its transactions with another library moves the position in them.
func ExampleStore_AdvanceIn() {
	ctx := context.Background()
	j := must(openJournal(ctx))
	p := must(publisher.NewPublisher(publisher.Config{Journal: j}, nil))
	deposited := message.NewMessage(watermill.NewUUID(), []byte(`{"Amount":100}`))
	deposited.Metadata.Set(publisher.AggregateIDKey, "alice")
	deposited.Metadata.Set(publisher.NameKey, "deposited")
	check(p.Publish("account", deposited))
	check(p.Close())
	dir := must(os.MkdirTemp("", "totals"))
	defer os.RemoveAll(dir)
	db := must(sql.Open("sqlite", "file:"+filepath.Join(dir, "totals.db")))
	defer db.Close()
	store := must(sqlprojection.New(db, sqlprojection.Config{Dialect: sqlprojection.SQLite}))
	check(store.CreateTable(ctx))
	// as an ORM does, for example
	inTransaction := func(ctx context.Context, run func(*sql.Tx) error) error {
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
	if err := journal.Create(ctx, client, journal.Config{Layout: journal.Packed, Shards: 2}); err != nil {
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
