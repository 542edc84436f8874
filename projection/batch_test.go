package projection_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

// newTotals returns a projection that writes the total of each run.
func newTotals(t *testing.T, client projection.Client, config projection.Config) *projection.Projection {
	t.Helper()
	p, err := projection.NewBatch(client, config,
		func(_ context.Context, sum int, run projection.Run) ([]projection.Write, error) {
			return []projection.Write{projection.Update(add(run.Aggregate.Value, sum))}, nil
		},
		projection.Fold(func(sum *int, e Deposited, _ *journal.Record) error { *sum += e.Amount; return nil }),
	)
	require.NoError(t, err)
	return p
}

// counting counts transactions.
type counting struct {
	*dynamodb.Client
	transactions atomic.Int32
}

func (c *counting) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.transactions.Add(1)
	return c.Client.TransactWriteItems(ctx, in, o...)
}

func deposits(n int) (events []event) {
	for i := range n {
		events = append(events, Deposited{i + 1})
	}
	return events
}

func TestARunOfEventsIsOneTransaction(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, deposits(90)...)
	w.write("y", 0, Noted{}, Deposited{1}, Noted{}, Noted{}, Deposited{2})
	client := &counting{Client: w.client}
	p := newTotals(t, client, projection.Config{MaxRun: 30})
	sub := w.consume(subscriber.Config{}, p.Handle)
	eventually(t, "all count", func() bool { return w.total("x") == 90*91/2 && w.total("y") == 3 })
	require.NoError(t, sub.Close())
	assert.Less(t, client.transactions.Load(), int32(10), "three runs of 30 at most, and one behind an event that is passed over, or a few more where the index lags")
	assert.Equal(t, projection.Stats{Applied: 92, Ignored: 1 + 2}, p.Stats())

	w.write("x", 90, Deposited{5})
	again := newTotals(t, w.client, projection.Config{})
	w.consume(subscriber.Config{}, again.Handle)
	eventually(t, "what is new counts", func() bool { return w.total("x") == 90*91/2+5 })
	eventually(t, "it is counted, after the transaction", func() bool { return again.Stats().Applied == 1 })
}

func TestRunsLeaveOutTypesThatWereNotAskedFor(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, Deposited{1}, Noted{}, Deposited{2}, Noted{})
	client := &counting{Client: w.client}
	p := newTotals(t, client, projection.Config{})
	sub := w.consume(subscriber.Config{EventTypes: []string{"deposited"}}, p.Handle)
	eventually(t, "all count", func() bool { return w.total("x") == 3 && sub.Stats().Filtered == 2 })
	require.NoError(t, sub.Close())
	assert.LessOrEqual(t, client.transactions.Load(), int32(2))
	assert.Equal(t, projection.Stats{Applied: 2}, p.Stats())
}

func TestAnEventThatFailsInARunFailsAlone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, deposits(20)...)
	var mended atomic.Bool
	errBroken := errors.New("broken")
	p, err := projection.NewBatch(w.client, projection.Config{},
		func(_ context.Context, sum int, run projection.Run) ([]projection.Write, error) {
			return []projection.Write{projection.Update(add(run.Aggregate.Value, sum))}, nil
		},
		projection.Fold(func(sum *int, e Deposited, r *journal.Record) error {
			if r.Number == 12 && !mended.Load() {
				return errBroken
			}
			*sum += e.Amount
			return nil
		}))
	require.NoError(t, err)
	w.consume(subscriber.Config{}, p.Handle)
	eventually(t, "what is before it counts", func() bool { return w.total("x") == 11*12/2 })
	mended.Store(true)
	eventually(t, "the rest follows", func() bool { return w.total("x") == 20*21/2 })
}

func TestABatchWithFaultsIsRefused(t *testing.T) {
	t.Parallel()
	_, err := projection.NewBatch[int](&dynamodb.Client{}, projection.Config{}, nil)
	require.ErrorAs(t, err, new(*projection.ConfigError))
	write := func(context.Context, int, projection.Run) ([]projection.Write, error) { return nil, nil }
	_, err = projection.NewBatch(&dynamodb.Client{}, projection.Config{MaxRun: -1}, write)
	require.ErrorAs(t, err, new(*projection.ConfigError))
	_, err = projection.NewBatch(&dynamodb.Client{}, projection.Config{}, write, projection.BatchReaction[int]{})
	require.ErrorAs(t, err, new(*projection.ConfigError))
	_, err = projection.NewBatch(&dynamodb.Client{}, projection.Config{}, write, projection.Fold[int, Deposited](nil))
	require.ErrorAs(t, err, new(*projection.ConfigError))
}

func TestAnEventThatFailsIsFoundOutThoughFailuresAreAcked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, deposits(20)...)
	p, err := projection.NewBatch(w.client, projection.Config{},
		func(_ context.Context, sum int, run projection.Run) ([]projection.Write, error) {
			return []projection.Write{projection.Update(add(run.Aggregate.Value, sum))}, nil
		},
		projection.Fold(func(sum *int, e Deposited, r *journal.Record) error {
			if r.Number == 12 {
				return errors.New("broken")
			}
			*sum += e.Amount
			return nil
		}))
	require.NoError(t, err)
	given := make(chan uint64, 20)
	w.consume(subscriber.Config{}, func(msg *message.Message) error { // as with a poison queue
		if p.Handle(msg) != nil {
			_, number, _ := subscriber.AggregateFromContext(msg.Context())
			given <- number
		}
		return nil
	})
	eventually(t, "all but it count", func() bool { return w.total("x") == 20*21/2-12 })
	assert.EqualValues(t, 12, <-given)
	assert.Empty(t, given)
}

func TestARunThatTakesTooLongEndsAndNoEventIsGivenUpForIt(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.write("x", 0, deposits(20)...)
		// The first few runs. Only one run at a time can move the position.
		var added []uint64
		ends := make(chan (<-chan struct{}), 1)
		p, err := projection.NewBatch(w.client, projection.Config{},
			func(_ context.Context, sum int, run projection.Run) ([]projection.Write, error) {
				return []projection.Write{projection.Update(add(run.Aggregate.Value, sum))}, nil
			},
			projection.Fold(func(sum *int, e Deposited, r *journal.Record) error {
				if len(added) < 4 {
					added = append(added, r.Number)
				}
				if len(added) == 3 {
					<-<-ends
				}
				*sum += e.Amount
				return nil
			}))
		require.NoError(t, err)
		sub := w.consume(subscriber.Config{AckDeadline: time.Second, Failures: subscriber.Skip(1)}, func(msg *message.Message) error {
			select {
			case ends <- msg.Context().Done():
			default:
			}
			return p.Handle(msg)
		})
		eventually(t, "all count", func() bool { return w.total("x") == 20*21/2 })
		require.NoError(t, sub.Close())
		assert.Equal(t, []uint64{1, 2, 3, 1}, added, "the run ends, and the first one comes alone")
		assert.Zero(t, sub.Stats().Skipped)
	})
}
