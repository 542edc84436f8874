package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	watermillsql "github.com/ThreeDotsLabs/watermill-sql/v3/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/test/internal/postgres"
)

// versusSQL measures a new group that reads 20,000 events, up to the last ack. It is compared with
// Watermill's SQL Pub/Sub on PostgreSQL with as many messages of the same payload. Both have their
// default settings. The result is only for information: one stream whose messages are handled one
// by one is not 100 aggregates handled concurrently, and DynamoDB Local is not DynamoDB.
func (b *bench) versusSQL(ctx context.Context) (err error) {
	const name, aggregates, each = "versus-sql", 100, 200
	pg, err := postgres.Start(ctx)
	if errors.Is(err, postgres.ErrNone) {
		fmt.Printf("# %s: left out, %v\n", name, err)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pg.Stop()) }()
	theirs := sqlTopic{db: pg.DB, name: name}
	if err := theirs.fill(aggregates*each, each); err != nil {
		return err
	}
	repo, err := repository.New(b.j, define(name), repository.Config{Snapshots: repository.Never, IgnoreSnapshots: true})
	if err != nil {
		return err
	}
	if err := fillAll(ctx, repo, aggregates, each); err != nil {
		return err
	}
	return alternate(name, max(1, b.many/4), speed,
		func(int) (time.Duration, error) { return theirs.read(ctx, aggregates*each) },
		func(int) (time.Duration, error) {
			r, err := b.read(ctx, name, aggregates*each, nil)
			return r.acked, err
		},
	)
}

// sqlTopic is a topic of Watermill's SQL Pub/Sub.
type sqlTopic struct {
	db   *sql.DB
	name string
}

func (t sqlTopic) fill(n, batch int) error {
	publisher, err := watermillsql.NewPublisher(t.db, watermillsql.PublisherConfig{
		SchemaAdapter: watermillsql.DefaultPostgreSQLSchema{}, AutoInitializeSchema: true,
	}, watermill.NopLogger{})
	if err != nil {
		return err
	}
	defer func() { _ = publisher.Close() }()
	payload, err := json.Marshal(events(1, eventBytes)[0])
	for n > 0 && err == nil {
		messages := make([]*message.Message, min(n, batch))
		for i := range messages {
			messages[i] = message.NewMessage(watermill.NewUUID(), payload)
			messages[i].Metadata.Set("name", deposited{}.EventType())
		}
		err = publisher.Publish(t.name, messages...)
		n -= len(messages)
	}
	return err
}

// read acks n messages as a new group.
func (t sqlTopic) read(ctx context.Context, n int) (time.Duration, error) {
	sub, err := watermillsql.NewSubscriber(t.db, watermillsql.SubscriberConfig{
		ConsumerGroup: watermill.NewShortUUID(), InitializeSchema: true,
		SchemaAdapter: watermillsql.DefaultPostgreSQLSchema{}, OffsetsAdapter: watermillsql.DefaultPostgreSQLOffsetsAdapter{},
	}, watermill.NopLogger{})
	if err != nil {
		return 0, err
	}
	took, err := timed(func() error {
		messages, err := sub.Subscribe(ctx, t.name)
		for i := 0; i < n && err == nil; i++ {
			if msg := <-messages; msg == nil || !msg.Ack() {
				err = errRefused
			}
		}
		return err
	})
	return took, errors.Join(err, sub.Close())
}
