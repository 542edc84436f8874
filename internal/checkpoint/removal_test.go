package checkpoint_test

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
)

// corruptHead leaves a head without a version.
func (s store) corruptHead(t *testing.T, id aggregate.ID) {
	t.Helper()
	_, err := s.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName:        aws.String(s.journal.Config().Tables.Snapshot),
		Key:              item{"pkey": text(fmt.Sprintf("%s-%d", id.Type, s.journal.Internal().Shard(id))), "skey": text(id.String() + "-0")},
		UpdateExpression: aws.String("REMOVE version"),
	})
	require.NoError(t, err)
}

func TestAShardIsRemovedCompletelyIfDynamoDBLeavesSomeRows(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	for n := range 60 {
		require.NoError(t, s.PutPosition(t.Context(), group, account(fmt.Sprintf("a%d", n)), 1, 1))
	}
	require.NoError(t, s.ListBehind(t.Context(), group, checkpoint.Revision{Epoch: 1}, checkpoint.Behind{Aggregate: x}))
	require.NoError(t, s.SaveCursor(t.Context(), shard, checkpoint.CursorRow{Epoch: 1, Cursor: time.UnixMilli(1), Reconciled: time.UnixMilli(1)}))
	next := checkpoint.Group{Name: "group", Resets: 1}
	require.NoError(t, s.PutPosition(t.Context(), next, x, 1, 1))
	s.proxy.Inject(dynamotest.Unprocessed(18), dynamotest.On("BatchWriteItem"), dynamotest.Times(3))
	removed := 0

	require.NoError(t, s.RemoveShard(t.Context(), shard, func(rows int) { removed += rows }))

	assert.Equal(t, 62, removed)
	assert.Zero(t, s.rows(t, "group/account-0"))
	assert.Equal(t, 1, s.rows(t, "group/account-0/1"), "after a reset")
	require.NoError(t, s.RemoveShard(t.Context(), shard, func(int) { assert.Fail(t, "there was nothing left") }))
}

func TestTheMembershipOfAnotherTopicIsNotRemovedWithAShard(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	// This is also the partition of shard 1 of the topic "account".
	other := checkpoint.Key{Group: "group", Topic: "account-1"}
	s.change(t, other, checkpoint.Membership{}, checkpoint.NewMembership(2, time.Time{}))

	require.NoError(t, s.RemoveShard(t.Context(), checkpoint.Shard{Group: group, Topic: "account", Number: 1}, func(int) {}))

	membership, err := s.ReadMembership(t.Context(), other)
	require.NoError(t, err)
	assert.True(t, membership.Exists())
}

func TestARemovalEndsAfterAnError(t *testing.T) {
	t.Parallel()
	s := setup(t, 1, testdb.Once)
	require.NoError(t, s.PutPosition(t.Context(), group, x, 1, 1))
	cut := s.proxy.Inject(dynamotest.CutConnection(), dynamotest.On("BatchWriteItem"))
	require.ErrorIs(t, s.RemoveShard(t.Context(), shard, func(int) {}), io.ErrUnexpectedEOF)
	cut.Remove()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.proxy.Inject(dynamotest.Unprocessed(25), dynamotest.On("BatchWriteItem"))
	s.proxy.Observe(func(c dynamotest.Call) {
		if c.Operation == "BatchWriteItem" {
			cancel()
		}
	})
	require.ErrorIs(t, s.RemoveShard(ctx, shard, func(int) {}), context.Canceled)
}

func TestAGroupThatIsMadeAgainReadsNoRowOfTheFormerOne(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	seen := s.create(t)
	moved := s.change(t, key, seen, seen.Reset(time.Time{}, time.Now()))
	require.ErrorIs(t, s.RemoveMembership(t.Context(), key, seen, time.Now()), checkpoint.ErrMembershipChanged)

	require.NoError(t, s.RemoveMembership(t.Context(), key, moved, time.Now()))

	assert.False(t, s.read(t).Exists())
	keys, err := s.Keys(t.Context())
	require.NoError(t, err)
	assert.Empty(t, keys)
	again := s.create(t, []int{0})
	assert.EqualValues(t, 2, again.Resets)
	assert.Equal(t, []uint64{1}, again.Epochs)
	keys, err = s.Keys(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []checkpoint.Key{key}, keys)
	require.NoError(t, s.RemoveMembership(t.Context(), key, again, time.Now()))
	assert.EqualValues(t, 3, s.create(t).Resets)
}
