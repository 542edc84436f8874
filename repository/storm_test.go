package repository_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// Writers contend for a few accounts while everything that DynamoDB and a network can do happens. What was acknowledged
// is there, once; what was not is there once or not at all; numbers have no gaps, and a load sees all.
func TestNothingIsLostOrDoubledInAStorm(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			db := dynamotest.New(t, dynamotest.Seed(seed))
			require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 4}))
			j, err := journal.Open(t.Context(), db.Client(), journal.Config{})
			require.NoError(t, err)
			accounts, err := repository.New(j, Accounts, repository.Config{Snapshots: repository.Every(3)})
			require.NoError(t, err)

			calls := db.Record()
			calm := db.Storm(0.05)
			var mu sync.Mutex
			acknowledged, unknown := map[string]int{}, map[string]int{}
			var wait sync.WaitGroup
			for range 4 {
				wait.Add(1)
				go func() {
					defer wait.Done()
					for i := range 15 {
						id := fmt.Sprint(i % 3)
						_, err := accounts.Execute(t.Context(), id, Deposit(1))
						mu.Lock()
						switch {
						case err == nil:
							acknowledged[id]++
						case errors.Is(err, journal.ErrOutcomeUnknown):
							unknown[id]++
						}
						mu.Unlock()
					}
				}()
			}
			wait.Wait()
			calm()
			assert.True(t, slices.ContainsFunc(calls.Calls("TransactWriteItems"), func(c dynamotest.Call) bool { return len(c.Faults) > 0 }))

			for id, least := range acknowledged {
				a, err := accounts.Load(t.Context(), id)
				require.NoError(t, err)
				assert.GreaterOrEqual(t, a.State.Balance, least, "every deposit that was acknowledged counts")
				assert.LessOrEqual(t, a.State.Balance, least+unknown[id], "and none counts twice")
				next := uint64(1)
				for record, err := range j.Events(t.Context(), a.ID, 1, a.Version) {
					require.NoError(t, err)
					require.Equal(t, next, record.Number)
					next++
				}
				assert.Equal(t, a.Version, next-1)
				assert.EqualValues(t, a.State.Balance, a.Version, "each event is a deposit of one")
			}
		})
	}
}
