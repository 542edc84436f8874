package projection_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
)

func TestEffectsHappenOnceWhateverFails(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T, projection.Client, *rand.Rand) *projection.Projection{
		"event by event": func(t *testing.T, client projection.Client, _ *rand.Rand) *projection.Projection {
			t.Helper()
			return newProjection(t, client, sum)
		},
		"in runs": func(t *testing.T, client projection.Client, random *rand.Rand) *projection.Projection {
			t.Helper()
			return newTotals(t, client, projection.Config{MaxRun: 1 + random.IntN(10)})
		},
	} {
		for _, seed := range []uint64{1, 2, 3} {
			t.Run(fmt.Sprint(name, ", seed ", seed), func(t *testing.T) {
				t.Parallel()
				effectsHappenOnce(t, seed, open)
			})
		}
	}
}

// effectsHappenOnce projects deposits with a client that loses requests and replies, a handler that
// fails after it has committed, and members that end.
func effectsHappenOnce(t *testing.T, seed uint64, open func(*testing.T, projection.Client, *rand.Rand) *projection.Projection) {
	t.Helper()
	w := setup(t)
	random := rand.New(rand.NewPCG(seed, 0))
	want := map[string]int{}
	flaky := &flakyClient{Client: w.client, random: rand.New(rand.NewPCG(seed, 1))}
	written := 0
	for round := range 4 {
		p := open(t, flaky, random)
		sub := w.consume(subscriber.Config{}, func(msg *message.Message) error {
			if err := p.Handle(msg); err != nil {
				return err
			}
			return flaky.sometimes("the handler fails after the commit")
		})
		n := 1 + random.IntN(15)
		for i := range 5 {
			id := fmt.Sprint("a", i)
			var events []event
			for range n {
				amount := 1 + random.IntN(9)
				events = append(events, Deposited{amount})
				want[id] += amount
			}
			w.write(id, written, events...)
		}
		written += n
		if round < 3 { // the last round continues until everything is done
			some := 1 + random.Uint64N(uint64(n))
			eventually(t, "something is applied", func() bool { return p.Stats().Applied >= some })
			require.NoError(t, sub.Close())
		}
	}
	for id, total := range want {
		eventually(t, fmt.Sprintf("the total of %s becomes %d", id, total), func() bool { return w.total(id) >= total })
		assert.Equal(t, total, w.total(id), id)
	}
}

func TestAnEventWithoutReactionIsIgnored(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, Noted{}, Deposited{2}, Noted{}, Deposited{3})
	p := newProjection(t, w.client, sum)
	sub := w.consume(subscriber.Config{}, p.Handle)
	eventually(t, "both deposits count", func() bool { return w.total("x") == 5 })
	require.NoError(t, sub.Close())
	assert.Equal(t, projection.Stats{Applied: 2, Ignored: 2}, p.Stats())

	w.write("x", 4, Deposited{1})
	again := newProjection(t, w.client, sum)
	w.consume(subscriber.Config{}, again.Handle)
	eventually(t, "only what is new counts", func() bool { return again.Stats().Applied > 0 })
	assert.Equal(t, 6, w.total("x"))
}

func TestAFalseConditionOfAnIdempotentWriteLeavesItOutAndTheRestCommits(t *testing.T) {
	t.Parallel()
	w := setup(t)
	never := add("never", 1)
	never.ConditionExpression = aws.String("attribute_exists(id)")
	w.write("x", 0, Deposited{2})
	p := newProjection(t, w.client, projection.On(func(_ context.Context, e Deposited, _ *journal.Record) ([]projection.Write, error) {
		return []projection.Write{projection.Update(never).Idempotent(), projection.Update(add("x", e.Amount))}, nil
	}))
	sub := w.consume(subscriber.Config{}, p.Handle)
	eventually(t, "the other write commits", func() bool { return w.total("x") == 2 })
	require.NoError(t, sub.Close())
	assert.Zero(t, w.total("never"))
	assert.EqualValues(t, 1, p.Stats().Dropped)
}

func TestAnyOtherFalseConditionIsTheHandlersErrorAndNothingIsWritten(t *testing.T) {
	t.Parallel()
	w := setup(t)
	never := add("never", 1)
	missing := projection.Check(types.ConditionCheck{TableName: never.TableName, Key: never.Key, ConditionExpression: aws.String("attribute_exists(id)")})
	w.write("x", 0, Deposited{2})
	p := newProjection(t, w.client, projection.On(func(_ context.Context, e Deposited, _ *journal.Record) ([]projection.Write, error) {
		return []projection.Write{projection.Update(add("x", e.Amount)), missing}, nil
	}))
	err := w.handleNext(p.Handle)
	var condition *projection.ConditionError
	require.ErrorAs(t, err, &condition)
	assert.Equal(t, projection.ConditionError{Aggregate: account("x"), Number: 1, EventType: "deposited", Table: table, Write: 1}, *condition)
	assert.Zero(t, w.total("x"))
}

func TestAnErrorOfTheReactionBlocksItsAggregateAlone(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var mu sync.Mutex
	broken := true
	p := newProjection(t, w.client, projection.On(func(_ context.Context, e Deposited, r *journal.Record) ([]projection.Write, error) {
		mu.Lock()
		defer mu.Unlock()
		if broken && r.Aggregate.Value == "bad" {
			return nil, errors.New("cannot do this yet")
		}
		return []projection.Write{projection.Update(add(r.Aggregate.Value, e.Amount))}, nil
	}))
	w.write("bad", 0, Deposited{1}, Deposited{2})
	w.write("good", 0, Deposited{3})
	w.consume(subscriber.Config{}, p.Handle)
	eventually(t, "the other aggregate goes on", func() bool { return w.total("good") == 3 })
	assert.Zero(t, w.total("bad"))
	mu.Lock()
	broken = false
	mu.Unlock()
	eventually(t, "it heals", func() bool { return w.total("bad") == 3 })
}

func TestAnOlderEventOfASourceChangesNothingInAnItem(t *testing.T) {
	t.Parallel()
	w := setup(t)
	status := func(r *journal.Record, text string) projection.Write {
		return projection.IdempotentUpdate(types.Update{
			TableName: aws.String(table), Key: key("shared"),
			UpdateExpression:          aws.String("SET #s = :s ADD #total :one"),
			ExpressionAttributeNames:  map[string]string{"#s": "status", "#total": "total"},
			ExpressionAttributeValues: item{":s": &types.AttributeValueMemberS{Value: text}, ":one": number(1)},
		}, r)
	}
	apply := func(group string, writes func(r *journal.Record) projection.Write) {
		t.Helper()
		p := newProjection(t, w.client, projection.On(func(_ context.Context, _ Deposited, r *journal.Record) ([]projection.Write, error) {
			return []projection.Write{writes(r)}, nil
		}))
		sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: w.j, ConsumerGroup: group}, nil)
		require.NoError(t, err)
		messages, err := sub.Subscribe(t.Context(), topic)
		require.NoError(t, err)
		for range 2 {
			msg := <-messages
			require.NoError(t, p.Handle(msg))
			msg.Ack()
		}
		require.NoError(t, sub.Close())
	}
	w.write("order", 0, Deposited{1}, Deposited{1})
	apply("one", func(r *journal.Record) projection.Write { return status(r, fmt.Sprint("new ", r.Number)) })
	// Another group handles the same events again, as after a reset.
	apply("two", func(r *journal.Record) projection.Write { return status(r, fmt.Sprint("old ", r.Number)) })

	out, err := w.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: key("shared")})
	require.NoError(t, err)
	assert.Equal(t, &types.AttributeValueMemberS{Value: "new 2"}, out.Item["status"])
	assert.Equal(t, number(2), out.Item["total"])
	assert.Equal(t, number(2), out.Item[projection.SourceAttribute(account("order"))])
}

func TestAFalseConditionOfTheCallersInAnIdempotentUpdateIsNotTakenForAnOlderEvent(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, Deposited{1})
	p := newProjection(t, w.client, projection.On(func(_ context.Context, _ Deposited, r *journal.Record) ([]projection.Write, error) {
		u := add("not there", 1)
		u.ConditionExpression = aws.String("attribute_exists(id)")
		return []projection.Write{projection.IdempotentUpdate(u, r)}, nil
	}))
	require.ErrorAs(t, w.handleNext(p.Handle), new(*projection.ConditionError))
	assert.Zero(t, p.Stats().Dropped)
}

func TestAnIdempotentUpdateKeepsTheCallersExpressions(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, Deposited{1})
	for name, u := range map[string]types.Update{
		"no expression":    {},
		"set first":        {UpdateExpression: aws.String("SET a = :v")},
		"set in between":   {UpdateExpression: aws.String("ADD b :v set a = :v REMOVE c")},
		"no set":           {UpdateExpression: aws.String("ADD b :v")},
		"with condition":   {UpdateExpression: aws.String("SET a = :v"), ConditionExpression: aws.String("attribute_not_exists(a) OR a = :v")},
		"attribute offset": {UpdateExpression: aws.String("SET offset_ = :v")},
	} {
		u.TableName, u.Key = aws.String(table), key(name)
		if u.UpdateExpression != nil {
			u.ExpressionAttributeValues = item{":v": number(7)}
		}
		write := projection.IdempotentUpdate(u, &journal.Record{Aggregate: account("x"), Number: 1})
		p := newProjection(t, w.client, projection.On(func(context.Context, Deposited, *journal.Record) ([]projection.Write, error) {
			return []projection.Write{write}, nil
		}))
		sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: w.j, ConsumerGroup: name}, nil)
		require.NoError(t, err)
		messages, err := sub.Subscribe(t.Context(), topic)
		require.NoError(t, err)
		msg := <-messages
		require.NoError(t, p.Handle(msg), name)
		msg.Ack()
		require.NoError(t, sub.Close())
		assert.EqualValues(t, 1, p.Stats().Applied, name)
		assert.Zero(t, p.Stats().Dropped, name)
	}
}

func TestAMessageWithoutAPositionIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	p, err := projection.New(&dynamodb.Client{}, projection.Config{}, sum)
	require.NoError(t, err)
	for key, advice := range map[string]string{
		"other":                "pass the subscriber's own message to the handler",
		subscriber.PartKey:     "pass them to the projection",
		subscriber.DeferredKey: "use another failure policy than subscriber.Defer",
	} {
		msg := message.NewMessage("id", nil)
		msg.Metadata.Set(key, "1/2")

		err := p.Handle(msg)

		require.ErrorIs(t, err, subscriber.ErrNoPosition, key)
		assert.ErrorContains(t, err, advice, key)
	}
}

func TestMoreWritesThanATransactionHoldsAreRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("x", 0, Deposited{1})
	p := newProjection(t, w.client, projection.On(func(context.Context, Deposited, *journal.Record) ([]projection.Write, error) {
		var writes []projection.Write
		for i := range 100 {
			writes = append(writes, projection.Update(add(fmt.Sprint("x", i), 1)))
		}
		return writes, nil
	}))
	err := w.handleNext(p.Handle)
	require.ErrorAs(t, err, new(*projection.TooManyWritesError))
	assert.ErrorContains(t, err, "100 writes")
	assert.Zero(t, w.total("x0"))
}

func TestAnEventThatCannotBeDecodedNamesItself(t *testing.T) {
	t.Parallel()
	w := setup(t)
	testjournal.Append(t, w.j, storage.Commit{Aggregate: account("x"), Events: []storage.Event{{Type: "deposited", Payload: []byte("{")}}})
	err := w.handleNext(newProjection(t, w.client, sum).Handle)
	require.Error(t, err)
	assert.ErrorContains(t, err, `event 1 of account-x`)
}

func TestAProjectionThatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func() (*projection.Projection, error){
		"no client": func() (*projection.Projection, error) { return projection.New(nil, projection.Config{}, sum) },
		"empty reaction": func() (*projection.Projection, error) {
			return projection.New(&dynamodb.Client{}, projection.Config{}, projection.Reaction{})
		},
		"no function": func() (*projection.Projection, error) {
			return projection.New(&dynamodb.Client{}, projection.Config{}, projection.On[Deposited](nil))
		},
		"two reactions": func() (*projection.Projection, error) {
			return projection.New(&dynamodb.Client{}, projection.Config{}, sum, sum)
		},
		"negative budget": func() (*projection.Projection, error) {
			return projection.New(&dynamodb.Client{}, projection.Config{RetryBudget: -1})
		},
		"pointer event": func() (*projection.Projection, error) {
			return projection.New(&dynamodb.Client{}, projection.Config{}, onPointer)
		},
		"interface as type": func() (*projection.Projection, error) {
			return projection.New(&dynamodb.Client{}, projection.Config{}, onInterface)
		},
	} {
		_, err := build()
		require.ErrorAs(t, err, new(*projection.ConfigError), name)
	}
}

var (
	onPointer   = projection.On(func(context.Context, *Deposited, *journal.Record) ([]projection.Write, error) { return nil, nil })
	onInterface = projection.On(func(context.Context, event, *journal.Record) ([]projection.Write, error) { return nil, nil })
)

func TestWatermillsRouterRunsAProjection(t *testing.T) {
	t.Parallel()
	w := setup(t)
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: time.Second}, watermill.NopLogger{})
	require.NoError(t, err)
	sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: w.j, ConsumerGroup: "totals"}, nil)
	require.NoError(t, err)
	router.AddConsumerHandler("totals", topic, sub, newProjection(t, w.client, sum).Handle)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- router.Run(ctx) }()
	w.write("x", 0, Deposited{2}, Deposited{3})
	eventually(t, "the deposits count", func() bool { return w.total("x") == 5 })
	stop()
	require.NoError(t, <-done)
}

// flakyClient loses requests and replies of transactions, and makes them conflict with others.
type flakyClient struct {
	projection.Client
	mu     sync.Mutex
	random *rand.Rand
}

func (c *flakyClient) sometimes(what string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.random.IntN(4) == 0 {
		return errors.New(what)
	}
	return nil
}

func (c *flakyClient) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := c.sometimes("the request is lost"); err != nil {
		return nil, err
	}
	if c.sometimes("conflict") != nil {
		reasons := make([]types.CancellationReason, len(in.TransactItems))
		for i := range reasons {
			reasons[i].Code = aws.String("None")
		}
		reasons[0].Code = aws.String("TransactionConflict")
		return nil, &types.TransactionCanceledException{CancellationReasons: reasons}
	}
	out, err := c.Client.TransactWriteItems(ctx, in, opts...)
	if lost := c.sometimes("the reply is lost"); err == nil && lost != nil {
		return nil, lost
	}
	return out, err
}

// hanging is a connection on which the first request gets no answer.
type hanging struct {
	projection.Client
	once sync.Once
}

func (h *hanging) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	h.once.Do(func() { <-ctx.Done() })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return h.Client.TransactWriteItems(ctx, in, o...)
}

func TestARequestThatIsNotAnsweredDoesNotOutlastTheRetryBudget(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.write("x", 0, Deposited{1}, Deposited{2})
		p, err := projection.New(&hanging{Client: w.client}, projection.Config{RetryBudget: 10 * time.Millisecond}, sum)
		require.NoError(t, err)
		failed := make(chan error, 1)
		w.consume(subscriber.Config{}, func(msg *message.Message) error {
			err := p.Handle(msg)
			if err != nil {
				failed <- err
			}
			return err
		})
		eventually(t, "both count", func() bool { return w.total("x") == 3 })
		err = <-failed
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "no answer within the RetryBudget")
	})
}
