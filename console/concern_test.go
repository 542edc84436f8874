package console_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestTheMostSevereConcernComesFirst(t *testing.T) {
	t.Parallel()
	j := newJournal(t, journal.Config{})
	for _, name := range []string{"a-paused", "b-without-members"} {
		_, err := checkpoint.New(j).ChangeMembership(
			t.Context(), checkpoint.Key{Group: name, Topic: "cart"}, checkpoint.Membership{}, checkpoint.NewMembership(j.Shards(), time.Time{}))
		require.NoError(t, err)
	}
	require.NoError(t, groups.Of(j, "a-paused", "cart").Pause(t.Context()))
	type concern struct{ Kind, Group string }

	view := read[struct{ Attention []concern }](t, newConsole(t, console.Config{Journal: j}), "")

	assert.Equal(t, []concern{{"no_members", "b-without-members"}, {"paused", "a-paused"}}, view.Attention)
}
