package checkpoint_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/checkpoint"
)

func TestAResetGenerationIsDueOnceTheFenceTimeHasPassed(t *testing.T) {
	t.Parallel()
	random, now := rand.New(rand.NewPCG(1, 2)), time.Unix(1_700_000_000, 0)
	r := checkpoint.NewMembership(1, time.Time{})
	var ended []time.Time
	var latest time.Time // of all clocks
	for range 3000 {
		now = now.Add(time.Duration(random.ExpFloat64() * float64(20*time.Minute)))
		if random.IntN(20) == 0 {
			now = now.Add(-10 * time.Minute) // the clock was set back, or is another one
		}
		r = r.Reset(time.Time{}, now)
		ended = append(ended, now)
		first, before := r.Ended.Due(now)
		require.Zero(t, first)
		for _, at := range ended[:before] {
			require.False(t, now.Before(at.Add(checkpoint.FenceTime)), "too early")
		}
		if now.After(latest) {
			latest = now
		}
		_, before = r.Ended.Due(latest)
		for _, at := range ended[before:] {
			require.True(t, latest.Before(at.Add(checkpoint.FenceTime+2*time.Hour)), "too late")
		}
	}
	assert.WithinRange(t, r.Ended.Until(), now.Add(checkpoint.FenceTime), now.Add(checkpoint.FenceTime+2*time.Hour))
}

func TestEndedGenerationsAreStoredUntilTheirRowsAreDeleted(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	now := time.Unix(1_700_000_000, 0)
	seen := s.create(t)
	for range 200 { // more than a day, so the row must stay small
		now = now.Add(10 * time.Minute)
		seen = seen.Reset(time.Time{}, now)
	}
	s.change(t, key, s.read(t), seen)
	assert.Equal(t, seen.Ended, s.read(t).Ended)
	ended, err := s.Ended(t.Context(), key)
	require.NoError(t, err)
	assert.Equal(t, seen.Ended, ended)
	first, before := ended.Due(now)
	require.Less(t, first, before)

	require.NoError(t, s.Forget(t.Context(), key, ended, before))
	left := s.read(t).Ended
	again, none := left.Due(now)
	assert.Equal(t, []uint64{before, before}, []uint64{again, none})
	assert.Equal(t, ended.Until(), left.Until())

	require.NoError(t, s.RemoveMembership(t.Context(), key, s.read(t), now))
	removed, err := s.Removed(t.Context())
	require.NoError(t, err)
	again, before = removed[key].Due(now.Add(checkpoint.FenceTime + time.Hour))
	assert.Equal(t, []uint64{none, 201}, []uint64{again, before})
	stale := removed[key]
	require.NoError(t, s.Forget(t.Context(), key, stale, 201))
	require.NoError(t, s.Forget(t.Context(), key, stale, 150), "another operator is late")
	ended, err = s.Ended(t.Context(), key)
	require.NoError(t, err)
	assert.Zero(t, ended.Until())
	assert.EqualValues(t, 201, s.create(t).Resets)
	require.NoError(t, s.Forget(t.Context(), key, stale, 201), "the group exists again")
}

func TestARemovedGroupIsFoundBesideOneThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	require.NoError(t, s.RemoveMembership(t.Context(), key, s.create(t), time.Now()))
	_, err := s.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("checkpoint"), Item: item{
		"pkey": text("groups"), "skey": text("a/account"), "next_resets": number("1"), "ended": &types.AttributeValueMemberB{Value: []byte{0xff}},
	}})
	require.NoError(t, err)

	removed, err := s.Removed(t.Context())

	require.ErrorIs(t, err, checkpoint.ErrCorrupt)
	assert.ErrorContains(t, err, "a/account")
	assert.Len(t, removed, 1)
	assert.Contains(t, removed, key)
}
