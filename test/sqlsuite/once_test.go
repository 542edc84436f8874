package sqlsuite_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection/sqlprojection"
	"github.com/millrace-dev/millrace/subscriber"
)

// participant is a member of the group with its own connections.
type participant struct {
	*subscriber.Subscriber
	dynamo *dynamotest.Proxy
	sql    *flaky
}

// join starts a member that counts the effects of its handler. Its connections lose requests and
// replies, and its handler fails before, in and after the transaction.
func (w *world) join(seed uint64, done *atomic.Int64) *participant {
	w.t.Helper()
	p := &participant{
		dynamo: dynamotest.NewProxy(w.t, w.dynamo),
		sql:    &flaky{Connector: w.connect, random: rand.New(rand.NewPCG(seed, 1)), oneIn: 12},
	}
	store := w.newStore(w.open(w.t, p.sql))
	chance := &flaky{random: rand.New(rand.NewPCG(seed, 2)), oneIn: 12}
	handle, err := store.React(sqlprojection.On(func(ctx context.Context, tx *sql.Tx, e Deposited, r *journal.Record) error {
		if err := w.note(ctx, tx, r.Aggregate.Value, r.Number, e.Amount); err != nil {
			return err
		}
		if chance.lost() != nil {
			panic("the handler crashes before the commit")
		}
		return chance.lost()
	}))
	require.NoError(w.t, err)
	config := w.config(w.journal(p.dynamo.Client(testdb.Once)), store)
	config.Timing.LeaseDuration = time.Second
	p.Subscriber = w.consume(config, func(msg *message.Message) error {
		if err := handle(msg); err != nil {
			return err
		}
		done.Add(1)
		return chance.lost() // after the commit
	})
	return p
}

// cutOff cuts the connection of a member to DynamoDB, so that its heartbeats fail. Its SQL
// continues.
func (p *participant) cutOff() {
	p.dynamo.Inject(dynamotest.CutConnection(), dynamotest.On("UpdateItem", "PutItem", "DeleteItem", "TransactWriteItems"))
}

// Members join and leave: in each round two share the work, one closes or is cut off, and the other
// takes over.
func TestEachEventTakesEffectOnceWhateverFails(t *testing.T) {
	t.Parallel()
	const rounds, aggregates, perRound = 4, 5, 4
	onEach(t, func(t *testing.T, d database) {
		for _, seed := range []uint64{1, 2, 3} {
			t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
				t.Parallel()
				w := setup(t, d.another(t))
				random := rand.New(rand.NewPCG(seed, 0))
				want := map[string]int{}
				var done atomic.Int64
				old := w.join(random.Uint64(), &done)
				for round := range rounds {
					young := w.join(random.Uint64(), &done)
					some := done.Load() + 1 + random.Int64N(10)
					for i := range aggregates * perRound {
						id, amount := fmt.Sprint("a", i%aggregates), 1+random.IntN(9)
						w.write(id, 2*(round*perRound+i/aggregates), Noted{}, Deposited{amount})
						want[id] += amount
					}
					if random.IntN(2) == 0 {
						eventually(t, "both have shards", func() bool { return len(old.Shards()) == 1 && len(young.Shards()) == 1 })
					}
					eventually(t, "something is done", func() bool { return done.Load() >= some })
					if random.IntN(2) == 0 {
						old.cutOff()
					} else {
						require.NoError(t, old.Close())
					}
					old = young
				}
				old.sql.heal()
				for id, total := range want {
					eventually(t, "all of "+id+" takes effect", func() bool { _, sum := w.effects(id); return sum >= total })
					numbers, sum := w.effects(id)
					assert.Equal(t, total, sum, id)
					var deposits []uint64
					for n := range rounds * perRound {
						deposits = append(deposits, uint64(2*n+2))
					}
					assert.Equal(t, deposits, numbers, "of %s, once and in order", id)
				}
			})
		}
	})
}
