package repository_test

import (
	"testing"
	"time"

	sdkretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// throttlable is a journal whose commits a test throttles.
type throttlable struct {
	db    *dynamotest.DB
	j     *journal.Journal
	rival *repository.Repository[Account] // its requests are not throttled
	// until is the time until which the commits of j are throttled.
	until time.Time
}

// eachThrottlable runs a test in fake time, with a retry budget of 5 seconds.
func eachThrottlable(t *testing.T, test func(t *testing.T, s *throttlable)) {
	t.Helper()
	t.Parallel()
	for _, layout := range []journal.Layout{journal.Classic, journal.Packed} {
		t.Run(string(layout), func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				s := &throttlable{db: dynamotest.New(t)}
				s.j = testjournal.New(t, s.db.Client(), journal.Config{Layout: layout, Shards: 1})
				other := dynamotest.NewProxy(t, s.db.Client())
				s.rival = testjournal.Repository(t, testjournal.Open(t, other.Client(), journal.Config{}), Accounts, repository.Config{})
				proxy := dynamotest.NewProxy(t, s.db.Client())
				s.j = testjournal.Open(t, proxy.Client(), journal.Config{})
				proxy.Inject(dynamotest.Throttle(), dynamotest.On("PutItem", "TransactWriteItems"), dynamotest.Matching(func(string, any) bool {
					return time.Now().Before(s.until)
				}))
				test(t, s)
			})
		})
	}
}

func TestTheAttemptsOfACallShareItsRetryBudget(t *testing.T) {
	eachThrottlable(t, func(t *testing.T, s *throttlable) {
		repo := testjournal.Repository(t, s.j, Accounts, repository.Config{MaxAttempts: 20})
		mustExecute(t, repo, "42", Deposit(1))
		began, decisions := time.Now(), 0

		_, err := repo.Execute(t.Context(), "42", func(Account) (Events, error) {
			decisions++
			_, err := s.rival.Execute(t.Context(), "42", Deposit(1)) // so the commit conflicts
			s.until = time.Now().Add(2 * time.Second)
			return deposits(1), err
		})

		require.ErrorIs(t, err, journal.ErrThrottled)
		assert.Less(t, time.Since(began), 6*time.Second)
		assert.Less(t, decisions, 4)
	})
}

func TestTheTimeOfADecisionDoesNotCountInTheRetryBudget(t *testing.T) {
	eachThrottlable(t, func(t *testing.T, s *throttlable) {
		repo := testjournal.Repository(t, s.j, Accounts, repository.Config{})

		a := mustExecute(t, repo, "42", func(Account) (Events, error) {
			time.Sleep(time.Minute)
			s.until = time.Now().Add(3 * time.Second)
			return deposits(1), nil
		})

		assert.EqualValues(t, 1, a.Version)
	})
}

func TestPackedASnapshotAfterACommitHasARetryBudgetOfItsOwn(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		j := testjournal.New(t, db.Client(func(o *dynamodb.Options) {
			o.Retryer = sdkretry.NewStandard(func(r *sdkretry.StandardOptions) {
				r.Backoff = sdkretry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return time.Second, nil })
			})
		}), journal.Config{Layout: journal.Packed, Shards: 1})
		repo := testjournal.Repository(t, j, Accounts, repository.Config{Snapshots: repository.Every(1)})
		// The commit uses nearly all of the budget.
		db.Inject(dynamotest.Latency(4990*time.Millisecond, 4990*time.Millisecond), dynamotest.On("PutItem"), dynamotest.Times(1))
		db.Inject(dynamotest.Throttle(), dynamotest.On("PutItem"), dynamotest.Times(1))
		db.Inject(dynamotest.Throttle(), dynamotest.On("UpdateItem"), dynamotest.Times(2))

		a := mustExecute(t, repo, "42", Deposit(1))

		head, err := j.Head(t.Context(), a.ID)
		require.NoError(t, err)
		require.NotNil(t, head.Snapshot)
		assert.EqualValues(t, 1, head.Snapshot.Number)
	})
}
