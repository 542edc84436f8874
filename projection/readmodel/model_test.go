package readmodel_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/tables"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/projection/readmodel"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

const (
	topic    = "account"
	patience = 2 * time.Minute
)

type item = map[string]types.AttributeValue

type Deposited struct{ Amount int }

func (Deposited) EventType() string { return "deposited" }

type world struct {
	t      *testing.T
	client *dynamodb.Client
	j      *journal.Journal
}

func setup(t *testing.T) *world {
	t.Helper()
	client := testdb.Client(t)
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Layout: journal.Classic, Shards: 2}))
	require.NoError(t, readmodel.CreateTable(t.Context(), client, ""))
	j := testjournal.Open(t, client, journal.Config{})
	return &world{t: t, client: client, j: j}
}

func (w *world) config() readmodel.Config {
	return readmodel.Config{
		Name: "totals", Journal: w.j, Topics: []string{topic},
		MaxAge: 10 * time.Millisecond, Refresh: 10 * time.Millisecond, MaxLag: 5,
	}
}

func (w *world) open(config readmodel.Config) *readmodel.Model {
	w.t.Helper()
	m, err := readmodel.Open(w.t.Context(), w.client, config)
	require.NoError(w.t, err)
	return m
}

// write appends events to an aggregate that has had events so far, each one of its number.
func (w *world) write(id string, after, n int) {
	commit := storage.Commit{Aggregate: aggregate.ID{Type: topic, Value: id}, Expected: uint64(after)}
	for i := range n {
		commit.Events = append(commit.Events, storage.Event{Type: "deposited", Payload: fmt.Appendf(nil, `{"Amount":%d}`, after+i+1)})
	}
	_, err := w.j.Internal().Append(context.WithoutCancel(w.t.Context()), commit)
	assert.NoError(w.t, err)
}

// consume keeps a table of totals for a generation, as a program does.
func (w *world) consume(ctx context.Context, g readmodel.Generation) error {
	err := tables.Ensure(ctx, w.client, &dynamodb.CreateTableInput{
		TableName:            aws.String(g.Table("totals")),
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	})
	if err != nil {
		return err
	}
	p, err := projection.NewBatch(w.client, projection.Config{},
		func(_ context.Context, sum int, run projection.Run) ([]projection.Write, error) {
			return []projection.Write{projection.Update(types.Update{
				TableName: aws.String(g.Table("totals")), Key: key(run.Aggregate.Value), UpdateExpression: aws.String("SET #n = :n ADD #t :sum"),
				ExpressionAttributeNames: map[string]string{"#t": "total", "#n": "number"},
				ExpressionAttributeValues: item{
					":sum": &types.AttributeValueMemberN{Value: strconv.Itoa(sum)},
					":n":   &types.AttributeValueMemberN{Value: strconv.FormatUint(run.Last.Number, 10)},
				},
			})}, nil
		},
		projection.Fold(func(sum *int, e Deposited, _ *journal.Record) error { *sum += e.Amount; return nil }))
	if err != nil {
		return err
	}
	sub, err := subscriber.NewSubscriber(subscriber.Config{
		Journal: w.j, ConsumerGroup: g.Group(), CloseTimeout: time.Second,
		Timing: subscriber.Timing{
			PollInterval: 5 * time.Millisecond, MaxPollInterval: 50 * time.Millisecond,
			CommitInterval: 20 * time.Millisecond, LeaseDuration: 3 * time.Second,
		},
	}, nil)
	if err != nil {
		return err
	}
	messages, err := sub.Subscribe(ctx, topic)
	if err != nil {
		return err
	}
	var handlers sync.WaitGroup
	for msg := range messages {
		handlers.Add(1)
		go func() {
			defer handlers.Done()
			if p.Handle(msg) == nil {
				msg.Ack()
			} else {
				msg.Nack()
			}
		}()
	}
	handlers.Wait()
	return sub.Close()
}

func key(id string) item { return item{"id": &types.AttributeValueMemberS{Value: id}} }

// row is the read model's item for an account: its total, and the number of its last event.
type row struct{ total, number int }

func (w *world) row(ctx context.Context, g readmodel.Generation, id string) (row, error) {
	out, err := w.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: aws.String(g.Table("totals")), Key: key(id), ConsistentRead: aws.Bool(true)})
	if err != nil || len(out.Item) == 0 {
		return row{}, err
	}
	total, err := strconv.Atoi(out.Item["total"].(*types.AttributeValueMemberN).Value)
	if err != nil {
		return row{}, err
	}
	number, err := strconv.Atoi(out.Item["number"].(*types.AttributeValueMemberN).Value)
	return row{total, number}, err
}

// run makes a process consume until the test ends, or until stop is called.
func (w *world) run(m *readmodel.Model) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.ErrorIs(w.t, m.Run(ctx, w.consume), context.Canceled)
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	w.t.Cleanup(stop)
	return stop
}

func TestAGenerationServesUntilItIsRolledBackAndDropped(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.write("a", 0, 10)
	m := w.open(w.config())
	w.run(m)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	old, err := m.Serving(ctx)
	require.NoError(t, err)
	assert.Equal(t, "totals.1", old.Group())
	next, err := m.Begin(ctx)
	require.NoError(t, err)
	assert.Equal(t, readmodel.Generation{Model: "totals", Number: 2}, next)
	require.NoError(t, m.CatchUp(ctx, old, nil)) // so that it has positions
	require.NoError(t, m.CatchUp(ctx, next, nil))
	require.NoError(t, m.Switch(ctx, next))

	for range 2 { // the second time does nothing
		back, err := m.Rollback(ctx, next)
		require.NoError(t, err)
		assert.Equal(t, old, back)
	}
	require.ErrorIs(t, m.Drop(ctx, old, groups.RemoveOptions{}), readmodel.ErrServing)
	_, err = m.Rollback(ctx, old)
	require.NoError(t, err)
	require.ErrorIs(t, m.Drop(ctx, readmodel.Generation{Model: "others", Number: 1}, groups.RemoveOptions{}), readmodel.ErrNoGeneration)
	require.NoError(t, m.Drop(ctx, old, groups.RemoveOptions{}))
	require.NoError(t, m.Drop(ctx, old, groups.RemoveOptions{}), "it may be called again")
	left, err := m.Generations(ctx)
	require.NoError(t, err)
	assert.Equal(t, readmodel.Generations{Live: []readmodel.Generation{next}, Serving: next}, left)
	_, err = m.Rollback(ctx, next)
	require.ErrorIs(t, err, readmodel.ErrNoPrevious)
}

func TestAGenerationThatIsBehindDoesNotServe(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.write("a", 0, 50)
		m := w.open(w.config())
		next := mustBegin(t, m)
		var behind *readmodel.BehindError
		require.ErrorAs(t, m.Switch(t.Context(), next), &behind)
		assert.False(t, behind.Progress.Begun)
		soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := m.CatchUp(soon, next, nil)
		require.ErrorAs(t, err, new(*readmodel.BehindError))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		serving := mustServing(t, m)
		assert.EqualValues(t, 1, serving.Number)

		stop := w.run(m)
		require.NoError(t, m.CatchUp(t.Context(), next, nil))
		require.Eventually(t, func() bool { return w.progress(m, next).Left == 0 }, patience, 10*time.Millisecond)
		stop()
		w.write("a", 50, 50)
		require.ErrorAs(t, m.Switch(t.Context(), next), &behind)
		assert.EqualValues(t, 50, behind.Progress.Left)
	})
}

func TestAGenerationWithFewOldEventsLeftDoesNotServe(t *testing.T) {
	t.Parallel()
	w := setup(t)
	config := w.config()
	config.MaxLag, config.MaxDelay = 100, time.Hour
	m := w.open(config)
	config.MaxDelay = 1
	strict := w.open(config)
	next := mustBegin(t, m)
	w.run(m)
	require.NoError(t, m.CatchUp(t.Context(), next, nil), "there is nothing yet")
	group := groups.Of(w.j, next.Group(), topic)
	require.NoError(t, group.Pause(t.Context()))
	require.NoError(t, group.WaitIdle(t.Context()))

	w.write("a", 0, 3)
	require.NoError(t, m.CatchUp(t.Context(), next, nil), "they were written just now")
	var behind *readmodel.BehindError
	require.ErrorAs(t, strict.Switch(t.Context(), next), &behind)
	assert.EqualValues(t, 3, behind.Progress.Left)
	assert.Positive(t, time.Since(behind.Progress.Oldest))
}

func TestGenerationsThatAreNotThereAreRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.open(w.config())
	none := readmodel.Generation{Model: "totals", Number: 7}
	require.ErrorIs(t, m.Switch(t.Context(), none), readmodel.ErrNoGeneration)
	require.ErrorIs(t, m.Drop(t.Context(), none, groups.RemoveOptions{}), readmodel.ErrNoGeneration)
	require.ErrorIs(t, m.CatchUp(t.Context(), none, nil), readmodel.ErrNoGeneration)
	first := mustServing(t, m)
	_, err := m.Rollback(t.Context(), first)
	require.ErrorIs(t, err, readmodel.ErrNoPrevious)
}

func TestChangesOfSeveralOperatorsAreAllMade(t *testing.T) {
	t.Parallel()
	w := setup(t)
	var work sync.WaitGroup
	for range 4 {
		work.Add(1)
		go func() {
			defer work.Done()
			m, err := readmodel.Open(t.Context(), w.client, w.config())
			if assert.NoError(t, err) {
				_, err = m.Begin(t.Context())
				assert.NoError(t, err)
			}
		}()
	}
	work.Wait()
	all, err := w.open(w.config()).Generations(t.Context())
	require.NoError(t, err)
	assert.Len(t, all.Live, 5)
	assert.EqualValues(t, 1, all.Serving.Number)
}

// forgetful loses the reply to the first write.
type forgetful struct {
	*dynamodb.Client
	lost atomic.Bool
}

func (f *forgetful) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := f.Client.UpdateItem(ctx, in, o...)
	if err == nil && f.lost.CompareAndSwap(false, true) {
		return f.Client.UpdateItem(ctx, in, o...) // as the SDK does
	}
	return out, err
}

func TestAChangeWhoseReplyIsLostIsMadeOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.open(w.config())
	m, err := readmodel.Open(t.Context(), &forgetful{Client: w.client}, w.config())
	require.NoError(t, err)
	g := mustBegin(t, m)
	assert.EqualValues(t, 2, g.Number)
	all, err := m.Generations(t.Context())
	require.NoError(t, err)
	assert.Len(t, all.Live, 2)
}

// overtaken loses the reply to the first write. Another process makes a change before the write is
// sent again.
type overtaken struct {
	*dynamodb.Client
	other func()
	lost  atomic.Bool
}

func (o *overtaken) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := o.Client.UpdateItem(ctx, in, options...)
	if err == nil && o.lost.CompareAndSwap(false, true) {
		o.other()
		return o.Client.UpdateItem(ctx, in, options...)
	}
	return out, err
}

func TestAChangeWhoseReplyIsLostIsMadeOnceThoughAnotherFollows(t *testing.T) {
	t.Parallel()
	w := setup(t)
	other := w.open(w.config())
	m, err := readmodel.Open(t.Context(), &overtaken{Client: w.client, other: func() {
		for range 3 {
			_, err := other.Begin(t.Context())
			assert.NoError(t, err)
		}
	}}, w.config())
	require.NoError(t, err)
	mine := mustBegin(t, m)
	assert.EqualValues(t, 2, mine.Number)
	all, err := m.Generations(t.Context())
	require.NoError(t, err)
	assert.Len(t, all.Live, 1+1+3)
}

// dead never answers.
type dead struct {
	*dynamodb.Client
	isDead atomic.Bool
}

var errDead = errors.New("dead")

func (d *dead) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if d.isDead.Load() {
		return nil, errDead
	}
	return d.Client.GetItem(ctx, in, o...)
}

func TestQueriesGoOnWhileTheTableCannotBeReached(t *testing.T) {
	t.Parallel()
	w := setup(t)
	client := &dead{Client: w.client}
	config := w.config()
	config.MaxAge = -1
	m, err := readmodel.Open(t.Context(), client, config)
	require.NoError(t, err)
	client.isDead.Store(true)
	g := mustServing(t, m)
	assert.EqualValues(t, 1, g.Number)
	_, err = readmodel.Open(t.Context(), client, config)
	require.ErrorIs(t, err, errDead)
}

func TestAConsumerThatEndsIsStartedAgain(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.open(w.config())
	var times atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	err := m.Run(ctx, func(context.Context, readmodel.Generation) error {
		switch times.Add(1) {
		case 2:
			panic("a bug")
		case 3:
			cancel()
		}
		return errDead
	})
	require.ErrorIs(t, err, context.Canceled)
	assert.EqualValues(t, 3, times.Load())
	require.ErrorAs(t, m.Run(t.Context(), nil), new(*readmodel.ConfigError))
}

func TestFaultsOfConfigAndTableAreTold(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, spoil := range []func(*readmodel.Config){
		func(c *readmodel.Config) { c.Name = "a/b" },
		func(c *readmodel.Config) { c.Name = "" },
		func(c *readmodel.Config) { c.Journal = nil },
		func(c *readmodel.Config) { c.Topics = nil },
		func(c *readmodel.Config) { c.Refresh = -1 },
	} {
		config := w.config()
		spoil(&config)
		_, err := readmodel.Open(t.Context(), w.client, config)
		require.ErrorAs(t, err, new(*readmodel.ConfigError))
	}
	_, err := readmodel.Open(t.Context(), nil, w.config())
	require.ErrorAs(t, err, new(*readmodel.ConfigError))
	config := w.config()
	config.Table = "none"
	_, err = readmodel.Open(t.Context(), w.client, config)
	require.ErrorIs(t, err, journal.ErrTableMissing)

	_, err = w.client.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String(readmodel.DefaultTable), Item: item{"name": &types.AttributeValueMemberS{Value: "totals"}},
	})
	require.NoError(t, err)
	_, err = readmodel.Open(t.Context(), w.client, w.config())
	require.ErrorIs(t, err, readmodel.ErrCorrupt)
}

func TestAReadModelIsOpenedAmidADisturbance(t *testing.T) {
	t.Parallel()
	w := setup(t)
	proxy := dynamotest.NewProxy(t, w.client)
	client := proxy.Client(testdb.Once)
	for _, fault := range []dynamotest.Fault{dynamotest.Throttle(), dynamotest.InternalError(), dynamotest.CutConnection()} {
		proxy.Inject(fault, dynamotest.Times(5))
		require.NoError(t, readmodel.CreateTable(t.Context(), client, ""))
		proxy.Inject(fault, dynamotest.Times(5))
		_, err := readmodel.Open(t.Context(), client, w.config())
		require.NoError(t, err)
		proxy.Inject(fault, dynamotest.Times(5))
		_, err = readmodel.OpenExisting(t.Context(), client, w.config())
		require.NoError(t, err)
	}
}

func mustBegin(t *testing.T, m *readmodel.Model) readmodel.Generation {
	t.Helper()
	g, err := m.Begin(t.Context())
	require.NoError(t, err)
	return g
}

func mustServing(t *testing.T, m *readmodel.Model) readmodel.Generation {
	t.Helper()
	g, err := m.Serving(t.Context())
	require.NoError(t, err)
	return g
}
