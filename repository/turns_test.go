package repository_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// executeTogether executes commands on one aggregate at the same time, and returns the number of
// requests for each of them.
func executeTogether(t *testing.T, db *dynamotest.DB, repo *repository.Repository[Account], commands int) int {
	t.Helper()
	calls := db.Record()
	defer calls.Stop()
	var running sync.WaitGroup
	for n := range commands {
		running.Add(1)
		go func() {
			defer running.Done()
			_, err := repo.Execute(t.Context(), "42", Deposit(1), repository.WithCommandID(fmt.Sprint(n)))
			assert.NoError(t, err)
		}()
	}
	running.Wait()
	return len(calls.Calls()) / commands
}

// A call takes longer than half a second there.
func TestCallsOnASlowDatabaseDoNotCompete(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		for latency, commands := range map[time.Duration]int{200 * time.Millisecond: 60, time.Second: 20} {
			t.Run(fmt.Sprint(layout, latency), func(t *testing.T) {
				t.Parallel()
				testdb.WithFakeTime(t, func(t *testing.T) {
					db := dynamotest.New(t)
					s := openOn(t, db, journal.Config{Layout: layout})
					repo := s.accounts(t, repository.Config{})
					db.Inject(dynamotest.Latency(latency, latency*5/4))
					assert.Less(t, executeTogether(t, db, repo, commands), 7)
					assert.Equal(t, commands, mustLoad(t, repo, "42").State.Balance)
				})
			})
		}
	}
}

// The others wait for it only once, and then for each other.
func TestCallsBehindOneThatHangsDoNotCompete(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		repo := openOn(t, db, journal.Config{Layout: journal.Packed}).accounts(t, repository.Config{})
		db.Inject(dynamotest.Latency(5*time.Millisecond, 10*time.Millisecond))
		var hanging sync.WaitGroup
		hanging.Add(1)
		go func() {
			defer hanging.Done()
			_, err := repo.Execute(t.Context(), "42", func(Account) (Events, error) {
				time.Sleep(time.Minute)
				return nil, nil
			})
			assert.NoError(t, err)
		}()
		time.Sleep(20 * time.Millisecond)
		begun := time.Now()
		assert.Less(t, executeTogether(t, db, repo, 60), 5)
		assert.Less(t, time.Since(begun), 10*time.Second)
		hanging.Wait()
	})
}
