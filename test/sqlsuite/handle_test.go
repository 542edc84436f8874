package sqlsuite_test

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/subscriber"
)

var errNotYet = errors.New("cannot do this yet")

func (w *world) react(reactions ...sqlprojection.Reaction) message.NoPublishHandlerFunc {
	w.t.Helper()
	handle, err := w.store.React(reactions...)
	require.NoError(w.t, err)
	return handle
}

// epoch returns the epoch under which a position was claimed last.
func (w *world) epoch(id string) (epoch uint64) {
	w.t.Helper()
	require.NoError(w.t, w.db.QueryRowContext(w.t.Context(),
		w.text("SELECT epoch FROM "+sqlprojection.DefaultTable+" WHERE aggregate_id = ?"), id).Scan(&epoch))
	return epoch
}

func TestWatermillsRouterRunsAHandler(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
		require.NoError(t, err)
		sub, err := subscriber.NewSubscriber(w.config(w.j, w.store), nil)
		require.NoError(t, err)
		router.AddConsumerHandler("totals", topic, sub, w.store.Handle(func(ctx context.Context, tx *sql.Tx, msg *message.Message) error {
			id, number, _ := subscriber.AggregateFromContext(msg.Context())
			return w.note(ctx, tx, id.Value, number, len(msg.Payload))
		}))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- router.Run(ctx) }()
		w.write("x", 0, Deposited{2}, Deposited{3})
		eventually(t, "both take effect", func() bool { _, sum := w.effects("x"); return sum == 2*len(`{"Amount":2}`) })
		stop()
		require.NoError(t, <-done)
		position, _ := w.claim(group, x, 100)
		assert.EqualValues(t, 2, position)
	})
}

func TestEventsWithoutReactionArePassedAndStoredInTheSameTable(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		w.write("x", 0, Noted{}, Deposited{2}, Noted{}, Deposited{3}, Noted{})
		sub := w.consume(w.config(w.j, w.store), w.react(w.noting()))
		eventually(t, "all are acked", func() bool { return sub.Stats().Acked == 5 })
		require.NoError(t, sub.Close())

		position, found := w.claim(group, x, 100)
		assert.EqualValues(t, 5, position)
		assert.True(t, found)
		numbers, sum := w.effects("x")
		assert.Equal(t, []uint64{2, 4}, numbers)
		assert.Equal(t, 5, sum)
		assert.Equal(t, projection.Stats{Applied: 2, Ignored: 3}, w.store.Stats())
	})
}

func TestAnErrorOrPanicRollsBackAndBlocksItsAggregateAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		var healed atomic.Bool
		var attempts atomic.Int32
		handle := w.react(sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
			if err := w.note(ctx, tx, r.Aggregate.Value, r.Number, e.Amount); err != nil {
				return err
			}
			switch {
			case r.Aggregate.Value == "good" || healed.Load():
				return nil
			case attempts.Add(1)%2 == 0:
				panic(errNotYet)
			default:
				return errNotYet
			}
		}))
		w.write("bad", 0, Deposited{1}, Deposited{2})
		w.write("good", 0, Deposited{3})
		w.consume(w.config(w.j, w.store), handle)
		eventually(t, "the other aggregate goes on", func() bool { _, sum := w.effects("good"); return sum == 3 })
		eventually(t, "it is tried again", func() bool { return attempts.Load() > 4 })
		numbers, _ := w.effects("bad")
		assert.Empty(t, numbers)
		healed.Store(true)
		eventually(t, "it heals", func() bool { numbers, _ = w.effects("bad"); return len(numbers) == 2 })
		assert.Equal(t, upTo(2), numbers)
		eventually(t, "what failed is not counted", func() bool { return w.store.Stats() == projection.Stats{Applied: 3} })
	})
}

func TestAnErrorOfTheHandlerNamesItsEvent(t *testing.T) {
	t.Parallel()
	w := setup(t, newSQLite(t))
	w.write("x", 0, Deposited{1})
	_, messages := w.subscribe(w.config(w.j, w.store))
	err := w.store.Handle(func(context.Context, *sql.Tx, *message.Message) error { return errNotYet })(next(t, messages))
	require.ErrorIs(t, err, errNotYet)
	require.ErrorContains(t, err, "event 1 of account-x")
}

func TestALostReplyToACommitIsDetectedAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		lost := 0
		faults := &flaky{Connector: d.connect, losesReply: func() bool { lost++; return lost == 1 }}
		w.store = w.newStore(d.open(t, faults))
		w.write("x", 0, Deposited{1})
		_, messages := w.subscribe(w.config(w.j, w.store))
		ran := 0
		handle := w.react(sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
			ran++
			return w.note(ctx, tx, r.Aggregate.Value, r.Number, e.Amount)
		}))

		first := next(t, messages)
		require.ErrorIs(t, handle(first), errLost)
		first.Nack()
		again := next(t, messages)
		require.NoError(t, handle(again))
		again.Ack()

		assert.Equal(t, 1, ran)
		numbers, _ := w.effects("x")
		assert.Equal(t, upTo(1), numbers)
	})
}

func TestWhoHasLostTheShardIsRefusedBeforeTheFunctionRuns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		w.write("x", 0, Deposited{1})
		_, messages := w.subscribe(w.config(w.j, w.store))
		msg := next(t, messages)
		w.claim(group, x, w.epoch("x")+1)

		err := w.store.Handle(func(context.Context, *sql.Tx, *message.Message) error {
			t.Error("it ran")
			return nil
		})(msg)

		require.ErrorIs(t, err, subscriber.ErrFenced)
		position, found := w.claim(group, x, 100)
		assert.Zero(t, position)
		assert.False(t, found)
	})
}

func TestASuccessorWaitsForTheTransactionThatIsOpen(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		w.write("x", 0, Deposited{1})
		_, messages := w.subscribe(w.config(w.j, w.store))
		msg := next(t, messages)
		successor := w.epoch("x") + 1
		claimed := make(chan uint64, 1)

		err := w.store.Handle(func(ctx context.Context, tx *sql.Tx, _ *message.Message) error {
			go func() {
				position, _, err := w.store.Claim(t.Context(), group, x, successor)
				assert.NoError(t, err)
				claimed <- position
			}()
			eventually(t, "the successor asks", func() bool { return w.db.Stats().InUse == 2 })
			select {
			case <-claimed:
				t.Error("it did not wait")
			default:
			}
			return w.note(ctx, tx, "x", 1, 1)
		})(msg)

		require.NoError(t, err)
		assert.EqualValues(t, 1, <-claimed)
	})
}

func TestTheEndOfAMessageRollsBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		w.write("x", 0, Deposited{1})
		config := w.config(w.j, w.store)
		config.CloseTimeout = 1
		sub, messages := w.subscribe(config)
		msg := next(t, messages)

		err := w.store.Handle(func(ctx context.Context, tx *sql.Tx, _ *message.Message) error {
			if err := w.note(ctx, tx, "x", 1, 1); err != nil {
				return err
			}
			go sub.Close()
			<-ctx.Done()
			return nil
		})(msg)

		require.ErrorIs(t, err, context.Canceled)
		numbers, _ := w.effects("x")
		assert.Empty(t, numbers)
		position, _ := w.claim(group, x, 100)
		assert.Zero(t, position)
	})
}

func TestATransactionThatTheFunctionEndsIsNoSuccess(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		w.write("x", 0, Deposited{1})
		_, messages := w.subscribe(w.config(w.j, w.store))
		first := next(t, messages)
		err := w.store.Handle(func(_ context.Context, tx *sql.Tx, _ *message.Message) error { return tx.Rollback() })(first)
		require.ErrorIs(t, err, sql.ErrTxDone)
		first.Nack()
		require.NoError(t, w.react(w.noting())(next(t, messages)))
		numbers, _ := w.effects("x")
		assert.Equal(t, upTo(1), numbers)
	})
}

func TestAHandlerRefusesMessagesWithPositionsInAnotherStore(t *testing.T) {
	t.Parallel()
	w := setup(t, newSQLite(t))
	w.write("x", 0, Deposited{1})
	for name, positions := range map[string]subscriber.PositionStore{
		"in the journal's table": nil,
		"in another store":       w.newStore(w.db),
		"in one that cannot be compared": struct {
			subscriber.PositionStore
			_ map[string]int
		}{PositionStore: w.store},
	} {
		config := w.config(w.j, positions)
		config.ConsumerGroup = name
		_, messages := w.subscribe(config)
		msg := next(t, messages)
		require.ErrorIs(t, w.react(w.noting())(msg), subscriber.ErrNoPosition, name)
		if positions != nil {
			dynamo, err := projection.New(w.dynamo, projection.Config{}, projection.On(
				func(context.Context, Deposited, *journal.Record) ([]projection.Write, error) {
					return make([]projection.Write, 1), nil
				}))
			require.NoError(t, err)
			err = dynamo.Handle(msg)
			require.ErrorIs(t, err, subscriber.ErrNoPosition, name)
			require.ErrorContains(t, err, "leave it out, or use the handler of that store", name)
		}
	}
	foreign := message.NewMessage("id", nil)
	for _, handle := range []message.NoPublishHandlerFunc{
		w.react(w.noting()),
		w.store.Handle(func(context.Context, *sql.Tx, *message.Message) error { return nil }),
	} {
		require.ErrorIs(t, handle(foreign), subscriber.ErrNoPosition)
		require.ErrorIs(t, handle(nil), subscriber.ErrNoPosition)
	}
	numbers, _ := w.effects("x")
	assert.Empty(t, numbers)
}

func TestAnEventThatCannotBeDecodedNamesItself(t *testing.T) {
	t.Parallel()
	w := setup(t, newSQLite(t))
	testjournal.Append(t, w.j, storage.Commit{Aggregate: x, Events: []storage.Event{{Type: "deposited", Payload: []byte("{")}}})
	_, messages := w.subscribe(w.config(w.j, w.store))
	require.ErrorContains(t, w.react(w.noting())(next(t, messages)), "event 1 of account-x")
}

// PaidTwice is an old event that stands for two deposits.
type PaidTwice struct{ First, Second int }

func (PaidTwice) EventType() string { return "paid-twice" }

// deposit is Deposited as the aggregate defines it.
type deposit struct{ Deposited }

func (deposit) Apply(*struct{}) {}

func TestReactionsGetEventsOfOldTypesAsThoseOfToday(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, d database) {
		w := setup(t, d)
		accounts := aggregate.Define[struct{}](topic, deposit{}).WithUpcasters(
			aggregate.Split("paid-twice", func(old PaidTwice) ([]deposit, error) {
				return []deposit{{Deposited{old.First}}, {Deposited{old.Second}}}, nil
			}),
			aggregate.Drop("noted"),
		)
		config := sqlprojection.Config{Dialect: w.dialect, Definitions: []aggregate.AnyDefinition{accounts}}
		store, err := sqlprojection.New(w.db, config)
		require.NoError(t, err)
		w.store = store
		w.write("x", 0, PaidTwice{1, 2}, Noted{}, Deposited{4})
		sub := w.consume(w.config(w.j, w.store), w.react(w.noting()))
		eventually(t, "all are acked", func() bool { return sub.Stats().Acked == 3 })
		require.NoError(t, sub.Close())
		numbers, sum := w.effects("x")
		assert.Equal(t, []uint64{1, 1, 3}, numbers)
		assert.Equal(t, 7, sum)

		config.Definitions = []aggregate.AnyDefinition{accounts, accounts}
		_, err = sqlprojection.New(w.db, config)
		require.ErrorAs(t, err, new(*sqlprojection.ConfigError))
	})
}
