package groups_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestAPausedGroupDoesNothingUntilItIsResumed(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 4)
		var got handled
		require.NoError(t, got.consume(t, s.quick(), nil).WaitJoined(t.Context()))
		require.NoError(t, got.consume(t, s.quick(), nil).WaitJoined(t.Context()))
		s.write(t, "x", 0, 2)
		eventually(t, "the events were handled", func() bool { return got.count() == 2 })

		require.NoError(t, s.Pause(t.Context()))
		require.NoError(t, s.Pause(t.Context()), "it is paused already")
		require.NoError(t, s.WaitIdle(t.Context()))
		g := mustGet(t, s)
		assert.True(t, g.Paused)
		assert.Len(t, g.Free(), 4)
		assert.Len(t, g.Members, 2, "they stand by")

		s.write(t, "x", 2, 1)
		s.write(t, "y", 0, 1)
		got.consume(t, s.quick(), nil)
		heartbeats := map[uint64]uint64{}
		eventually(t, "all members have looked several times since", func() bool {
			looked := 0
			for number, now := range s.heartbeats(t) {
				if _, seen := heartbeats[number]; !seen {
					heartbeats[number] = now
				}
				if now >= heartbeats[number]+2 {
					looked++
				}
			}
			return looked == 3
		})
		assert.Equal(t, 2, got.count(), "nothing came")

		require.NoError(t, s.Resume(t.Context()))
		eventually(t, "the group continues", func() bool { return got.count() == 4 })
		assert.Equal(t, expect("x", 1, 3), got.of("x"))
		assert.Equal(t, expect("y", 1, 1), got.of("y"))
	})
}

func TestAPauseLetsHandlersFinish(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		config := s.quick()
		config.CloseTimeout = patience
		_, messages := subscribe(t, config)
		s.write(t, "x", 0, 2)
		msg := receive(t, messages)
		require.NoError(t, s.Pause(t.Context()))
		brief, cancel := context.WithTimeout(t.Context(), config.Timing.LeaseDuration/2)
		defer cancel()
		require.ErrorAs(t, s.WaitIdle(brief), new(*groups.ActiveError), "a message is out")

		require.NoError(t, msg.Context().Err())
		msg.Ack()
		require.NoError(t, s.WaitIdle(t.Context()))
		lag, err := s.Lag(t.Context(), groups.LagOptions{})
		require.NoError(t, err)
		assert.EqualValues(t, 1, lag.Events, "the ack was stored")
	})
}

func TestWhoWaitsInVainIsToldWhoWorks(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 2)
		k := checkpoint.Key{Group: group, Topic: topic}
		crashed, number := checkpoint.NewMembership(2, time.Time{}).Join(checkpoint.Member{})
		_, err := checkpoint.New(s.Journal).ChangeMembership(t.Context(), k, checkpoint.Membership{}, crashed.Take(number, []int{1}))
		require.NoError(t, err)
		require.NoError(t, s.Pause(t.Context()))

		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		err = s.WaitIdle(ctx)

		require.ErrorIs(t, err, context.DeadlineExceeded)
		var active *groups.ActiveError
		require.ErrorAs(t, err, &active)
		assert.Equal(t, []uint64{number}, active.Members)
		assert.Equal(t, []int{1}, active.Shards)
	})
}
