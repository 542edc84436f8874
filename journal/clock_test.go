package journal_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
)

// wrongClock opens a journal on a machine whose clock is behind DynamoDB's by ahead. Requests take
// no time. off commits an event and returns how far its date is ahead of DynamoDB's clock.
func wrongClock(t *testing.T, ahead time.Duration, config journal.Config) (db *dynamotest.DB, off func() time.Duration) {
	t.Helper()
	db = dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
	db.Clock().Advance(ahead)
	j := testjournal.Open(t, db.Client(), config)
	n := 0
	return db, func() time.Duration {
		n++
		receipt := mustAppend(t, j.Internal(), storage.Commit{
			Aggregate: aggregate.ID{Type: "account", Value: fmt.Sprint(n)}, Events: []storage.Event{{Type: "deposited", Payload: []byte("1")}},
		})
		return receipt.OccurredAt.Sub(db.Clock().Now().Truncate(time.Millisecond))
	}
}

func TestEventsAreDatedByDynamoDBsClockWhereThisMachinesIsWrong(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-24 * time.Hour, -time.Minute, -1900 * time.Millisecond, 1900 * time.Millisecond, time.Minute, 24 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				_, off := wrongClock(t, ahead, journal.Config{})

				assert.LessOrEqual(t, off().Abs(), time.Second, "at first")
				for range 50 {
					time.Sleep(137 * time.Millisecond)
					off()
				}
				assert.LessOrEqual(t, off().Abs(), 50*time.Millisecond, "once more is known")
			})
		})
	}
}

func TestAClockThatMayBeRightIsNotCorrected(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		_, off := wrongClock(t, 0, journal.Config{})
		for range 50 {
			assert.Zero(t, off())
			time.Sleep(137 * time.Millisecond)
		}
	})
}

// A clock in the config is not corrected.
func TestAClockThatIsGivenIsNotCorrected(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		_, off := wrongClock(t, time.Hour, journal.Config{Now: time.Now})
		for range 5 {
			assert.Equal(t, -time.Hour, off())
		}
	})
}

func TestAClockThatIsSetIsMeasuredAnew(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db, off := wrongClock(t, 0, journal.Config{})
		for range 50 {
			time.Sleep(137 * time.Millisecond)
			off()
		}

		db.Clock().Advance(time.Hour)
		for range 3 {
			off()
		}

		assert.LessOrEqual(t, off().Abs(), time.Second)
	})
}

func TestOneWrongReplyDoesNotSetTheClock(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db, off := wrongClock(t, 0, journal.Config{})
		off()
		for range 10 {
			db.Clock().Advance(time.Hour)
			assert.Equal(t, -time.Hour, off())
			db.Clock().Advance(-time.Hour)
			assert.Zero(t, off())
		}
	})
}

// The clocks drift apart by 100 in a million, so a measurement of an hour ago is less exact now.
func TestClocksMayDriftApart(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db, off := wrongClock(t, time.Minute, journal.Config{})
		for range 200 {
			time.Sleep(10 * time.Minute)
			db.Clock().Advance(60 * time.Millisecond)
			off()
			time.Sleep(137 * time.Millisecond)
			assert.LessOrEqual(t, off().Abs(), time.Second)
		}
	})
}
