package checkpoint_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

const group = "group"

var (
	id    = aggregate.ID{Type: "account", Value: "x"}
	lease = checkpoint.LeaseKey{Group: group, Topic: "account"}
	shard = checkpoint.Shard{Group: group, Topic: "account", Number: 0}
)

// setup opens a store whose updates lose every reply but take effect, where lossy is true.
func setup(t *testing.T, lossy bool) *checkpoint.Store {
	t.Helper()
	var client journal.Client = testdb.Client(t)
	require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 1}))
	if lossy {
		client = &repeating{client}
	}
	j, err := journal.Open(t.Context(), client, journal.Config{})
	require.NoError(t, err)
	return checkpoint.New(j)
}

// repeating does every update twice, as the SDK does when the reply to the first attempt is lost.
type repeating struct{ journal.Client }

func (c *repeating) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	_, _ = c.Client.UpdateItem(ctx, in, opts...)
	return c.Client.UpdateItem(ctx, in, opts...)
}

func TestALeaseGoesToOneOwner(t *testing.T) {
	t.Parallel()
	s := setup(t, false)
	free, err := s.ReadLease(t.Context(), lease)
	require.NoError(t, err)
	assert.Equal(t, checkpoint.Lease{}, free)

	first, err := s.TakeLease(t.Context(), lease, "first", free)
	require.NoError(t, err)
	assert.Equal(t, checkpoint.Lease{Owner: "first", Epoch: 1}, first)
	_, err = s.TakeLease(t.Context(), lease, "second", free)
	require.ErrorIs(t, err, checkpoint.ErrFenced)

	require.NoError(t, s.RenewLease(t.Context(), lease, first))
	seen, err := s.ReadLease(t.Context(), lease)
	require.NoError(t, err)
	assert.EqualValues(t, 1, seen.Beat)
	_, err = s.TakeLease(t.Context(), lease, "second", first)
	require.ErrorIs(t, err, checkpoint.ErrFenced, "it was renewed since it was seen")

	second, err := s.TakeLease(t.Context(), lease, "second", seen)
	require.NoError(t, err)
	assert.Equal(t, checkpoint.Lease{Owner: "second", Epoch: 2}, second)
	require.ErrorIs(t, s.RenewLease(t.Context(), lease, first), checkpoint.ErrFenced)
	require.ErrorIs(t, s.ReleaseLease(t.Context(), lease, first), checkpoint.ErrFenced)

	require.NoError(t, s.ReleaseLease(t.Context(), lease, second))
	released, err := s.ReadLease(t.Context(), lease)
	require.NoError(t, err)
	assert.Empty(t, released.Owner)
	assert.EqualValues(t, 2, released.Epoch, "the next epoch is a new one")
}

func TestAPositionBelongsToTheNewestEpoch(t *testing.T) {
	t.Parallel()
	s := setup(t, false)
	position, err := s.Claim(t.Context(), group, id, 1)
	require.NoError(t, err)
	assert.Zero(t, position)
	require.NoError(t, s.Advance(t.Context(), group, id, 1, 0, 5))
	require.ErrorIs(t, s.Advance(t.Context(), group, id, 1, 0, 7), checkpoint.ErrFenced, "it is not where the caller thinks")
	require.NoError(t, s.Advance(t.Context(), group, id, 1, 5, 6))

	position, err = s.Claim(t.Context(), group, id, 2)
	require.NoError(t, err)
	assert.EqualValues(t, 6, position)
	require.ErrorIs(t, s.Advance(t.Context(), group, id, 1, 6, 7), checkpoint.ErrFenced)
	_, err = s.Claim(t.Context(), group, id, 1)
	require.ErrorIs(t, err, checkpoint.ErrFenced)
	position, err = s.Claim(t.Context(), group, id, 2)
	require.NoError(t, err)
	assert.EqualValues(t, 6, position)

	position, err = s.Claim(t.Context(), "another group", id, 1)
	require.NoError(t, err)
	assert.Zero(t, position)
}

func TestAFirstPositionNeedsNoClaimAndYieldsToOne(t *testing.T) {
	t.Parallel()
	s := setup(t, false)
	require.NoError(t, s.Advance(t.Context(), group, id, 1, 0, 5))
	require.ErrorIs(t, s.Advance(t.Context(), group, id, 1, 0, 7), checkpoint.ErrFenced, "there is a position already")
	require.NoError(t, s.Advance(t.Context(), group, id, 1, 5, 7))

	other := aggregate.ID{Type: "account", Value: "other"}
	_, err := s.Claim(t.Context(), group, other, 2)
	require.NoError(t, err)
	require.ErrorIs(t, s.Advance(t.Context(), group, other, 1, 0, 1), checkpoint.ErrFenced, "a newer epoch has claimed it")
	require.NoError(t, s.Advance(t.Context(), group, other, 2, 0, 1))
}

func TestACursorBelongsToTheNewestEpoch(t *testing.T) {
	t.Parallel()
	s := setup(t, false)
	progress, err := s.Progress(t.Context(), shard)
	require.NoError(t, err)
	assert.Equal(t, time.UnixMilli(0), progress.Cursor)
	require.NoError(t, s.SaveCursor(t.Context(), shard, 1, time.UnixMilli(77)))
	require.NoError(t, s.SaveCursor(t.Context(), shard, 2, time.UnixMilli(66)))
	require.ErrorIs(t, s.SaveCursor(t.Context(), shard, 1, time.UnixMilli(99)), checkpoint.ErrFenced)
	progress, err = s.Progress(t.Context(), shard)
	require.NoError(t, err)
	assert.Equal(t, time.UnixMilli(66), progress.Cursor)
}

func TestTheListOfThoseBehindOutlivesAnOwnerAndNotTheNextOnes(t *testing.T) {
	t.Parallel()
	s := setup(t, false)
	other := aggregate.ID{Type: "account", Value: "y/with a slash"}
	require.NoError(t, s.ListBehind(t.Context(), group, id, 1, 7))
	require.NoError(t, s.ListBehind(t.Context(), group, other, 1, 8))
	_, err := s.Claim(t.Context(), group, id, 1) // a position is no part of it
	require.NoError(t, err)
	progress, err := s.Progress(t.Context(), shard)
	require.NoError(t, err)
	assert.Equal(t, map[aggregate.ID]uint64{id: 7, other: 8}, progress.Behind)

	require.NoError(t, s.ListBehind(t.Context(), group, id, 2, 7))
	require.ErrorIs(t, s.UnlistBehind(t.Context(), group, id, 1), checkpoint.ErrFenced)
	require.NoError(t, s.UnlistBehind(t.Context(), group, id, 2))
	require.NoError(t, s.UnlistBehind(t.Context(), group, id, 2), "again")
	progress, err = s.Progress(t.Context(), shard)
	require.NoError(t, err)
	assert.Equal(t, map[aggregate.ID]uint64{other: 8}, progress.Behind)
}

func TestALostReplyIsNotTakenForAnotherOwner(t *testing.T) {
	t.Parallel()
	s := setup(t, true)
	first, err := s.TakeLease(t.Context(), lease, "first", checkpoint.Lease{})
	require.NoError(t, err)
	assert.Equal(t, "first", first.Owner)
	require.NoError(t, s.RenewLease(t.Context(), lease, first))
	_, err = s.Claim(t.Context(), group, id, first.Epoch)
	require.NoError(t, err)
	require.NoError(t, s.Advance(t.Context(), group, id, first.Epoch, 0, 3))
	require.NoError(t, s.Advance(t.Context(), group, id, first.Epoch, 3, 4))
	require.NoError(t, s.SaveCursor(t.Context(), shard, first.Epoch, time.UnixMilli(5)))
	require.NoError(t, errors.Join(s.ListBehind(t.Context(), group, id, first.Epoch, 9), s.UnlistBehind(t.Context(), group, id, first.Epoch)))
}
