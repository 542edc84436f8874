package subscriber_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// Noted is an event whose bit is 2 to the power of its number. So a sum shows which events took
// effect, and that none took effect twice.
type Noted struct{ Bit int64 }

func (Noted) EventType() string { return "noted" }

// readModel is one item with the sum of the bits.
type readModel struct {
	j      *journal.Journal
	client *dynamodb.Client
}

func newReadModel(t *testing.T, events int) readModel {
	t.Helper()
	client := create(t, 1)
	_, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("sums"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
	})
	require.NoError(t, err)
	m := readModel{open(t, client), client}
	commit := storage.Commit{Aggregate: account("x")}
	for n := 1; n <= events; n++ {
		commit.Events = append(commit.Events, storage.Event{Type: "noted", Payload: fmt.Appendf(nil, `{"Bit":%d}`, int64(1)<<n)})
	}
	testjournal.Append(t, m.j, commit)
	return m
}

var sumKey = map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "x"}}

// applied returns the numbers of the events that took effect once.
func (m readModel) applied(t *testing.T) (numbers []uint64) {
	t.Helper()
	out, err := m.client.GetItem(context.Background(), &dynamodb.GetItemInput{
		TableName: aws.String("sums"), Key: sumKey, ConsistentRead: aws.Bool(true),
	})
	require.NoError(t, err)
	sum, _ := out.Item["sum"].(*types.AttributeValueMemberN)
	if sum == nil {
		return nil
	}
	bits, err := strconv.ParseInt(sum.Value, 10, 64)
	require.NoError(t, err)
	for n := range uint64(63) {
		if bits&(1<<n) != 0 {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

var errNotProjected = errors.New("it cannot be projected")

func add(bits int64) []projection.Write {
	return []projection.Write{projection.Update(types.Update{
		TableName: aws.String("sums"), Key: sumKey,
		UpdateExpression:          aws.String("ADD #sum :bits"),
		ExpressionAttributeNames:  map[string]string{"#sum": "sum"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":bits": &types.AttributeValueMemberN{Value: fmt.Sprint(bits)}},
	})}
}

// oneByOne projects each event alone.
func oneByOne(client projection.Client, fails func(number uint64) bool) (*projection.Projection, error) {
	return projection.New(client, projection.Config{},
		projection.On(func(_ context.Context, e Noted, r *journal.Record) ([]projection.Write, error) {
			if fails(r.Number) {
				return nil, errNotProjected
			}
			return add(e.Bit), nil
		}))
}

// inRuns projects runs of events.
func inRuns(client projection.Client, fails func(number uint64) bool) (*projection.Projection, error) {
	return projection.NewBatch(client, projection.Config{},
		func(_ context.Context, bits int64, _ projection.Run) ([]projection.Write, error) {
			return add(bits), nil
		},
		projection.Fold(func(bits *int64, e Noted, r *journal.Record) error {
			if fails(r.Number) {
				return errNotProjected
			}
			*bits += e.Bit
			return nil
		}))
}

type project func(client projection.Client, fails func(number uint64) bool) (*projection.Projection, error)

// consume starts a member that projects. Its client loses every second reply to a transaction.
func (m readModel) consume(t *testing.T, project project, policy subscriber.FailurePolicy, fails func(number uint64) bool) {
	t.Helper()
	proxy := dynamotest.NewProxy(t, m.client)
	client := proxy.Client(testdb.Once)
	p, err := project(client, fails)
	require.NoError(t, err)
	config := shortLease(open(t, client))
	config.Failures = policy
	_, messages := subscribe(t, config)
	eventually(t, "it is a member", func() bool { return len(membership(t, m.j).Members) > 0 })
	var calls atomic.Int64
	proxy.Inject(dynamotest.LoseReply(), dynamotest.On("TransactWriteItems"), dynamotest.Matching(func(string, any) bool {
		return calls.Add(1)%2 == 1
	}))
	go func() {
		for msg := range messages {
			go answer(msg, p.Handle)
		}
	}()
}

func answer(msg *message.Message, handle func(*message.Message) error) {
	if handle(msg) == nil {
		msg.Ack()
	} else {
		msg.Nack()
	}
}

func upTo(n uint64, without ...uint64) (numbers []uint64) {
	left := map[uint64]bool{}
	for _, w := range without {
		left[w] = true
	}
	for i := uint64(1); i <= n; i++ {
		if !left[i] {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

func TestAProjectionAppliesEachEventOnceOrItIsSkippedWithARecord(t *testing.T) {
	t.Parallel()
	for name, project := range map[string]project{"one by one": oneByOne, "in runs": inRuns} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const events, round = 40, 8
			m := newReadModel(t, events)
			// Reactions to events after most wait, and waiting counts them.
			var most, waiting atomic.Uint64
			fails := func(number uint64) bool {
				for waits := false; number > most.Load(); time.Sleep(time.Millisecond) {
					if !waits {
						waits = true
						waiting.Add(1)
					}
				}
				return number%7 == 0
			}
			t.Cleanup(func() { most.Store(events) })
			m.consume(t, project, subscriber.Skip(2), fails)
			m.consume(t, project, subscriber.Skip(2), fails)
			for most.Load() < events {
				eventually(t, "an owner has the next event", func() bool { return waiting.Load() > 0 })
				waiting.Store(0)
				takeAway(t, m.j)
				eventually(t, "the next owner has it too", func() bool { return waiting.Load() > 0 })
				waiting.Store(0)
				most.Add(round)
				eventually(t, "they go on", func() bool { return stored(t, m.j) >= most.Load()-round/2 })
			}
			eventually(t, "they come to the end", func() bool { return stored(t, m.j) == events })

			assert.Equal(t, []uint64{7, 14, 21, 28, 35}, skippedNumbers(t, m.j))
			for _, e := range skipped(t, m.j) {
				assert.Contains(t, e.Reason, errNotProjected.Error())
			}
			assert.Equal(t, upTo(events, 7, 14, 21, 28, 35), m.applied(t))
		})
	}
}

func TestAProjectionThatIsStoppedAppliesEachEventOnce(t *testing.T) {
	t.Parallel()
	const events = 12
	m := newReadModel(t, events)
	var mended atomic.Bool
	fails := func(number uint64) bool { return number == 5 && !mended.Load() }
	m.consume(t, oneByOne, subscriber.Stop(3), fails)
	m.consume(t, oneByOne, subscriber.Stop(3), fails)
	g := groups.Of(m.j, "group", topic)
	eventually(t, "the first four are applied", func() bool { return stored(t, m.j) == 4 })
	takeAway(t, m.j)
	atRest(t, m.j)
	assert.Equal(t, upTo(4), m.applied(t))
	assert.EqualValues(t, 4, stored(t, m.j))
	assert.EqualValues(t, 5, state(t, m.j).Stopped.Number)

	mended.Store(true)
	require.NoError(t, g.Resume(t.Context()))
	eventually(t, "all is done", func() bool { return stored(t, m.j) == events })
	assert.Equal(t, upTo(events), m.applied(t))
	assert.Empty(t, skipped(t, m.j))
}
