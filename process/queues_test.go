package process_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/process"
)

// withQueues returns a manager with a number of queues.
func (w *world) withQueues(client process.Client, n int) *process.Manager[Saga] {
	w.t.Helper()
	config := w.config()
	config.Queues = n
	return w.manager(client, config)
}

var numberKey = map[string]types.AttributeValue{
	"pkey": &types.AttributeValueMemberS{Value: "saga"}, "skey": &types.AttributeValueMemberS{Value: "queues"},
}

// number returns the stored number of queues, or "" if there is none.
func (w *world) number() string {
	w.t.Helper()
	out, err := w.client.GetItem(w.t.Context(), &dynamodb.GetItemInput{TableName: aws.String(process.DefaultTable), Key: numberKey})
	require.NoError(w.t, err)
	if out.Item == nil {
		return ""
	}
	return out.Item["count"].(*types.AttributeValueMemberN).Value
}

// queues returns the queues that have rows.
func (w *world) queues() []string {
	w.t.Helper()
	out, err := w.client.Scan(w.t.Context(), &dynamodb.ScanInput{TableName: aws.String(process.DefaultTable), IndexName: aws.String("process-due")})
	require.NoError(w.t, err)
	var names []string
	for _, row := range out.Items {
		names = append(names, row["queue"].(*types.AttributeValueMemberS).Value)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

var fourQueues = []string{"saga-0", "saga-1", "saga-2", "saga-3"}

// place makes a manager begin n processes, which set a timeout each.
func (w *world) place(m *process.Manager[Saga], name string, n int) {
	w.t.Helper()
	for i := range n {
		id := fmt.Sprint(name, i)
		require.NoError(w.t, m.Handle(event(w.t.Context(), "e-"+id, id, OrderPlaced{Total: 5})))
	}
}

func TestTheNumberOfQueuesGrowsWhileManagersRun(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		old := w.manager(w.client, w.config())
		w.place(old, "a", 20)
		assert.Zero(t, w.fire(old))
		assert.Empty(t, w.number(), "one queue needs no row")
		assert.Equal(t, fourQueues[:1], w.queues())

		w.place(w.withQueues(w.client, 4), "b", 20) // the manager is gone then
		assert.Equal(t, "4", w.number())
		assert.Equal(t, fourQueues, w.queues())
		w.place(old, "c", 20)

		w.pass(deadline)
		assert.Equal(t, 60, w.fire(old), "nobody has told it")
		w.place(old, "d", 20)
		assert.Equal(t, fourQueues, w.queues(), "it uses them, too")
	})
}

func TestAManagerLearnsTheNumberOfQueuesWithinAMinute(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		old := w.manager(w.client, w.config())
		w.fire(old)
		w.setOffline(true)
		more := w.withQueues(w.client, 4)
		for i := range 20 {
			require.ErrorIs(t, more.Handle(event(t.Context(), fmt.Sprint("e", i), fmt.Sprint("o", i), OrderPlaced{Total: 5})), errOffline)
		}
		w.setOffline(false)
		w.pass(59 * time.Second)
		w.fire(old)
		first := len(w.topics())
		assert.NotZero(t, first)
		assert.Less(t, first, 20)
		w.pass(time.Second)
		w.fire(old)
		assert.Len(t, w.topics(), 20-first)
	})
}

func TestALowerNumberOfQueuesHasNoEffect(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.place(w.withQueues(w.client, 4), "a", 20)
		low := w.withQueues(w.client, 2)
		w.place(low, "b", 20)
		assert.Equal(t, "4", w.number())
		w.pass(deadline)
		assert.Equal(t, 40, w.fire(low))
		w.place(low, "c", 20)
		assert.Equal(t, fourQueues, w.queues())
		assert.Equal(t, "4", w.number())
	})
}

func TestNoRowIsInAQueueThatIsNotKnownToBeStored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault     dynamotest.Fault
		operation string
		stored    string
	}{
		"the number cannot be read":   {dynamotest.CutConnection(), "GetItem", ""},
		"the number cannot be raised": {dynamotest.CutConnection(), "UpdateItem", ""},
		"writes are throttled":        {dynamotest.Throttle(), "UpdateItem", ""},
		"it is raised unnoticed":      {dynamotest.LoseReply(), "UpdateItem", "4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				w := setup(t)
				proxy := dynamotest.NewProxy(t, w.client)
				m := w.withQueues(proxy.Client(testdb.Once), 4)
				fault := proxy.Inject(c.fault, dynamotest.On(c.operation), dynamotest.Key(numberKey))
				w.place(m, "a", 20)
				assert.Equal(t, c.stored, w.number())
				assert.Equal(t, fourQueues[:1], w.queues())
				assert.Equal(t, 1, fault.Fired(), "it is not tried again at once")

				fault.Remove()
				w.pass(10 * time.Second)
				w.place(m, "b", 20)
				assert.Equal(t, "4", w.number())
				assert.Equal(t, fourQueues, w.queues())
				w.pass(deadline)
				assert.Equal(t, 40, w.fire(w.manager(w.client, w.config())))
			})
		})
	}
}

func TestAStoredNumberIsUsedThoughAHigherOneCannotBeStored(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.place(w.withQueues(w.client, 4), "a", 20)
		proxy := dynamotest.NewProxy(t, w.client)
		fault := proxy.Inject(dynamotest.Throttle(), dynamotest.On("UpdateItem"), dynamotest.Key(numberKey))
		m := w.withQueues(proxy.Client(testdb.Once), 8)
		w.place(m, "b", 20)
		assert.Equal(t, 1, fault.Fired())
		w.pass(deadline)
		fired, _ := m.Fire(t.Context())
		assert.Equal(t, 40, fired)
		assert.Equal(t, "4", w.number())
	})
}

func TestARequestThatArrivesLateDoesNotLowerTheNumber(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		proxy := dynamotest.NewProxy(t, w.client)
		late := proxy.Inject(dynamotest.Late(), dynamotest.On("UpdateItem"), dynamotest.Key(numberKey))
		w.place(w.withQueues(proxy.Client(testdb.Once), 2), "a", 1)
		w.place(w.withQueues(w.client, 4), "b", 20)
		late.Arrive()
		assert.Equal(t, "4", w.number())
	})
}

func TestAManagerThatCannotReadTheNumberFiresTheRestLater(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.place(w.withQueues(w.client, 4), "a", 20)
		w.pass(deadline)
		proxy := dynamotest.NewProxy(t, w.client)
		fault := proxy.Inject(dynamotest.CutConnection(), dynamotest.On("GetItem"), dynamotest.Key(numberKey))
		m := w.manager(proxy.Client(testdb.Once), w.config())
		first, err := m.Fire(t.Context())
		require.ErrorContains(t, err, "read the number of queues")
		assert.NotZero(t, first, "those of the queue that everybody knows")
		assert.Less(t, first, 20)
		assert.EqualValues(t, 1, m.Stats().Failed)

		fault.Remove()
		assert.Zero(t, w.fire(m))
		w.pass(10 * time.Second)
		assert.Equal(t, 20-first, w.fire(m))
	})
}

func TestANumberThatHangsHoldsUpNothing(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.now = time.Now()
		w.place(w.withQueues(w.client, 4), "a", 20)
		client := &mute{Client: w.client}
		client.isMute.Store(true)
		config := w.config()
		config.Now, config.Queues = time.Now, 8
		m := w.manager(client, config)
		begun := time.Now()
		w.place(m, "b", 20)
		assert.Equal(t, time.Second, time.Since(begun), "the first waits, the others know")

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		time.Sleep(deadline + 5*time.Second)
		first := m.Stats().Fired
		assert.NotZero(t, first)
		assert.Less(t, first, uint64(40))
		assert.Greater(t, m.Stats().Polls, uint64(500), "of one each second")
		client.isMute.Store(false)
		time.Sleep(15 * time.Second)
		assert.EqualValues(t, 40, m.Stats().Fired)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func TestWhatIsDueInHigherQueuesFiresWhileAnotherCallReadsTheNumber(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.place(w.withQueues(w.client, 4), "a", 20)
		w.pass(deadline)
		proxy := dynamotest.NewProxy(t, w.client)
		proxy.Inject(dynamotest.Latency(500*time.Millisecond, 500*time.Millisecond), dynamotest.Key(numberKey), dynamotest.Times(1))
		m := w.withQueues(proxy.Client(), 4)
		handled := make(chan error)
		go func() { handled <- m.Handle(event(t.Context(), "e", "o", OrderPlaced{Total: 5})) }()
		time.Sleep(100 * time.Millisecond)
		assert.Equal(t, 20, w.fire(m))
		require.NoError(t, <-handled)
	})
}

func TestThrottledReadsOfTheNumberDelayNothing(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		proxy := dynamotest.NewProxy(t, w.client)
		fault := proxy.Inject(dynamotest.Throttle(), dynamotest.Key(numberKey), dynamotest.Chance(0.2))
		config := w.config()
		config.Now = time.Now
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		m := w.manager(proxy.Client(testdb.Once), config)
		go func() { ended <- m.Run(ctx) }()
		time.Sleep(10 * time.Second)
		config.Queues = 4
		w.place(w.manager(w.client, config), "a", 20)
		time.Sleep(deadline + 2*time.Second)
		assert.EqualValues(t, 20, m.Stats().Fired)
		assert.Greater(t, m.Stats().Polls, uint64(550))
		assert.NotZero(t, fault.Fired())
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}

func TestTheNumberIsStoredAgainInATableThatWasMadeAgain(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.place(w.withQueues(w.client, 4), "a", 1)
		m := w.manager(w.client, w.config())
		w.fire(m) // so that it knows the number
		_, err := w.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String(process.DefaultTable), Key: numberKey})
		require.NoError(t, err)
		w.fire(m)
		assert.Empty(t, w.number())
		w.pass(time.Minute)
		w.fire(m)
		assert.Equal(t, "4", w.number())
	})
}

func TestANumberThatIsNoneIsReported(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		w := setup(t)
		w.place(w.manager(w.client, w.config()), "a", 5)
		w.pass(deadline)
		for _, count := range []types.AttributeValue{
			&types.AttributeValueMemberS{Value: "4"}, &types.AttributeValueMemberN{Value: "0"}, &types.AttributeValueMemberN{Value: "257"},
		} {
			row := maps.Clone(numberKey)
			row["count"] = count
			_, err := w.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(process.DefaultTable), Item: row})
			require.NoError(t, err)
			_, err = w.manager(w.client, w.config()).Fire(t.Context())
			require.ErrorContains(t, err, `row "saga" / "queues" has no "count" from 1 to 256: correct it by hand`)
		}
		assert.Len(t, w.rejected(), 5, "what is due fires all the same")
	})
}

func TestABacklogShowsTheRowsOfAllQueues(t *testing.T) {
	t.Parallel()
	w := setup(t)
	m := w.withQueues(w.client, 4)
	w.place(m, "o", 20)
	assert.Len(t, w.pending(process.BacklogQuery{}), 20)
	assert.Len(t, w.pending(process.BacklogQuery{Type: "saga"}), 20)
	w.pass(deadline)
	w.setOffline(true)
	_, err := m.Fire(t.Context())
	require.ErrorIs(t, err, errOffline)
	w.setOffline(false)
	for i, p := range w.pending(process.BacklogQuery{}) {
		if i%2 == 0 {
			require.NoError(t, w.backlog().Drop(t.Context(), p))
		} else {
			require.NoError(t, w.backlog().Retry(t.Context(), p))
		}
	}
	w.fire(m)
	assert.Len(t, w.rejected(), 10)
	assert.Empty(t, w.pending(process.BacklogQuery{}))
}
