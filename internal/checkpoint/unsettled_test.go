package checkpoint_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

func TestATermIsUnsettledUnlessItsOwnerFreesTheShard(t *testing.T) {
	t.Parallel()
	r, a := checkpoint.NewRoster(3, time.Time{}).Join(checkpoint.Member{})
	r, b := r.Join(checkpoint.Member{})
	r, operator := r.Join(checkpoint.Member{Operator: true})
	r = r.Take(a, []int{0, 1, 2})
	assert.Empty(t, r.Unsettled)
	assert.Empty(t, r.Release(a, []int{0, 1, 2}).Leave(a).Unsettled)
	assert.Equal(t, []checkpoint.Term{{Shard: 1, Epoch: 1}, {Shard: 2, Epoch: 1}}, r.Release(a, []int{0}).Leave(a).Unsettled)

	r = r.Take(operator, []int{1})
	taken := checkpoint.Term{Shard: 1, Epoch: 1, Member: a}
	require.Equal(t, []checkpoint.Term{taken}, r.Unsettled)
	assert.Equal(t, []checkpoint.Term{taken}, r.Leave(operator).Unsettled, "an operator has no handlers")
	assert.Empty(t, r.Settle(taken, true).Unsettled)
	assert.Zero(t, r.UnsettledSince(1), "its owner is to settle it")
	for name, settled := range map[string]checkpoint.Roster{
		"its owner could not": r.Settle(taken, false), "its owner has left": r.Release(a, []int{0, 2}).Leave(a),
	} {
		assert.EqualValues(t, 1, settled.UnsettledSince(1), name)
		later := settled.Leave(operator).Take(b, []int{1}).Leave(b)
		assert.Equal(t, []checkpoint.Term{{Shard: 1, Epoch: 1}}, later.Unsettled, "%s: the lowest epoch counts", name)
		assert.Empty(t, later.Fenced(1).Unsettled, name)
		assert.Len(t, later.Fenced(0).Unsettled, 1, name)
		assert.Empty(t, later.Reset(time.Time{}).Unsettled, name)
	}
}

func TestUnsettledTermsAreStored(t *testing.T) {
	t.Parallel()
	s := setup(t, 300)
	s.create(t, []int{0, 299})
	want := []checkpoint.Term{{Shard: 299, Epoch: 1, Member: 1}, {Shard: 0, Epoch: 1}}
	_, err := s.ModifyRoster(t.Context(), key, func(r checkpoint.Roster) (checkpoint.Roster, error) {
		r, other := r.Join(checkpoint.Member{})
		return r.Take(other, []int{299}).Settle(checkpoint.Term{Shard: 0, Epoch: 1}, false).Release(other, []int{299}).Leave(other), nil
	})
	require.NoError(t, err)
	assert.Equal(t, want, s.read(t).Unsettled)

	_, err = s.ModifyRoster(t.Context(), key, func(r checkpoint.Roster) (checkpoint.Roster, error) {
		return r.Settle(want[0], true).Fenced(0), nil
	})
	require.NoError(t, err)
	assert.Empty(t, s.read(t).Unsettled)
}

func TestUnsettledTermsThatNobodyWroteAreCorrupt(t *testing.T) {
	t.Parallel()
	for name, value := range map[string][]byte{"cut off": {0, 1}, "an unknown shard": {9, 1, 0}, "no number": {0x80}} {
		s := setup(t, 1)
		s.put(t, "group/account", "roster", item{
			"change": text("c"), "owners": &types.AttributeValueMemberL{Value: []types.AttributeValue{number("0")}},
			"epochs":    &types.AttributeValueMemberL{Value: []types.AttributeValue{number("0")}},
			"unsettled": &types.AttributeValueMemberB{Value: value},
		})
		_, err := s.ReadRoster(t.Context(), key)
		require.ErrorIs(t, err, checkpoint.ErrCorrupt, name)
	}
}

func TestFencedTermsAreForgottenOnlyWithTheShard(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.create(t, []int{0})
	_, err := s.ModifyRoster(t.Context(), key, func(r checkpoint.Roster) (checkpoint.Roster, error) { return r.Leave(1), nil })
	require.NoError(t, err)

	err = s.Fence(t.Context(), key, 0, func(ctx context.Context, _ checkpoint.Shard, _ checkpoint.Roster) error {
		_, err := s.ModifyRoster(ctx, key, func(r checkpoint.Roster) (checkpoint.Roster, error) {
			r, other := r.Join(checkpoint.Member{})
			return r.Take(other, []int{0}), nil
		})
		return err
	})
	require.ErrorIs(t, err, checkpoint.ErrFenced)
	assert.EqualValues(t, 1, s.read(t).UnsettledSince(0))
	require.ErrorIs(t, s.Fence(t.Context(), key, 0, func(context.Context, checkpoint.Shard, checkpoint.Roster) error {
		return checkpoint.ErrCorrupt
	}), checkpoint.ErrCorrupt)
	assert.EqualValues(t, 1, s.read(t).UnsettledSince(0), "the edit failed")

	require.NoError(t, s.Fence(t.Context(), key, 0, func(context.Context, checkpoint.Shard, checkpoint.Roster) error { return nil }))
	assert.Zero(t, s.read(t).UnsettledSince(0))
}
