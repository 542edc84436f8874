package checkpoint_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

func TestAnOperatorEditsUnderAnEpochOfItsOwnAndFreesTheShard(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	s.create(t, []int{0, 1})
	require.NoError(t, s.Advance(t.Context(), group, x, 1, 0, 5))

	err := s.Operate(t.Context(), key, 1, func(ctx context.Context, k checkpoint.Shard, r checkpoint.Membership) error {
		assert.Equal(t, checkpoint.Shard{Group: group, Topic: "account", Number: 1}, k)
		assert.EqualValues(t, 2, r.Epochs[1])
		assert.Equal(t, []int{0}, r.Of(1), "the other shard keeps its owner")
		return s.PutPosition(ctx, group, x, r.Epochs[1], 2)
	})

	require.NoError(t, err)
	now := s.read(t)
	assert.Equal(t, []int{1}, now.Free())
	assert.Len(t, now.Members, 1, "the operator has left")
	require.ErrorIs(t, s.Advance(t.Context(), group, x, 1, 5, 6), checkpoint.ErrFenced, "the former owner's write")
	position, found, err := s.Claim(t.Context(), group, x, 3)
	require.NoError(t, err)
	assert.True(t, found)
	assert.EqualValues(t, 2, position, "the next owner's read")
}

func TestAnOperatorLearnsThatItLostTheShard(t *testing.T) {
	t.Parallel()
	for name, interfere := range map[string]func(checkpoint.Membership) checkpoint.Membership{
		"it was held for dead": func(r checkpoint.Membership) checkpoint.Membership { return r.Leave(2).Take(1, []int{0}) },
		"another operator": func(r checkpoint.Membership) checkpoint.Membership {
			r, n := r.Join(checkpoint.Member{})
			return r.Take(n, []int{0})
		},
		"a reset": func(r checkpoint.Membership) checkpoint.Membership { return r.Reset(time.Time{}, time.Now()) },
	} {
		s := setup(t, 1)
		s.create(t, []int{0})
		err := s.Operate(t.Context(), key, 0, func(ctx context.Context, _ checkpoint.Shard, _ checkpoint.Membership) error {
			_, err := s.ModifyMembership(ctx, key, func(r checkpoint.Membership) (checkpoint.Membership, error) { return interfere(r), nil })
			return err
		})
		require.ErrorIs(t, err, checkpoint.ErrFenced, name)
		assert.NotContains(t, s.read(t).Members, uint64(2), name)
	}
}

func TestAnOperatorLeavesAfterAFailedEdit(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.create(t, []int{0})
	ctx, cancel := context.WithCancel(t.Context())
	broken := errors.New("the edit failed")

	err := s.Operate(ctx, key, 0, func(context.Context, checkpoint.Shard, checkpoint.Membership) error {
		cancel()
		return broken
	})

	require.ErrorIs(t, err, broken)
	assert.Equal(t, []int{0}, s.read(t).Free())
	assert.Len(t, s.read(t).Members, 1)
	require.ErrorIs(t, s.Operate(ctx, key, 0, nil), context.Canceled)
	err = s.Operate(t.Context(), checkpoint.Key{Group: "nobody", Topic: "account"}, 0, nil)
	require.ErrorIs(t, err, checkpoint.ErrNoGroup)
}

func TestAShardWasKeptAlthoughTheReplyToFreeingItWasLost(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.create(t, []int{0})
	err := s.Operate(t.Context(), key, 0, func(context.Context, checkpoint.Shard, checkpoint.Membership) error {
		s.proxy.Inject(dynamotest.LoseReply(), dynamotest.On("UpdateItem"), dynamotest.Times(1))
		s.proxy.Inject(dynamotest.PauseReply(func(ctx context.Context) {
			_, err := s.ModifyMembership(ctx, key, func(r checkpoint.Membership) (checkpoint.Membership, error) { return r.Take(1, []int{0}), nil })
			assert.NoError(t, err)
		}), dynamotest.On("UpdateItem"), dynamotest.Times(1))
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, []int{0}, s.read(t).Of(1), "the shard stays with the member that has taken it since")
}

func TestAnEditStaysValidIfTheShardCannotBeFreed(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.create(t)
	err := s.Operate(t.Context(), key, 0, func(context.Context, checkpoint.Shard, checkpoint.Membership) error {
		s.proxy.Inject(dynamotest.Throttle(), dynamotest.On("UpdateItem"))
		return nil
	})
	require.NoError(t, err)
	assert.Len(t, s.read(t).Members, 1, "the operator is a member until others evict it")
}

func TestAnOperatorReportsThatItDoesNotKnowWhetherItKeptTheShard(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.create(t)
	err := s.Operate(t.Context(), key, 0, func(context.Context, checkpoint.Shard, checkpoint.Membership) error {
		s.proxy.Inject(dynamotest.Throttle(), dynamotest.On("GetItem"))
		return nil
	})
	require.ErrorContains(t, err, "find out whether shard 0 was kept")
	require.NotErrorIs(t, err, checkpoint.ErrFenced)
}

// onHeartbeat matches the heartbeats of members and operators.
var onHeartbeat = dynamotest.Matching(func(_ string, in any) bool {
	update, is := in.(*dynamodb.UpdateItemInput)
	return is && strings.HasSuffix(*update.UpdateExpression, "#heartbeat = :heartbeat")
})

func TestAnOperatorWhoseHeartbeatsFailSaysWhyItLostTheShard(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1, testdb.Once)
		s.create(t, []int{0})
		throttled := s.proxy.Inject(dynamotest.Throttle(), onHeartbeat)

		err := s.Operate(t.Context(), key, 0, func(ctx context.Context, _ checkpoint.Shard, _ checkpoint.Membership) error {
			time.Sleep(time.Minute)
			_, err := s.ModifyMembership(ctx, key, func(r checkpoint.Membership) (checkpoint.Membership, error) { return r.Leave(2).Take(1, []int{0}), nil })
			return err
		})

		require.ErrorIs(t, err, checkpoint.ErrFenced)
		require.ErrorIs(t, err, journal.ErrThrottled)
		require.ErrorContains(t, err, "could not renew its lease")
		assert.Positive(t, throttled.Fired())
	})
}

func TestAnEditThatTheLossOfItsShardEndsIsFenced(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		s.create(t, []int{0})
		err := s.Operate(t.Context(), key, 0, func(ctx context.Context, _ checkpoint.Shard, _ checkpoint.Membership) error {
			_, err := s.ModifyMembership(ctx, key, func(r checkpoint.Membership) (checkpoint.Membership, error) { return r.Leave(2).Take(1, []int{0}), nil })
			require.NoError(t, err)
			<-ctx.Done() // the next heartbeat shows the loss
			return ctx.Err()
		})
		require.ErrorIs(t, err, checkpoint.ErrFenced)
		require.NotErrorIs(t, err, context.Canceled)
	})
}

func TestAnOperatorJoinsOnceAfterALostReplyAndAChange(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	s.create(t, []int{0, 1})
	lost := s.proxy.Inject(dynamotest.LoseReply(), dynamotest.On("UpdateItem"), dynamotest.Times(1))
	// The reply is held back before the client sends the request again.
	s.proxy.Inject(dynamotest.PauseReply(func(ctx context.Context) {
		_, err := s.ModifyMembership(ctx, key, func(r checkpoint.Membership) (checkpoint.Membership, error) { return r.Pause(), nil })
		assert.NoError(t, err)
	}), dynamotest.On("UpdateItem"), dynamotest.Times(1))

	err := s.Operate(t.Context(), key, 1, func(_ context.Context, _ checkpoint.Shard, r checkpoint.Membership) error {
		assert.Len(t, r.Members, 2, "the member and one operator")
		assert.EqualValues(t, 2, r.Epochs[1], "the shard is taken once")
		return nil
	})

	require.NoError(t, err)
	assert.Equal(t, 1, lost.Fired())
	assert.Len(t, s.read(t).Members, 1, "no operator stays")
}

func TestAnOperatorThatDoesNotLearnThatItJoinedLeaves(t *testing.T) {
	t.Parallel()
	s := setup(t, 1, testdb.Once)
	s.create(t, []int{0})
	s.proxy.Inject(dynamotest.LoseReply(), dynamotest.On("UpdateItem"), dynamotest.Times(1))

	err := s.Operate(t.Context(), key, 0, nil)

	require.ErrorIs(t, err, journal.ErrUnavailable)
	assert.Len(t, s.read(t).Members, 1)
	assert.Equal(t, []int{0}, s.read(t).Free())
}
