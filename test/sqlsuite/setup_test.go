package sqlsuite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/subscriber"
)

const (
	patience = 2 * time.Minute
	topic    = "account"
)

// Deposited adds its amount, so that a lost or repeated effect is visible.
type Deposited struct{ Amount int }

func (Deposited) EventType() string { return "deposited" }

// Noted has no reaction.
type Noted struct{}

func (Noted) EventType() string { return "noted" }

type event interface{ EventType() string }

type world struct {
	database
	t      *testing.T
	client journal.Client
	dynamo *dynamodb.Client
	j      *journal.Journal
	db     *sql.DB
	store  *sqlprojection.Store
}

// setup creates a journal, a table of positions, and a read model: one line for each effect,
// numbered in their order.
func setup(t *testing.T, d database) *world {
	t.Helper()
	w := &world{database: d, t: t, dynamo: testdb.Client(t), db: d.open(t, d.connect)}
	w.client = w.dynamo
	require.NoError(t, journal.Create(t.Context(), w.client, journal.Config{Layout: journal.Classic, Shards: 2}))
	w.j = w.journal(w.client)
	number := map[sqlprojection.Dialect]string{
		sqlprojection.SQLite: "INTEGER PRIMARY KEY AUTOINCREMENT", sqlprojection.PostgreSQL: "BIGSERIAL PRIMARY KEY",
		sqlprojection.MySQL: "BIGINT AUTO_INCREMENT PRIMARY KEY",
	}[d.dialect]
	_, err := w.db.ExecContext(t.Context(), "CREATE TABLE effects (line "+number+", id TEXT, number BIGINT, amount BIGINT)")
	require.NoError(t, err)
	w.store = w.newStore(w.db)
	require.NoError(t, w.store.CreateTable(t.Context()))
	return w
}

func (w *world) newStore(db *sql.DB) *sqlprojection.Store {
	w.t.Helper()
	store, err := sqlprojection.New(db, sqlprojection.Config{Dialect: w.dialect})
	require.NoError(w.t, err)
	return store
}

func (w *world) journal(client journal.Client) *journal.Journal {
	w.t.Helper()
	return testjournal.Open(w.t, client, journal.Config{})
}

func account(id string) aggregate.ID { return aggregate.ID{Type: topic, Value: id} }

// write appends events to an aggregate that has had events so far.
func (w *world) write(id string, after int, events ...event) {
	w.t.Helper()
	commit := storage.Commit{Aggregate: account(id), Expected: uint64(after)}
	for _, e := range events {
		payload, err := json.Marshal(e)
		require.NoError(w.t, err)
		commit.Events = append(commit.Events, storage.Event{Type: e.EventType(), Payload: payload})
	}
	testjournal.Append(w.t, w.j, commit)
}

// note is an effect that is not idempotent.
func (w *world) note(ctx context.Context, tx *sql.Tx, id string, number uint64, amount int) error {
	_, err := tx.ExecContext(ctx, w.text("INSERT INTO effects (id, number, amount) VALUES (?, ?, ?)"), id, int64(number), amount)
	return err
}

// noting reacts to deposits with a line.
func (w *world) noting() sqlprojection.Reaction {
	return sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
		return w.note(ctx, tx, r.Aggregate.Value, r.Number, e.Amount)
	})
}

// effects returns the numbers of the events of an aggregate that took effect, in their order, and
// the sum of the amounts.
func (w *world) effects(id string) (numbers []uint64, sum int) {
	w.t.Helper()
	rows, err := w.db.QueryContext(context.Background(), w.text("SELECT number, amount FROM effects WHERE id = ? ORDER BY line"), id)
	require.NoError(w.t, err)
	defer rows.Close()
	for rows.Next() {
		var number uint64
		var amount int
		require.NoError(w.t, rows.Scan(&number, &amount))
		numbers, sum = append(numbers, number), sum+amount
	}
	require.NoError(w.t, rows.Err())
	return numbers, sum
}

func (w *world) config(j *journal.Journal, store subscriber.PositionStore) subscriber.Config {
	return subscriber.Config{
		Journal: j, ConsumerGroup: "totals", Positions: store,
		Timing:          subscriber.Timing{PollInterval: 5 * time.Millisecond, MaxPollInterval: 50 * time.Millisecond, CommitInterval: 20 * time.Millisecond},
		NackResendSleep: time.Millisecond, MaxNackResendSleep: time.Millisecond, CloseTimeout: time.Second,
	}
}

// subscribe returns a member of the group.
func (w *world) subscribe(config subscriber.Config) (*subscriber.Subscriber, <-chan *message.Message) {
	w.t.Helper()
	sub, err := subscriber.NewSubscriber(config, nil)
	require.NoError(w.t, err)
	messages, err := sub.Subscribe(w.t.Context(), topic)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, sub.Close()) })
	return sub, messages
}

// consume handles the messages of a member as the Router does: each message in its own goroutine,
// acked unless handle fails or panics.
func (w *world) consume(config subscriber.Config, handle message.NoPublishHandlerFunc) *subscriber.Subscriber {
	w.t.Helper()
	var handlers sync.WaitGroup
	w.t.Cleanup(handlers.Wait) // after the subscriber is closed
	sub, messages := w.subscribe(config)
	handlers.Add(1)
	go func() {
		defer handlers.Done()
		for msg := range messages {
			handlers.Add(1)
			go func() {
				defer handlers.Done()
				defer func() {
					if recover() != nil {
						msg.Nack()
					}
				}()
				if handle(msg) == nil {
					msg.Ack()
				} else {
					msg.Nack()
				}
			}()
		}
	}()
	return sub
}

// next returns the next message.
func next(t *testing.T, messages <-chan *message.Message) *message.Message {
	t.Helper()
	return await.Receive(t, messages, "a message")
}

var eventually = await.True

// upTo returns 1 to n.
func upTo(n int) (numbers []uint64) {
	for number := range n {
		numbers = append(numbers, uint64(number+1))
	}
	return numbers
}
