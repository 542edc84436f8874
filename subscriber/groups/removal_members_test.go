package groups_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// A group that is created again numbers its members from the start. A member that notices the
// removal late must not take another member's number for its own.
func TestMembersOfARemovedGroupDoNotTakeEachOtherForThemselves(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 4)
		config := s.quick()
		config.Timing.LeaseDuration = time.Second
		subscribe(t, config)
		get := func() groups.Status {
			g := mustGet(t, s)
			return g
		}
		shared := func() bool {
			g, err := s.Status(t.Context())
			if err != nil || len(g.Members) != 2 {
				return false
			}
			held := map[uint64]int{}
			for _, shard := range g.Shards {
				held[shard.Owner]++
			}
			return held[g.Members[0].Number] == 2 && held[g.Members[1].Number] == 2
		}
		eventually(t, "the first is in", func() bool {
			g, err := s.Status(t.Context())
			return err == nil && len(g.Members) == 1 && s.heartbeats(t)[g.Members[0].Number] > 0
		})
		subscribe(t, config)
		eventually(t, "they share", shared)
		first := get().Members[0].Number
		heartbeat := s.heartbeats(t)[first]
		eventually(t, "the first has just shown that it lives, so the second learns first", func() bool { return s.heartbeats(t)[first] > heartbeat })

		require.NoError(t, s.Remove(t.Context(), groups.RemoveOptions{Force: true}))

		eventually(t, "both are in again", shared)
		before, beats := get(), s.heartbeats(t)
		eventually(t, "time goes by for both", func() bool {
			for number, now := range s.heartbeats(t) {
				if was, known := beats[number]; known && now < was+6 {
					return false
				}
			}
			return true
		})
		assert.Equal(t, before.Shards, get().Shards, "each has its own")
		assert.Len(t, get().Members, 2)
	})
}

// A process that crashes again and again can leave many members.
func TestAGroupWithHundredsOfMembersIsRemoved(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		key := checkpoint.Key{Group: group, Topic: topic}
		membership := checkpoint.NewMembership(1, time.Time{})
		for token := range uint64(300) {
			membership, _ = membership.Join(checkpoint.Member{Token: token + 1, Lease: 10 * time.Second, Heartbeat: 1})
		}
		_, err := checkpoint.New(s.Journal).ChangeMembership(t.Context(), key, checkpoint.Membership{}, membership)
		require.NoError(t, err)

		require.NoError(t, s.Remove(t.Context(), groups.RemoveOptions{Force: true}))

		_, err = s.Status(t.Context())
		require.ErrorIs(t, err, groups.ErrNoGroup)
	})
}
