package console_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/console"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

func TestASlowHandlerIsNotShownAsAFailure(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		store, r := checkpoint.New(j), repositoryOf(t, j, repository.Config{})
		list := func(group, id string, failure *checkpoint.Failure) {
			t.Helper()
			b := checkpoint.Behind{Aggregate: aggregate.ID{Type: "cart", Value: id}, Head: 1, Failure: failure}
			require.NoError(t, store.ListBehind(t.Context(), checkpoint.Group{Name: group}, checkpoint.Revision{Epoch: 1}, b))
		}
		for _, group := range []string{"mails", "reports"} {
			members, _ := checkpoint.NewMembership(j.Shards(), time.Time{}).Join(checkpoint.Member{Lease: time.Hour, Heartbeat: checkpoint.NextHeartbeat(0, time.Now(), time.Hour)})
			_, err := store.ChangeMembership(t.Context(), checkpoint.Key{Group: group, Topic: "cart"}, checkpoint.Membership{}, members)
			require.NoError(t, err)
		}
		for _, id := range []string{"failing", "slow", "hanging"} {
			save(t.Context(), t, r, id, opened{"ada"})
			list("reports", id, nil)
		}
		list("mails", "failing", &checkpoint.Failure{Number: 1, At: time.UnixMilli(1_700_000_000_000), Reason: "broken, once"})
		list("mails", "slow", nil)

		type concern struct{ Kind, Text string }
		view := read[struct{ Attention []concern }](t, newConsole(t, console.Config{Journal: j}), "")
		assert.Equal(t, []concern{
			{"blocked", "mails on cart: 1 aggregate is blocked by an event that has failed and is tried again"},
			{"slow", "mails on cart: 1 aggregate waits for a handler that takes long: no attempt has failed"},
			{"slow", "reports on cart: 3 aggregates wait for a handler that takes long: no attempt has failed"},
		}, view.Attention)
	})
}
