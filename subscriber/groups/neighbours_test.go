package groups_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// The membership of the topic "account-0" is in the partition of shard 0 of the topic "account".
func TestTopicsWhosePartitionsCollideAreResetAndRemovedSeparately(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edited, other string
		edit          func(ctx context.Context, g *groups.Group) error
	}{
		"reset of the shorter": {"account", "account-0", func(ctx context.Context, g *groups.Group) error {
			return g.Reset(ctx, subscriber.Beginning(), nil)
		}},
		"reset of the longer": {"account-0", "account", func(ctx context.Context, g *groups.Group) error {
			return g.Reset(ctx, subscriber.Beginning(), nil)
		}},
		"removal of the shorter": {"account", "account-0", func(ctx context.Context, g *groups.Group) error {
			return g.Remove(ctx, groups.RemoveOptions{Force: true})
		}},
		"removal of the longer": {"account-0", "account", func(ctx context.Context, g *groups.Group) error {
			return g.Remove(ctx, groups.RemoveOptions{Force: true})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, 1)
			rows := checkpoint.New(s.Journal)
			for _, topic := range []string{c.edited, c.other} {
				id := aggregate.ID{Type: topic, Value: "x"}
				testjournal.Append(t, s.Journal, storage.Commit{Aggregate: id, Events: []storage.Event{{Type: "deposited", Payload: []byte("1")}}})
				_, err := rows.ChangeMembership(t.Context(), checkpoint.Key{Group: group, Topic: topic}, checkpoint.Membership{}, checkpoint.NewMembership(1, time.Time{}))
				require.NoError(t, err)
				require.NoError(t, rows.PutPosition(t.Context(), checkpoint.Group{Name: group}, id, 1, 1))
			}
			lag := func(topic string) string {
				lag, err := s.Of(group, topic).Lag(t.Context(), groups.LagOptions{})
				return fmt.Sprint(lag.Events, err)
			}
			require.Equal(t, "0 <nil>", lag(c.other))

			require.NoError(t, c.edit(t.Context(), s.Of(group, c.edited)))
			_, err := s.after(t, groups.FenceTime+time.Hour).Of(group, c.edited).CleanUp(t.Context(), nil)
			require.NoError(t, err)

			assert.Equal(t, "0 <nil>", lag(c.other))
			assert.NotEqual(t, "0 <nil>", lag(c.edited))
			list, err := s.List(t.Context())
			require.NoError(t, err)
			var topics []string
			for _, g := range list {
				topics = append(topics, g.Topic)
			}
			assert.Contains(t, topics, c.other)
		})
	}
}
