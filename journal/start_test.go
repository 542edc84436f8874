package journal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/dynamo"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// Create and Open repeat failed requests. A program that ended instead would be started again, and
// its new requests would add to the disturbance.
func TestAJournalIsCreatedAndOpenedAmidADisturbance(t *testing.T) {
	t.Parallel()
	for seed := range testdb.Seeds(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			db := dynamotest.New(t, dynamotest.WithSeed(seed))
			db.Storm(0.05)
			client := db.Client(testdb.Once)
			j := testjournal.New(t, client, journal.Config{Layout: journal.Classic, Shards: 4})
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
				require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 4}))
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
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 4}))
	_, err := journal.Open(t.Context(), db.Client(), journal.Config{Tables: journal.Tables{Journal: "missing"}})
	require.ErrorIs(t, err, journal.ErrTableMissing)
}

func TestAdoptVerifiesATableWhoseScanTakesMinutes(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		config := ownTables(document)
		foreignTables(t, db.Client(), config, aidIndex, tailIndex)
		for i := range 6 {
			foreignAggregate(t, db.Client(), config, fmt.Sprint(i), 3)
		}
		db.Inject(dynamotest.SmallPages(1), dynamotest.On("Scan"))
		db.Inject(dynamotest.Latency(5*time.Second, 5*time.Second), dynamotest.On("Scan"))
		db.Inject(dynamotest.Throttle(), dynamotest.On("Scan"), dynamotest.After(3), dynamotest.Times(2))
		begun := time.Now()

		require.NoError(t, journal.Adopt(t.Context(), db.Client(testdb.Once), config))

		assert.Greater(t, time.Since(begun), 2*dynamo.StartBudget)
	})
}

func TestCreateWaitsMinutesForASlowTable(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		meddled := &meddler{Client: dynamotest.New(t).Client()}
		begun := time.Now()
		meddled.describe = func(_ int, _ *dynamodb.DescribeTableInput, send func() (*dynamodb.DescribeTableOutput, error)) (*dynamodb.DescribeTableOutput, error) {
			out, err := send()
			if err == nil && time.Since(begun) < 3*time.Minute {
				out.Table.TableStatus = types.TableStatusCreating
			}
			return out, err
		}

		require.NoError(t, journal.Create(t.Context(), meddled, ownTables(journal.Config{Layout: journal.Classic, Shards: 4})))
	})
}

// The SDK's own retries and those of a start share the 30 seconds. So does a connection that never
// replies.
func TestAStartEndsAfterThirtySecondsInADisturbanceWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]dynamotest.Fault{
		"throttled": dynamotest.Throttle(), "no reply": dynamotest.Pause(func(ctx context.Context) { <-ctx.Done() }),
	} {
		for step, start := range map[string]func(context.Context, journal.Client, journal.Config) error{
			"Create": journal.Create, "Adopt": journal.Adopt,
			"Open": func(ctx context.Context, client journal.Client, config journal.Config) error {
				_, err := journal.Open(ctx, client, config)
				return err
			},
		} {
			t.Run(step+", "+name, func(t *testing.T) {
				t.Parallel()
				testdb.WithFakeTime(t, func(t *testing.T) {
					db := dynamotest.New(t)
					config := ownTables(document)
					foreignTables(t, db.Client(), config, aidIndex, tailIndex)
					foreignAggregate(t, db.Client(), config, "1", 1)
					require.NoError(t, journal.Adopt(t.Context(), db.Client(), config))
					db.Inject(fault)
					begun := time.Now()

					err := start(t.Context(), db.Client(), config)

					require.Error(t, err)
					assert.True(t, errors.Is(err, journal.ErrThrottled) || errors.Is(err, journal.ErrUnavailable), err)
					require.NotErrorIs(t, err, context.DeadlineExceeded)
					assert.LessOrEqual(t, time.Since(begun), dynamo.StartBudget)
					assert.Greater(t, time.Since(begun), dynamo.StartBudget/2)
				})
			})
		}
	}
}

func TestOpenTakesAtMostThirtySecondsWhileMostRequestsAreThrottled(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		for seed := range uint64(50) {
			db := dynamotest.New(t, dynamotest.WithSeed(seed))
			require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 4}))
			db.Inject(dynamotest.Throttle(), dynamotest.On("GetItem"), dynamotest.Chance(0.9))
			begun := time.Now()

			if _, err := journal.Open(t.Context(), db.Client(), journal.Config{}); err != nil {
				require.ErrorIs(t, err, journal.ErrThrottled)
			}

			assert.LessOrEqual(t, time.Since(begun), dynamo.StartBudget)
		}
	})
}
