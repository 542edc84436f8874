package groups_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestARetryOfAllThatIsInterruptedByAnotherOperatorCountsEachEventOnce(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		_, s := manyParked(t, 0)
		const events = 1000 // on 4 shards, so each has more than 100
		for n := range events {
			require.NoError(t, checkpoint.New(s.Journal).PutSkipped(t.Context(), checkpoint.Group{Name: group}, checkpoint.Skipped{
				Aggregate: account(fmt.Sprintf("a%04d", n)), Number: 1, Reason: "it fails", At: time.Now(), Epoch: 1,
			}))
		}
		before := s.epochs(t)
		edited := map[string]int{}
		count, err := s.RetryAllSkipped(t.Context(), groups.Selection{Edited: func(id aggregate.ID, _ uint64) {
			if len(edited) == 0 {
				assert.Equal(t, before, s.epochs(t), "the owner continues")
				for n := events - 50; n < events; n++ { // the last events, under a newer epoch
					assert.NoError(t, s.RetrySkipped(t.Context(), group, account(fmt.Sprintf("a%04d", n)), 1))
				}
			}
			edited[id.Value]++
		}})
		require.NoError(t, err)
		assert.Equal(t, events, count)
		assert.Len(t, edited, events)
		for id, times := range edited {
			assert.Equal(t, 1, times, id)
		}
		for n, epoch := range s.epochs(t) {
			assert.Greater(t, epoch, before[n], "the next owner reads the records")
		}
	})
}
