package projection_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/projection"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// sums defines aggregates whose state is the sum of their deposits.
var sums = aggregate.Define[int](topic, summed{}).WithUpcasters(aggregate.Drop("noted"))

type summed struct{ Amount int }

func (summed) EventType() string { return "deposited" }
func (e summed) Apply(sum *int)  { *sum += e.Amount }

func newStateRows(t *testing.T, w *world, j *journal.Journal, loads *[]string) *projection.Rows {
	t.Helper()
	r := testjournal.Repository(t, j, sums, repository.Config{})
	rows, err := projection.NewRows(w.client, totals, projection.Config{}, projection.OnState(r, func(_ context.Context, a repository.Aggregate[int]) (projection.RowUpdate, error) {
		if loads != nil {
			*loads = append(*loads, fmt.Sprint(a.ID.Value, " at ", a.Version))
		}
		return projection.RowUpdate{
			Expression: "SET #total = :total", Names: map[string]string{"#total": "total"}, Values: item{":total": number(a.State)},
		}, nil
	}))
	require.NoError(t, err)
	assert.True(t, rows.LatestOnly())
	return rows
}

func latestOnly() subscriber.Config {
	return subscriber.Config{LatestOnly: true, MaxInFlight: 1, Timing: subscriber.Timing{ReconcileInterval: 100 * time.Millisecond}}
}

func TestARowIsComputedFromTheStateOfItsAggregate(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		w := setupOn(t, testdb.Client(t), layout)
		w.write("x", 0, deposits(90)...)
		w.write("y", 0, Deposited{5}, Noted{}) // the last event is dropped
		var loads []string
		rows := newStateRows(t, w, w.j, &loads)
		sub := w.consumeRows(rows, latestOnly())
		g := groups.New(w.j, groups.WithPositions(rows))
		require.NoError(t, g.WaitApplied(t.Context(), "totals", account("x"), 90))
		require.NoError(t, g.WaitApplied(t.Context(), "totals", account("y"), 2))
		assert.Equal(t, []int{90 * 91 / 2, 5}, []int{w.total("x"), w.total("y")})

		w.write("x", 90, Deposited{1}, Noted{})
		require.NoError(t, g.WaitApplied(t.Context(), "totals", account("x"), 92))
		assert.Equal(t, 90*91/2+1, w.total("x"))
		require.NoError(t, sub.Close())
		assert.LessOrEqual(t, len(loads), 5, "%v", loads)
	})
}

func TestTheEventOfADeletedAggregateIsPassed(t *testing.T) {
	t.Parallel()
	w := setupOn(t, testdb.Client(t), journal.Packed)
	w.write("x", 0, Deposited{5})
	rows := newStateRows(t, w, w.j, nil)
	config := latestOnly()
	config.Positions = rows
	handled := make(chan error, 1)
	sub := w.consume(config, func(msg *message.Message) error {
		assert.NoError(t, w.j.Delete(t.Context(), account("x"), 1, journal.RemoveOptions{}))
		err := rows.Handle(msg)
		handled <- err
		return err
	})
	require.NoError(t, await.Receive(t, handled, "the event"))
	require.NoError(t, sub.Close())
	assert.Zero(t, w.total("x"))
}

func TestAStateIsTheOnlyReaction(t *testing.T) {
	t.Parallel()
	w := setup(t)
	r := testjournal.Repository(t, w.j, sums, repository.Config{})
	write := func(context.Context, repository.Aggregate[int]) (projection.RowUpdate, error) {
		return projection.RowUpdate{}, nil
	}
	for name, reactions := range map[string][]projection.RowReaction{
		"no repository": {projection.OnState(nil, write)},
		"no function":   {projection.OnState(r, nil)},
		"another one":   {projection.OnState(r, write), sumInRow},
		"two":           {projection.OnState(r, write), projection.OnState(r, write)},
	} {
		_, err := projection.NewRows(w.client, totals, projection.Config{}, reactions...)
		assert.ErrorAs(t, err, new(*projection.ConfigError), name)
	}
}
