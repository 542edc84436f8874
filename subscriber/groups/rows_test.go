package groups_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

type paid struct{ Amount int }

func (paid) EventType() string { return "paid" }

// bills is a read model whose rows are the positions.
type bills struct {
	store
	client *dynamodb.Client
	fails  atomic.Int64 // the amount that cannot be handled, 0 for none
}

var billTable = projection.RowTable{
	Table: projection.Table{Name: "bills", PartitionKey: "pk", SortKey: "sk"}, Prefix: "account#", Sort: "bill",
}

func newBills(t *testing.T, client *dynamodb.Client) *bills {
	t.Helper()
	require.NoError(t, projection.CreateTable(t.Context(), client, billTable.Table))
	return &bills{store: open(t, client, journal.Config{}), client: client}
}

func (b *bills) rows(t *testing.T, client projection.RowClient) *projection.Rows {
	t.Helper()
	rows, err := projection.NewRows(client, billTable, projection.Config{}, projection.OnRow(
		func(_ context.Context, e paid, _ *journal.Record) (projection.RowUpdate, error) {
			if int64(e.Amount) == b.fails.Load() {
				return projection.RowUpdate{}, errors.New("broken")
			}
			return projection.RowUpdate{
				Expression: "ADD due :a", Values: map[string]types.AttributeValue{":a": &types.AttributeValueMemberN{Value: fmt.Sprint(e.Amount)}},
			}, nil
		}))
	require.NoError(t, err)
	return rows
}

// pay appends n events, each with its number as the amount.
func (b *bills) pay(t *testing.T, id string, after, n int) {
	t.Helper()
	commit := storage.Commit{Aggregate: account(id), Expected: uint64(after)}
	for i := range n {
		commit.Events = append(commit.Events, storage.Event{Type: "paid", Payload: fmt.Appendf(nil, `{"Amount":%d}`, after+i+1)})
	}
	testjournal.Append(t, b.Journal, commit)
}

// follow starts a member.
func (b *bills) follow(t *testing.T, config subscriber.Config) *subscriber.Subscriber {
	t.Helper()
	rows := b.rows(t, b.client)
	config.Positions = rows
	sub, messages := subscribe(t, config)
	go func() {
		for msg := range messages {
			go func(msg *message.Message) {
				if rows.Handle(msg) == nil {
					msg.Ack()
				} else {
					msg.Nack()
				}
			}(msg)
		}
	}()
	return sub
}

func (b *bills) row(t *testing.T, id string) map[string]types.AttributeValue {
	t.Helper()
	out, err := b.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("bills"), Key: billTable.Key(account(id)), ConsistentRead: aws.Bool(true)})
	require.NoError(t, err)
	return out.Item
}

// is reports whether a row is at a number and has a total.
func (b *bills) is(t *testing.T, id string, number, due int) bool {
	t.Helper()
	row := b.row(t, id)
	return assert.ObjectsAreEqual(&types.AttributeValueMemberN{Value: fmt.Sprint(number)}, row["millrace_number"]) &&
		assert.ObjectsAreEqual(&types.AttributeValueMemberN{Value: fmt.Sprint(due)}, row["due"])
}

func TestToolsFindThePositionsInTheRows(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 2, func(t *testing.T, client *dynamodb.Client) {
		b := newBills(t, client)
		b.fails.Store(2)
		b.pay(t, "x", 0, 3)
		b.pay(t, "y", 0, 1)
		config := b.alone()
		config.Failures = subscriber.Park(1)
		b.follow(t, config)
		b.parked(t, 1)
		b.waitApplied(t, "y", 1)

		status := mustGet(t, b)
		assert.False(t, status.ExternalPositions)
		assert.Equal(t, "bills", status.RowTable)
		position, err := b.Position(t.Context(), group, account("x"))
		require.NoError(t, err)
		assert.EqualValues(t, 1, position)
		lag, err := b.Lag(t.Context(), groups.LagOptions{})
		require.NoError(t, err)
		assert.EqualValues(t, 2, lag.Events)
		assert.Equal(t, 1, lag.Parked)
		estimate, err := b.Estimate(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 2, estimate.Events)

		b.fails.Store(0)
		require.NoError(t, b.Unpark(t.Context(), group, account("x")))
		b.waitApplied(t, "x", 3)
		assert.True(t, b.is(t, "x", 3, 6))
		trimmed, err := b.Trim(t.Context(), topic, groups.TrimOptions{DryRun: true, Keep: 10 * time.Minute})
		require.NoError(t, err)
		assert.Equal(t, 2, trimmed.Aggregates)
	})
}

func TestAnEventOfARowIsSkippedByAnOperator(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		b := newBills(t, client)
		b.fails.Store(2)
		for _, id := range []string{"x", "y", "z"} {
			b.pay(t, id, 0, 3)
		}
		config := b.alone()
		config.Failures = subscriber.Park(1)
		b.follow(t, config)
		b.parked(t, 3)

		require.ErrorAs(t, b.Skip(t.Context(), group, account("x"), 1), new(*groups.NotNextError))
		require.NoError(t, b.Skip(t.Context(), group, account("x"), 2))
		b.waitApplied(t, "x", 3)
		assert.True(t, b.is(t, "x", 3, 4))

		skipped, err := b.SkipAll(t.Context(), groups.Selection{})
		require.NoError(t, err)
		assert.Equal(t, 2, skipped)
		for _, id := range []string{"y", "z"} {
			b.waitApplied(t, id, 3)
			assert.True(t, b.is(t, id, 3, 4), id)
		}
		records, err := collect(b.Skipped(t.Context(), aggregate.ID{}, 0))
		require.NoError(t, err)
		assert.Len(t, records, 3)
	})
}

// The row was deleted after the aggregate was parked, so the effects of the events before are gone.
func TestASkipDoesNotPassOverTheEventsOfADeletedRow(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		b := newBills(t, client)
		b.fails.Store(3)
		b.pay(t, "x", 0, 4)
		config := b.alone()
		config.Failures = subscriber.Park(1)
		b.follow(t, config)
		assert.EqualValues(t, 3, b.parked(t, 1)[0].Next)
		_, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("bills"), Key: billTable.Key(account("x"))})
		require.NoError(t, err)

		assert.EqualValues(t, 1, b.parked(t, 1)[0].Next)
		var wrong *groups.NotNextError
		require.ErrorAs(t, b.Skip(t.Context(), group, account("x"), 3), &wrong)
		assert.EqualValues(t, 1, wrong.Next)
		skipped, err := b.SkipAll(t.Context(), groups.Selection{})
		require.NoError(t, err)
		assert.Zero(t, skipped)

		require.NoError(t, b.Unpark(t.Context(), group, account("x")))
		eventually(t, "it is parked again", func() bool { return b.is(t, "x", 2, 3) && b.parked(t, 1)[0].Next == 3 })
		require.NoError(t, b.Skip(t.Context(), group, account("x"), 3))
		b.waitApplied(t, "x", 4)
		assert.True(t, b.is(t, "x", 4, 1+2+4))
	})
}

func TestThePolicySkipMovesTheRow(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dynamotest.Fault{
		"without faults": dynamotest.Latency(0, time.Millisecond), "the reply is lost": dynamotest.LoseReply(),
		"late": dynamotest.LateBy(0, time.Second), "not sent": dynamotest.CutConnection(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
				proxy := dynamotest.NewProxy(t, client)
				b := newBills(t, proxy.Client())
				b.fails.Store(2)
				b.pay(t, "x", 0, 3)
				config := b.alone()
				config.Failures = subscriber.Skip(2)
				proxy.Inject(fault, dynamotest.On("TransactWriteItems"), dynamotest.Table("bills"), dynamotest.Times(2))
				sub := b.follow(t, config)
				b.waitApplied(t, "x", 3)
				assert.True(t, b.is(t, "x", 3, 4))
				records, err := collect(b.Skipped(t.Context(), aggregate.ID{}, 0))
				require.NoError(t, err)
				assert.Len(t, records, 1)
				require.NoError(t, sub.Close())
				assert.EqualValues(t, 1, sub.Stats().Skipped)
			})
		})
	}
}

func TestAnAggregateIsResetWithItsRow(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		b := newBills(t, client)
		b.pay(t, "x", 0, 3)
		b.follow(t, b.alone())
		b.waitApplied(t, "x", 3)

		require.ErrorIs(t, b.ResetAggregate(t.Context(), group, account("x"), 2), groups.ErrRowAhead)
		assert.True(t, b.is(t, "x", 3, 6))
		require.NoError(t, b.ResetAggregate(t.Context(), group, account("x"), 0))
		b.waitApplied(t, "x", 3)
		assert.True(t, b.is(t, "x", 3, 6), "it was built again, and not continued")

		b.fails.Store(4)
		b.pay(t, "x", 3, 3)
		require.NoError(t, b.ResetAggregate(t.Context(), group, account("x"), 5))
		b.waitApplied(t, "x", 6)
		assert.True(t, b.is(t, "x", 6, 6+6), "events 4 and 5 are left out")
	})
}

// handleThree applies three events of aggregate x, by a member that has left the group afterwards.
func (b *bills) handleThree(t *testing.T) {
	t.Helper()
	b.pay(t, "x", 0, 3)
	sub := b.follow(t, b.alone())
	b.waitApplied(t, "x", 3)
	require.NoError(t, sub.Close())
}

func TestAReconciliationFindsDeletedRows(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		b := newBills(t, client)
		b.handleThree(t)
		_, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("bills"), Key: billTable.Key(account("x"))})
		require.NoError(t, err)
		lag, err := b.Lag(t.Context(), groups.LagOptions{})
		require.NoError(t, err)
		assert.EqualValues(t, 3, lag.Events)

		config := b.alone()
		config.Timing.ReconcileInterval = time.Minute
		b.follow(t, config)
		require.NoError(t, b.Reconcile(t.Context()))
		require.NoError(t, b.WaitReconciled(t.Context(), nil))
		b.waitApplied(t, "x", 3)
		assert.True(t, b.is(t, "x", 3, 6))
	})
}

func TestALateUpdateOfAKilledMemberFailsOnceTheGroupIsIdle(t *testing.T) {
	t.Parallel()
	for name, terms := range map[string]int{"in the first term, which claims nothing": 0, "in a later term": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) { lateUpdate(t, client, terms) })
		})
	}
}

func lateUpdate(t *testing.T, client *dynamodb.Client, terms int) {
	t.Helper()
	b := newBills(t, client)
	for range terms {
		require.NoError(t, b.follow(t, b.quick()).Close())
	}
	b.pay(t, "x", 0, 1)
	proxy := dynamotest.NewProxy(t, client)
	dying := &bills{store: open(t, proxy.Client(), journal.Config{}), client: proxy.Client()}
	late := proxy.Inject(dynamotest.Late(), dynamotest.On("UpdateItem"), dynamotest.Matching(func(_ string, in any) bool {
		_, moves := in.(*dynamodb.UpdateItemInput).ExpressionAttributeValues[":millrace_to"]
		return moves
	}))
	dying.follow(t, dying.quick())
	eventually(t, "an update is on its way", func() bool { return late.Fired() > 0 })
	proxy.Inject(dynamotest.CutConnection()) // like a crash
	require.NoError(t, b.Pause(t.Context()))
	b.follow(t, b.quick()) // it evicts the other

	require.NoError(t, b.WaitIdle(t.Context()))
	before := b.row(t, "x")
	require.Positive(t, late.Arrive())
	assert.Equal(t, before, b.row(t, "x"))
	require.NoError(t, b.Resume(t.Context()))
	b.waitApplied(t, "x", 1)
	assert.True(t, b.is(t, "x", 1, 1))
}

// The first owner after a reset claims each position before it moves it.
func TestAWaitForAnIdleGroupEmptiesNoRowOfBeforeAReset(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		b := newBills(t, client)
		b.handleThree(t)
		before := b.row(t, "x")
		require.NoError(t, b.Reset(t.Context(), subscriber.Beginning(), nil))
		proxy := dynamotest.NewProxy(t, client)
		dying := &bills{store: open(t, proxy.Client(), journal.Config{}), client: proxy.Client()}
		claims := proxy.Inject(dynamotest.CutConnection(), dynamotest.On("UpdateItem"), dynamotest.Table("bills"))
		dying.follow(t, dying.quick())
		eventually(t, "a claim has failed", func() bool { return claims.Fired() > 0 })
		proxy.Inject(dynamotest.CutConnection()) // like a crash
		require.NoError(t, b.Pause(t.Context()))
		b.follow(t, b.quick()) // it evicts the other

		require.NoError(t, b.WaitIdle(t.Context()))

		assert.Equal(t, before, b.row(t, "x"))
	})
}

func TestAGroupHasPositionsAtOnePlace(t *testing.T) {
	t.Parallel()
	eachLayoutInFakeTime(t, 1, func(t *testing.T, client *dynamodb.Client) {
		b := newBills(t, client)
		b.pay(t, "x", 0, 2)
		join := func(positions subscriber.PositionStore) error {
			config := b.quick()
			config.Positions = positions
			sub, err := subscriber.NewSubscriber(config, nil)
			require.NoError(t, err)
			defer func() { require.NoError(t, sub.Close()) }()
			_, err = sub.Subscribe(t.Context(), topic)
			if err == nil {
				require.NoError(t, sub.WaitJoined(t.Context()))
			}
			return err
		}
		other := billTable
		other.Prefix = "other#"
		elsewhere, err := projection.NewRows(client, other, projection.Config{})
		require.NoError(t, err)

		var refused *subscriber.PositionsError
		sub := b.follow(t, b.quick())
		b.waitApplied(t, "x", 2)
		require.ErrorAs(t, join(nil), &refused)
		assert.Contains(t, refused.Stored, `"bills"`)
		require.ErrorAs(t, join(elsewhere), &refused)
		require.NoError(t, sub.Close())
		require.ErrorAs(t, join(nil), &refused, "also without members")
		require.NoError(t, join(b.rows(t, client)), "with the same rows")

		require.NoError(t, b.Reset(t.Context(), subscriber.Beginning(), nil))
		require.NoError(t, join(nil), "since the reset there are no positions")
		require.ErrorAs(t, join(b.rows(t, client)), &refused)
		assert.Empty(t, mustGet(t, b).RowTable)
	})
}

func TestEventsOfRowsCannotBeDeferred(t *testing.T) {
	t.Parallel()
	b := newBills(t, create(t, 1))
	config := b.quick()
	config.Positions, config.Failures = b.rows(t, b.client), subscriber.Defer(subscriber.Backoff{})
	_, err := subscriber.NewSubscriber(config, nil)
	require.ErrorAs(t, err, new(*subscriber.ConfigError))
}
