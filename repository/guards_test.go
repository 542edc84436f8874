package repository_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// A repository with a cache stores no snapshots, so the first one may have to turn more command ids
// into guards than it has time for.
func TestPackedEachCommandIDBecomesAGuardOnce(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		const commands = 500
		db := dynamotest.New(t)
		j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Packed, Shards: 1})
		cached := testjournal.Repository(t, j, Accounts, repository.Config{Cache: 1})
		for n := range commands {
			mustExecute(t, cached, "42", Deposit(1), repository.WithCommandID(fmt.Sprint(n)))
		}
		db.Inject(dynamotest.Latency(400*time.Millisecond, 500*time.Millisecond), dynamotest.On("PutItem"))
		other := testjournal.Repository(t, testjournal.Open(t, db.Client(), journal.Config{}), Accounts, repository.Config{})
		calls := db.Record()

		const more = 6
		for n := range more {
			mustExecute(t, other, "42", Deposit(1), repository.WithCommandID(fmt.Sprint("more ", n)))
		}

		assert.Less(t, len(calls.Calls("PutItem")), commands+100*more)
		assert.Positive(t, other.Stats().Snapshots)
		for n := range commands {
			a := mustExecute(t, other, "42", Deposit(1), repository.WithCommandID(fmt.Sprint(n)))
			assert.True(t, a.Repeated)
		}
	})
}
