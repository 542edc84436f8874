package journal_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
)

// Create and Open repeat failed requests. A program that ended instead would be started again, and
// its new requests would add to the disturbance.
func TestAJournalIsCreatedAndOpenedAmidADisturbance(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			db := dynamotest.New(t, dynamotest.Seed(seed))
			db.Storm(0.05)
			client := db.Client(testdb.Once)
			require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 4}))
			j, err := journal.Open(t.Context(), client, journal.Config{})
			require.NoError(t, err)
			assert.Equal(t, 4, j.Shards())
		})
	}
}

func TestAStartEndsAtOnceForGoodReasonsAndWithItsContextForOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault dynamotest.Fault
		want  error
	}{
		"throttled":         {dynamotest.Throttle(), journal.ErrThrottled},
		"an internal error": {dynamotest.InternalError(), journal.ErrUnavailable},
		"a cut connection":  {dynamotest.CutConnection(), journal.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				db := dynamotest.New(t)
				require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 4}))
				proxy := dynamotest.NewProxy(t, db.Client())
				tries := proxy.Inject(c.fault, dynamotest.On("GetItem"))
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				_, err := journal.Open(ctx, proxy.Client(testdb.Once), journal.Config{})
				require.ErrorIs(t, err, c.want)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Greater(t, tries.Fired(), 1)
			})
		})
	}
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 4}))
	_, err := journal.Open(t.Context(), db.Client(), journal.Config{Tables: journal.Tables{Journal: "missing"}})
	require.ErrorIs(t, err, journal.ErrTableMissing)
}
