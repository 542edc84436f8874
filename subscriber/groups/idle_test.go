package groups_test

import (
	"context"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// unfenced is a group on one shard. Its member has sent the transaction of a handler, which has not
// reached the database.
type unfenced struct {
	store
	db     *dynamotest.DB
	proxy  *dynamotest.Proxy // the member's client
	late   *dynamotest.Injection
	member *subscriber.Subscriber
}

// newUnfenced returns a group that has handled the events of x up to a number. The effect of the
// next event is an item "effect" of the checkpoint table.
func newUnfenced(t *testing.T, handled int) *unfenced {
	t.Helper()
	u := &unfenced{db: dynamotest.New(t)}
	require.NoError(t, journal.Create(t.Context(), u.db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
	u.store = open(t, u.db.Client(), journal.Config{})
	if handled > 0 { // another member handles them, so that this member claims the position
		u.owned(t)
		u.write(t, "x", 0, handled)
		u.acked(t, "x", uint64(handled))
		_, err := checkpoint.New(u.Journal).ModifyMembership(t.Context(), rivalsWork, func(r checkpoint.Membership) (checkpoint.Membership, error) {
			return r.Release(1, []int{0}).Leave(1), nil
		})
		require.NoError(t, err)
	}
	u.proxy = dynamotest.NewProxy(t, u.db.Client())
	config := u.quick()
	config.Journal = open(t, u.proxy.Client(testdb.Once), journal.Config{}).Journal
	config.AckDeadline = time.Hour
	u.late = u.proxy.Inject(dynamotest.Late(), dynamotest.On("TransactWriteItems"), dynamotest.Times(1),
		dynamotest.Matching(func(_ string, in any) bool {
			return len(in.(*dynamodb.TransactWriteItemsInput).TransactItems) == 2 && u.isEffect(in)
		}))
	var messages <-chan *message.Message
	u.member, messages = subscribe(t, config)
	u.write(t, "x", handled, 1)
	msg := receive(t, messages)
	position, found := subscriber.PositionFromContext(msg.Context())
	require.True(t, found)
	require.Error(t, position.Commit(t.Context(), func(ctx context.Context, a subscriber.Advance) error {
		_, err := config.Journal.Client().TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{a.Item, {
			Put: &types.Put{TableName: aws.String("checkpoint"), Item: effect()},
		}}})
		return err
	}))
	require.Equal(t, 1, u.late.Fired())
	return u
}

func effect() map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pkey": &types.AttributeValueMemberS{Value: "effect"}, "skey": &types.AttributeValueMemberS{Value: "effect"},
	}
}

func (u *unfenced) isEffect(in any) bool {
	put := in.(*dynamodb.TransactWriteItemsInput).TransactItems[1].Put
	return put != nil && text(put.Item["pkey"]) == "effect"
}

// never lets the transaction arrive. It must have no effect.
func (u *unfenced) never(t *testing.T) {
	t.Helper()
	before, err := u.Position(t.Context(), group, account("x"))
	require.NoError(t, err)
	require.Equal(t, 1, u.late.Arrive())
	out, err := u.Client().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("checkpoint"), Key: effect()})
	require.NoError(t, err)
	assert.Empty(t, out.Item, "it has committed")
	after, err := u.Position(t.Context(), group, account("x"))
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

func (u *unfenced) terms(t *testing.T) []checkpoint.Term {
	t.Helper()
	membership, err := checkpoint.New(u.Journal).ReadMembership(t.Context(), rivalsWork)
	require.NoError(t, err)
	return membership.Unfenced
}

func TestATransactionOfAnEvictedMemberNeverCommitsOnceTheGroupIsIdle(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		for name, before := range map[string]int{"in the first term, which claims nothing": 0, "in a later term": 2} {
			u := newUnfenced(t, before)
			u.proxy.Inject(dynamotest.CutConnection()) // like a crash
			var got handled
			got.consume(t, u.quick(), nil)
			require.NoError(t, u.Pause(t.Context()))

			require.NoError(t, u.WaitIdle(t.Context()), name)

			assert.Empty(t, u.terms(t), name)
			u.never(t)
			require.NoError(t, u.Resume(t.Context()))
			eventually(t, "the other member handles the event", func() bool { return got.count() == 1 })
		}
	})
}

func TestATransactionOfAMemberThatLostItsShardNeverCommitsOnceTheGroupIsIdle(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		u := newUnfenced(t, 2)
		// No heartbeat of the member succeeds until WaitIdle has read the group.
		deaf := u.proxy.Inject(dynamotest.CutConnection(), dynamotest.On("UpdateItem"))
		require.NoError(t, checkpoint.New(u.Journal).Operate(t.Context(), rivalsWork, 0,
			func(context.Context, checkpoint.Shard, checkpoint.Membership) error { return nil }))
		require.NoError(t, u.Pause(t.Context()))
		assert.Equal(t, []checkpoint.Term{{Shard: 0, Epoch: 2, Member: 2}}, u.terms(t))
		brief, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var active *groups.ActiveError
		require.ErrorAs(t, u.WaitIdle(brief), &active, "the member does not know yet")
		assert.Equal(t, []int{0}, active.Shards)
		deaf.Remove()

		require.NoError(t, u.WaitIdle(t.Context()))

		assert.Empty(t, u.terms(t))
		u.never(t)
	})
}

func TestATransactionThatItsMemberCouldNotShutOutNeverCommitsOnceTheGroupIsIdle(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		u := newUnfenced(t, 2)
		refused := u.proxy.Inject(dynamotest.Throttle(), dynamotest.On("UpdateItem"), dynamotest.Matching(func(_ string, in any) bool {
			return text(in.(*dynamodb.UpdateItemInput).Key["skey"]) == "position/x-0"
		}))
		require.NoError(t, u.member.Close())
		require.NotZero(t, refused.Fired())
		assert.Equal(t, []checkpoint.Term{{Shard: 0, Epoch: 2}}, u.terms(t))

		require.NoError(t, u.WaitIdle(t.Context()))

		assert.Empty(t, u.terms(t))
		u.never(t)
	})
}

func TestAMemberThatClosesLeavesNothingToFence(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		u := newUnfenced(t, 2)

		require.NoError(t, u.member.Close())

		assert.Empty(t, u.terms(t))
		u.never(t)
	})
}

func TestFencingCostsAWriteForEachAggregateHandledSince(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
		s := open(t, db.Client(), journal.Config{})
		s.owned(t)
		rows := checkpoint.New(s.Journal)
		for n := range 100 {
			s.acked(t, string(rune('0'+n)), 1)
		}
		evict := func(r checkpoint.Membership) (checkpoint.Membership, error) {
			r, member := r.Join(checkpoint.Member{})
			return r.Take(member, []int{0}).Leave(member), nil
		}
		_, err := rows.ModifyMembership(t.Context(), rivalsWork, func(r checkpoint.Membership) (checkpoint.Membership, error) {
			return evict(r.Release(1, []int{0}).Leave(1))
		})
		require.NoError(t, err)
		for n := range 7 {
			_, _, err := rows.Claim(t.Context(), rivals, account(string(rune('0'+n))), 2)
			require.NoError(t, err)
		}
		recording := db.Record()
		defer recording.Stop()

		require.NoError(t, s.WaitIdle(t.Context()))

		_, write := recording.Units()
		assert.InDelta(t, 7+2, write, 0.1, "the aggregates, and the membership twice")
		recording.Reset()
		require.NoError(t, s.WaitIdle(t.Context()))
		assert.Equal(t, map[string]int{"GetItem": 1}, recording.Counts())
	})
}

func TestAShardWhoseFencingFailsStaysUnfenced(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		u := newUnfenced(t, 2)
		u.proxy.Inject(dynamotest.CutConnection())
		got := handled{}
		got.consume(t, u.quick(), nil)
		require.NoError(t, u.Pause(t.Context()))
		refused := u.db.Inject(dynamotest.Throttle(), dynamotest.On("UpdateItem"), dynamotest.Matching(func(_ string, in any) bool {
			return text(in.(*dynamodb.UpdateItemInput).Key["skey"]) == "position/x-0"
		}))

		require.ErrorIs(t, u.WaitIdle(t.Context()), journal.ErrThrottled)

		assert.NotEmpty(t, u.terms(t))
		refused.Remove()
		require.NoError(t, u.WaitIdle(t.Context()))
		u.never(t)
	})
}
