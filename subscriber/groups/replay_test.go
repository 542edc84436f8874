package groups_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// TestAReplayNeedsAConfirmation covers groups whose effects must not happen again.
func TestAReplayNeedsAConfirmation(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 2)
		config := s.quick()
		config.NoReplay = true
		var got handled
		member := got.consume(t, config, nil)
		s.write(t, "x", 0, 5)
		eventually(t, "all were handled", func() bool { return got.count() == 5 })
		s.caughtUp(t)
		assert.True(t, mustGet(t, s).NoReplay)

		confirmed := groups.New(s.Journal, groups.WithReplay())
		for name, replay := range map[string]func(context.Context) error{
			"reset":           func(ctx context.Context) error { return s.Reset(ctx, subscriber.Beginning(), nil) },
			"reset to a time": func(ctx context.Context) error { return s.Reset(ctx, subscriber.At(s.Config().Now()), nil) },
			"remove":          func(ctx context.Context) error { return s.Remove(ctx, groups.RemoveOptions{Force: true}) },
			"reset aggregate": func(ctx context.Context) error { return s.ResetAggregate(ctx, group, account("x"), 3) },
		} {
			err := replay(t.Context())
			require.ErrorAs(t, err, new(*groups.ReplayError), name)
		}
		assert.Equal(t, 5, got.count(), "nothing was changed")
		assert.EqualValues(t, 0, mustGet(t, s).Resets)

		require.NoError(t, s.ResetAggregate(t.Context(), group, account("x"), 5), "an aggregate that does not go back")
		require.NoError(t, confirmed.ResetAggregate(t.Context(), group, account("x"), 3))
		eventually(t, "two come again", func() bool { return got.count() == 7 })
		s.caughtUp(t)
		require.NoError(t, confirmed.Of(group, topic).Reset(t.Context(), subscriber.Beginning(), nil))
		eventually(t, "all come again", func() bool { return got.count() == 12 })
		require.NoError(t, s.Reset(t.Context(), subscriber.Now(), nil), "the group passes over events")
		require.NoError(t, member.Close())
		require.NoError(t, confirmed.Of(group, topic).Remove(t.Context(), groups.RemoveOptions{}))
	})
}

// TestTheLastMemberDecidesAboutReplays covers a group that is protected by a release, or no longer.
func TestTheLastMemberDecidesAboutReplays(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		s := setup(t, 2)
		var got handled
		for _, protect := range []bool{false, true, false} {
			config := s.quick()
			config.NoReplay = protect
			member := got.consume(t, config, nil)
			eventually(t, "it has joined", func() bool {
				status, err := s.Status(t.Context())
				return err == nil && status.NoReplay == protect
			})
			require.NoError(t, member.Close())
			err := s.Reset(t.Context(), subscriber.Beginning(), nil)
			assert.Equal(t, protect, err != nil, "%v", err)
		}
	})
}
