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
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestAnAggregateThatIsDoneAndStillListedIsLeftOut(t *testing.T) {
	t.Parallel()
	onLayouts(t, func(t *testing.T, j *journal.Journal) {
		ctx := t.Context()
		r := repositoryOf(t, j, repository.Config{})
		store := checkpoint.New(j)
		_, err := store.ChangeMembership(ctx, checkpoint.Key{Group: "mails", Topic: "cart"}, checkpoint.Membership{}, checkpoint.NewMembership(j.Shards(), time.Time{}))
		require.NoError(t, err)
		for id, n := range map[string]int{"done": 1, "blocked": 2} {
			for range n {
				save(ctx, t, r, id, opened{"ada"})
			}
			cart := aggregate.ID{Type: "cart", Value: id}
			require.NoError(t, groups.New(j).ResetAggregate(ctx, "mails", cart, 1))
			g, err := groups.Of(j, "mails", "cart").Status(ctx)
			require.NoError(t, err)
			listed := checkpoint.Group{Name: "mails", Resets: g.Resets}
			require.NoError(t, store.ListBehind(ctx, listed, checkpoint.Revision{Epoch: 100, Number: 1}, checkpoint.Behind{Aggregate: cart, Head: 1}))
		}
		type row struct {
			ID   string
			Next int `json:"waits_at"`
		}

		view := read[struct{ Aggregates []row }](t, newConsole(t, console.Config{Journal: j}), "behind?name=mails&topic=cart")

		assert.Equal(t, []row{{"blocked", 2}}, view.Aggregates)
	})
}
