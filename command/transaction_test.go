package command_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/cqrs"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/command"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// transfer is a command for two accounts.
type transfer struct {
	From, To string
	Amount   int
}

func transferOf(accounts *repository.Repository[account]) command.TransactionRoute[transfer] {
	return func(tx *repository.Transaction, c *transfer) func() error {
		from, to := accounts.AddTo(tx, c.From), accounts.AddTo(tx, c.To)
		return func() error {
			if from.State.Balance < c.Amount {
				return errTooMuch
			}
			from.Append(deposited{-c.Amount})
			to.Append(deposited{c.Amount})
			return nil
		}
	}
}

func deliver[C any](h cqrs.CommandHandler, msg *message.Message, c C) error {
	return h.Handle(cqrs.CtxWithOriginalMessage(msg.Context(), msg), &c)
}

func TestACommandForSeveralAggregatesTakesEffectOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	require.NoError(t, deliver(command.Handler("deposit", w.accounts, route), message.NewMessage("m0", nil), deposit{"a", 10}))
	h := command.TransactionHandler("transfer", transferOf(w.accounts))
	msg := message.NewMessage("m1", nil)
	msg.Metadata.Set(aggregate.CorrelationIDKey, "c")
	for range 2 {
		require.NoError(t, deliver(h, msg, transfer{"a", "b", 10}))
	}
	assert.Len(t, w.stored(t, "a"), 2)
	require.Len(t, w.stored(t, "b"), 1)
	assert.Equal(t, aggregate.Metadata{aggregate.CorrelationIDKey: "c", aggregate.CausationIDKey: "m1"}, w.stored(t, "b")[0].Metadata)

	var refused *repository.RefusedError
	h = command.TransactionHandler("transfer", transferOf(w.accounts), command.OnRefused(
		func(_ context.Context, c *transfer, r *repository.RefusedError) error {
			refused = r
			return nil
		}))
	require.NoError(t, deliver(h, message.NewMessage("m2", nil), transfer{"a", "b", 1}))
	require.ErrorIs(t, refused, errTooMuch)
	assert.Equal(t, aggregate.ID{Type: "account", Value: "a"}, refused.ID)
	require.NoError(t, deliver(h, message.NewMessage("m3", nil), transfer{"a", "a", 1}))
	require.ErrorAs(t, refused, new(*repository.SameParticipantError))
}

func TestACommandForSeveralAggregatesThatCannotBeExecutedIsNacked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	h := command.TransactionHandler("transfer", transferOf(w.accounts))
	require.ErrorIs(t, deliver(h, message.NewMessage("", nil), transfer{"a", "b", 1}), command.ErrNoID)
	require.ErrorAs(t, deliver(h, message.NewMessage("m", nil), transfer{"", "b", 1}), new(*aggregate.InvalidIDError))
	none := command.TransactionHandler("none", func(*repository.Transaction, *transfer) func() error { return nil })
	require.ErrorIs(t, deliver(none, message.NewMessage("m", nil), transfer{}), journal.ErrInvalidCommit)
	w.db.Inject(dynamotest.InternalError())
	require.ErrorIs(t, deliver(h, message.NewMessage("m", nil), transfer{"a", "b", 1}), journal.ErrUnavailable)
}

// Several processes receive each command more than once, while requests fail and replies are lost.
func TestUnderFaultsTransfersAreWholeAndTakeEffectOnce(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		for seed := range testdb.Seeds(6) {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				testdb.WithFakeTime(t, func(t *testing.T) { transferUnderFaults(t, layout, seed) })
			})
		}
	})
}

// transfers are the commands of a run, by their messages.
type transfers struct {
	commands map[string]transfer
	mu       sync.Mutex
	refused  map[string]bool
}

func transferUnderFaults(t *testing.T, layout journal.Layout, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test draws
	db := dynamotest.New(t, dynamotest.WithSeed(seed))
	w := world{db: db, journal: testjournal.New(t, db.Client(), journal.Config{Shards: 1, Layout: layout})}
	w.accounts = testjournal.Repository(t, w.journal, accounts, repository.Config{})
	ids := []string{"a", "b", "c"}
	for _, id := range ids {
		testjournal.Execute(t, w.accounts, id, (&deposit{id, 50}).decide)
	}
	all := &transfers{commands: map[string]transfer{}, refused: map[string]bool{}}
	var deliveries []string
	for n := range 12 {
		uuid := fmt.Sprint("m", n)
		from := random.IntN(len(ids))
		all.commands[uuid] = transfer{ids[from], ids[(from+1+random.IntN(2))%len(ids)], 1 + random.IntN(60)}
		deliveries = append(deliveries, uuid, uuid, uuid)
	}
	random.Shuffle(len(deliveries), func(i, k int) { deliveries[i], deliveries[k] = deliveries[k], deliveries[i] })
	calm := db.Storm(0.1)
	messages := make(chan string)
	var processes sync.WaitGroup
	for range 3 {
		j := testjournal.Open(t, db.Client(testdb.Once), journal.Config{RetryBudget: time.Second})
		h := all.handler(testjournal.Repository(t, j, accounts, repository.Config{Cache: 10 * random.IntN(2)}))
		processes.Add(1)
		go func() {
			defer processes.Done()
			for uuid := range messages {
				for deliver(h, message.NewMessage(uuid, nil), all.commands[uuid]) != nil {
					time.Sleep(time.Second) // as a subscriber does after a nack
				}
			}
		}()
	}
	for _, uuid := range deliveries {
		messages <- uuid
	}
	close(messages)
	processes.Wait()
	calm()

	events := all.effects(t, w, ids)
	require.NotEmpty(t, events)
	for uuid := range all.commands {
		assert.True(t, events[uuid] != nil || all.refused[uuid], uuid)
	}
	clear(all.refused)
	h := all.handler(w.accounts)
	for uuid := range events {
		require.NoError(t, deliver(h, message.NewMessage(uuid, nil), all.commands[uuid]))
	}
	assert.Empty(t, all.refused, "they were executed")
	assert.Equal(t, events, all.effects(t, w, ids))
}

func (all *transfers) handler(accounts *repository.Repository[account]) cqrs.CommandHandler {
	return command.TransactionHandler("transfer", transferOf(accounts), command.OnRefused(
		func(ctx context.Context, _ *transfer, _ *repository.RefusedError) error {
			all.mu.Lock()
			defer all.mu.Unlock()
			all.refused[cqrs.OriginalMessageFromCtx(ctx).UUID] = true
			return nil
		}))
}

// effects returns the amounts by command and account. They are those of the whole command. A
// command that was refused can be executed when it is delivered again.
func (all *transfers) effects(t *testing.T, w world, ids []string) map[string]map[string]int {
	t.Helper()
	events := map[string]map[string]int{}
	for _, id := range ids {
		balance := 0
		for _, r := range w.stored(t, id) {
			event, err := accounts.Decode(r.EventType, r.Payload)
			require.NoError(t, err)
			amount := event.(deposited).Amount //nolint:forcetypeassert // there is no other type
			balance += amount
			require.GreaterOrEqual(t, balance, 0)
			if uuid := r.Metadata.CausationID(); uuid != "" {
				if events[uuid] == nil {
					events[uuid] = map[string]int{}
				}
				events[uuid][id] += amount
			}
		}
	}
	for uuid, amounts := range events {
		c := all.commands[uuid]
		assert.Equal(t, map[string]int{c.From: -c.Amount, c.To: c.Amount}, amounts, uuid)
	}
	return events
}
