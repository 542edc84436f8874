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

func TestATermIsUnfencedUnlessItsOwnerFreesTheShard(t *testing.T) {
	t.Parallel()
	r, a := checkpoint.NewMembership(3, time.Time{}).Join(checkpoint.Member{})
	r, b := r.Join(checkpoint.Member{})
	r, operator := r.Join(checkpoint.Member{Operator: true})
	r = r.Take(a, []int{0, 1, 2})
	assert.Empty(t, r.Unfenced)
	assert.Empty(t, r.Release(a, []int{0, 1, 2}).Leave(a).Unfenced)
	assert.Equal(t, []checkpoint.Term{{Shard: 1, Epoch: 1}, {Shard: 2, Epoch: 1}}, r.Release(a, []int{0}).Leave(a).Unfenced)

	r = r.Take(operator, []int{1})
	taken := checkpoint.Term{Shard: 1, Epoch: 1, Member: a}
	require.Equal(t, []checkpoint.Term{taken}, r.Unfenced)
	assert.Equal(t, []checkpoint.Term{taken}, r.Leave(operator).Unfenced, "an operator has no handlers")
	assert.Empty(t, r.EndTerm(taken, true).Unfenced)
	assert.Zero(t, r.UnfencedSince(1), "its owner has not stopped yet")
	for name, forgotten := range map[string]checkpoint.Membership{
		"its owner could not": r.EndTerm(taken, false), "its owner has left": r.Release(a, []int{0, 2}).Leave(a),
	} {
		assert.EqualValues(t, 1, forgotten.UnfencedSince(1), name)
		later := forgotten.Leave(operator).Take(b, []int{1}).Leave(b)
		assert.Equal(t, []checkpoint.Term{{Shard: 1, Epoch: 1}}, later.Unfenced, "%s: the lowest epoch counts", name)
		assert.Empty(t, later.WithoutUnfenced(1).Unfenced, name)
		assert.Len(t, later.WithoutUnfenced(0).Unfenced, 1, name)
		assert.Empty(t, later.Reset(time.Time{}, time.Now()).Unfenced, name)
	}
}

func TestUnfencedTermsAreStored(t *testing.T) {
	t.Parallel()
	s := setup(t, 300)
	s.create(t, []int{0, 299})
	want := []checkpoint.Term{{Shard: 299, Epoch: 1, Member: 1}, {Shard: 0, Epoch: 1}}
	_, err := s.ModifyMembership(t.Context(), key, func(r checkpoint.Membership) (checkpoint.Membership, error) {
		r, other := r.Join(checkpoint.Member{})
		return r.Take(other, []int{299}).EndTerm(checkpoint.Term{Shard: 0, Epoch: 1}, false).Release(other, []int{299}).Leave(other), nil
	})
	require.NoError(t, err)
	assert.Equal(t, want, s.read(t).Unfenced)

	_, err = s.ModifyMembership(t.Context(), key, func(r checkpoint.Membership) (checkpoint.Membership, error) {
		return r.EndTerm(want[0], true).WithoutUnfenced(0), nil
	})
	require.NoError(t, err)
	assert.Empty(t, s.read(t).Unfenced)
}

func TestUnfencedTermsInAnotherFormatAreCorrupt(t *testing.T) {
	t.Parallel()
	for name, value := range map[string][]byte{"cut off": {0, 1}, "an unknown shard": {9, 1, 0}, "no number": {0x80}} {
		s := setup(t, 1)
		s.put(t, "group/account", "shards", item{
			"change": text("c"), "owners": &types.AttributeValueMemberL{Value: []types.AttributeValue{number("0")}},
			"epochs":   &types.AttributeValueMemberL{Value: []types.AttributeValue{number("0")}},
			"unfenced": &types.AttributeValueMemberB{Value: value},
		})
		_, err := s.ReadMembership(t.Context(), key)
		require.ErrorIs(t, err, checkpoint.ErrCorrupt, name)
	}
}

func TestFencedTermsAreForgottenOnlyWithTheShard(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.create(t, []int{0})
	_, err := s.ModifyMembership(t.Context(), key, func(r checkpoint.Membership) (checkpoint.Membership, error) { return r.Leave(1), nil })
	require.NoError(t, err)

	err = s.Fence(t.Context(), key, 0, func(ctx context.Context, _ checkpoint.Shard, _ checkpoint.Membership) error {
		_, err := s.ModifyMembership(ctx, key, func(r checkpoint.Membership) (checkpoint.Membership, error) {
			r, other := r.Join(checkpoint.Member{})
			return r.Take(other, []int{0}), nil
		})
		return err
	})
	require.ErrorIs(t, err, checkpoint.ErrFenced)
	assert.EqualValues(t, 1, s.read(t).UnfencedSince(0))
	require.ErrorIs(t, s.Fence(t.Context(), key, 0, func(context.Context, checkpoint.Shard, checkpoint.Membership) error {
		return checkpoint.ErrCorrupt
	}), checkpoint.ErrCorrupt)
	assert.EqualValues(t, 1, s.read(t).UnfencedSince(0), "the edit failed")

	require.NoError(t, s.Fence(t.Context(), key, 0, func(context.Context, checkpoint.Shard, checkpoint.Membership) error { return nil }))
	assert.Zero(t, s.read(t).UnfencedSince(0))
}
