package groups_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestOperationsCostWhatTheirDocumentationSays(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		const shards, aggregates = 4, 100
		db := dynamotest.New(t)
		require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: shards}))
		s := open(t, db.Client(), journal.Config{})
		s.begin(t, time.Time{})
		for n := range aggregates {
			s.write(t, fmt.Sprint("a", n), 0, 1)
			s.acked(t, fmt.Sprint("a", n), 1)
		}
		cost := func(do func() error) (read, write float64) {
			recording := db.Record()
			defer recording.Stop()
			require.NoError(t, do())
			return recording.Units()
		}

		read, write := cost(func() error { _, err := s.Status(t.Context()); return err })
		assert.Equal(t, []float64{1, 0}, []float64{read, write}, "Get")
		read, write = cost(func() error { return s.Pause(t.Context()) })
		assert.Equal(t, []float64{1, 1}, []float64{read, write}, "Pause")

		var token aggregate.Token
		for n := range aggregates {
			token = append(token, aggregate.VersionedID{ID: account(fmt.Sprint("a", n)), Version: 1})
		}
		read, _ = cost(func() error { return s.WaitToken(t.Context(), group, token) })
		assert.InDelta(t, 2*aggregates, read, 0.1, "WaitToken: two for each aggregate")
		other := aggregate.Token{{ID: aggregate.ID{Type: "other", Value: "1"}, Version: 1}}
		read, _ = cost(func() error { return s.WaitToken(t.Context(), group, other) })
		assert.InDelta(t, 2, read, 0.1, "WaitToken: a topic that the group does not handle")
		read, _ = cost(func() error {
			patient, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			require.ErrorIs(t, s.WaitApplied(patient, group, account("a0"), 2), groups.ErrNotApplied)
			return nil
		})
		assert.InDelta(t, 2*12, read, 2*6, "WaitApplied: reads of two seconds, at random intervals")

		read, _ = cost(func() error {
			_, err := s.Lag(t.Context(), groups.LagOptions{})
			return err
		})
		heads, positions, membership, progress := aggregates*0.2/4/2, aggregates/40.0, 1.0, 1.0*shards
		assert.InDelta(t, heads+positions+membership+progress, read, 2*shards*0.5, "Lag: half a unit is the least for each query")

		read, _ = cost(func() error { _, err := s.Estimate(t.Context()); return err })
		tail := aggregates * 0.4 / 4 / 2
		assert.InDelta(t, membership+progress+tail+aggregates/2, read, 2*shards*0.5, "Estimate, from the beginning of the tail")

		s.write(t, "a0", 1, 1)
		read, write = cost(func() error { return s.Skip(t.Context(), group, account("a0"), 2) })
		assert.Equal(t, []float64{8, 8}, []float64{read, write}, "Skip: the membership twice, two writes of rows, and a transaction of two")
		read, write = cost(func() error { return s.ResetAggregate(t.Context(), group, account("a0"), 0) })
		assert.LessOrEqual(t, read, 8.0, "ResetAggregate")
		assert.LessOrEqual(t, write, 8.0, "ResetAggregate: of one skipped event")
		read, _ = cost(func() error {
			for _, err := range s.Skipped(t.Context(), aggregate.ID{}, 0) {
				if err != nil {
					return err
				}
			}
			return nil
		})
		assert.InDelta(t, membership+shards, read, 0.1, "Skipped, where there is nothing")

		read, write = cost(func() error { return s.Remove(t.Context(), groups.RemoveOptions{}) })
		assert.InDelta(t, 1+2*2, write, 0.1, "Remove: the pause, and a transaction of two rows")
		assert.LessOrEqual(t, read, 2.0, "Remove: the membership and the registry")
		late := s.after(t, groups.FenceTime+time.Hour)
		cleanUp := func() error { _, err := late.CleanUp(t.Context(), nil); return err }
		read, write = cost(cleanUp)
		assert.InDelta(t, aggregates+1+1, write, 0.1, "CleanUp: the rows, the record, and that they are deleted")
		assert.Less(t, read, 20.0)
		read, write = cost(cleanUp)
		assert.LessOrEqual(t, read, 2.0, "CleanUp again")
		assert.Zero(t, write)
	})
}
