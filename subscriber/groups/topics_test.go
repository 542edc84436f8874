package groups_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestTheTopicsOfAGroupAreThoseThatItIsOn(t *testing.T) {
	t.Parallel()
	s := setup(t, 2)
	for _, k := range []checkpoint.Key{{Group: "totals", Topic: "order"}, {Group: "totals", Topic: "account"}, {Group: "totals.2", Topic: "refund"}} {
		_, err := checkpoint.New(s.Journal).ChangeMembership(t.Context(), k, checkpoint.Membership{}, checkpoint.NewMembership(2, time.Time{}))
		require.NoError(t, err)
	}
	topics := func(name string) []string {
		t.Helper()
		topics, err := s.Topics(t.Context(), name)
		require.NoError(t, err)
		return topics
	}
	assert.Equal(t, []string{"account", "order"}, topics("totals"))
	assert.Empty(t, topics("nobody"))
	require.NoError(t, s.Of("totals", "order").Remove(t.Context(), groups.RemoveOptions{}))
	assert.Equal(t, []string{"account"}, topics("totals"))
}
