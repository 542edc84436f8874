package groups_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func text(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

func TestGroupsAreListedWithTheirMembersAndShards(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 4)
		all, err := s.List(t.Context())
		require.NoError(t, err)
		require.Empty(t, all)

		config := s.quick()
		subscribe(t, config)
		subscribe(t, config)
		config.ConsumerGroup = "another"
		other, _ := subscribe(t, config)

		eventually(t, "both members have their share", func() bool {
			g, err := s.Status(t.Context())
			shares := map[uint64]int{}
			for _, shard := range g.Shards {
				shares[shard.Owner]++
			}
			return err == nil && len(g.Members) == 2 && shares[1] == 2 && shares[2] == 2
		})
		g := mustGet(t, s)
		assert.Equal(t, group, g.Name)
		assert.Equal(t, topic, g.Topic)
		assert.Len(t, g.Shards, 4)
		assert.Empty(t, g.Free())
		assert.False(t, g.Paused)

		require.NoError(t, other.WaitJoined(t.Context()))
		require.NoError(t, other.Close())
		all, err = s.List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 2)
		assert.Equal(t, "another", all[0].Name)
		assert.Empty(t, all[0].Members)
		assert.Len(t, all[0].Free(), 4)
		assert.Equal(t, group, all[1].Name)
	})
}

func TestWhatIsAskedOfAGroupThatDoesNotExistSaysSo(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	s.write(t, "x", 0, 1)
	for name, ask := range map[string]func(context.Context) error{
		"Get": func(ctx context.Context) error { _, err := s.Status(ctx); return err },
		"Lag": func(ctx context.Context) error {
			_, err := s.Lag(ctx, groups.LagOptions{})
			return err
		},
		"Estimate": func(ctx context.Context) error { _, err := s.Estimate(ctx); return err },
		"Behind": func(ctx context.Context) error {
			_, err := collect(s.Behind(ctx, aggregate.ID{}))
			return err
		},
		"Parked": func(ctx context.Context) error {
			_, err := collect(s.Parked(ctx, aggregate.ID{}))
			return err
		},
		"Pause":          s.Pause,
		"Resume":         s.Resume,
		"WaitIdle":       s.WaitIdle,
		"Reset":          func(ctx context.Context) error { return s.Reset(ctx, subscriber.Now(), nil) },
		"CleanUp":        func(ctx context.Context) error { _, err := s.CleanUp(ctx, nil); return err },
		"Remove":         func(ctx context.Context) error { return s.Remove(ctx, groups.RemoveOptions{}) },
		"Unpark":         func(ctx context.Context) error { return s.Unpark(ctx, group, account("x")) },
		"Skip":           func(ctx context.Context) error { return s.Skip(ctx, group, account("x"), 1) },
		"ResetAggregate": func(ctx context.Context) error { return s.ResetAggregate(ctx, group, account("x"), 0) },
	} {
		err := ask(t.Context())
		require.ErrorIs(t, err, groups.ErrNoGroup, name)
		assert.ErrorContains(t, err, `"group"`, name)
	}
	assert.Empty(t, s.rows(t), "nothing came into being")
}

func TestAGroupThatCannotBeReadDoesNotHideTheOthers(t *testing.T) {
	t.Parallel()
	s := setup(t, 1)
	config := s.alone()
	for _, name := range []string{"a", "b"} {
		config.ConsumerGroup = name
		sub, _ := subscribe(t, config)
		eventually(t, "the group exists", func() bool {
			_, err := s.Of(name, topic).Status(t.Context())
			return err == nil
		})
		require.NoError(t, sub.Close())
	}
	table := s.Config().Tables.Checkpoint
	_, err := s.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
		"pkey": &types.AttributeValueMemberS{Value: "a/" + topic}, "skey": &types.AttributeValueMemberS{Value: "shards"},
	}})
	require.NoError(t, err)

	all, err := s.List(t.Context())

	require.ErrorIs(t, err, groups.ErrCorrupt)
	require.Len(t, all, 1)
	assert.Equal(t, "b", all[0].Name)
}

func TestAMemberThatSendsNoHeartbeatForItsLeaseIsDead(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 1)
		for _, lease := range []time.Duration{time.Second, 10 * time.Second, time.Hour} {
			config := s.calm()
			config.Timing.LeaseDuration = lease
			sub, _ := subscribe(t, config)
			time.Sleep(10 * lease)
			dead := func(after time.Duration) bool {
				later := open(t, s.Client(), journal.Config{Now: func() time.Time { return time.Now().Add(after) }})
				g := mustGet(t, later)
				all, err := later.List(t.Context())
				require.NoError(t, err)
				assert.Equal(t, g.Members[0].Dead, all[0].Members[0].Dead)
				return g.Members[0].Dead
			}

			g := mustGet(t, s)
			require.Len(t, g.Members, 1)
			m, now := g.Members[0], time.Now()
			assert.Equal(t, lease, m.Lease)
			assert.WithinRange(t, m.LastHeartbeat, now.Add(-lease/2), now)
			assert.False(t, dead(0))
			assert.False(t, dead(lease/2))
			assert.True(t, dead(2*lease))
			require.NoError(t, sub.Close())
		}
	})
}
