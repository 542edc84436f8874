package tail_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/journal/tail"
)

// patience limits a failing test. It does not measure speed.
const patience = 2 * time.Minute

// follower follows a tail in the background.
type follower struct {
	mu       sync.Mutex
	shown    []string // "{id}/{number}"
	failures []error
	ended    chan error
	stop     context.CancelFunc
}

func (f *follower) show(batch []*journal.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range batch {
		f.shown = append(f.shown, fmt.Sprintf("%s/%d", r.Aggregate.Value, r.Number))
	}
	return nil
}

func (f *follower) events() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.shown)
}

func (f *follower) failed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.failures)
}

// follow polls every 2 ms until the test ends.
func follow(t *testing.T, c tail.Config) *follower {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &follower{ended: make(chan error, 1), stop: stop}
	c.Follow, c.Interval = true, 2*time.Millisecond
	c.OnError = func(err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.failures = append(f.failures, err)
	}
	go func() { f.ended <- tail.Run(ctx, c, f.show) }()
	t.Cleanup(func() {
		stop()
		assert.ErrorIs(t, await.Receive(t, f.ended, "the tail must end with its context"), context.Canceled)
	})
	return f
}

func (f *follower) mustShow(t *testing.T, want ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return len(f.events()) >= len(want) }, patience, time.Millisecond,
		"want %v", want)
	require.ElementsMatch(t, want, f.events())
}

// setup returns a journal with its own clock, which stands still.
func setup(t *testing.T) (*dynamotest.DB, *journal.Journal) {
	t.Helper()
	db := dynamotest.New(t)
	db.Clock().Freeze()
	j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Classic, Shards: 4, Now: db.Clock().Now})
	return db, j
}

func commit(t *testing.T, j *journal.Journal, id string, expected uint64, payload int) {
	t.Helper()
	testjournal.Append(t, j, storage.Commit{
		Aggregate: aggregate.ID{Type: "account", Value: id}, Expected: expected,
		Events: []storage.Event{{ID: fmt.Sprintf("%s/%d", id, expected+1), Type: "counted", Payload: []byte(strings.Repeat("x", payload))}},
	})
}

func TestManyPagesOfManyShardsComeInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	db, j := setup(t)
	var want []string
	for n := range uint64(6) {
		for i := range 10 {
			db.Clock().Advance(time.Millisecond)
			// Three pages in all, for a shard with one aggregate in four.
			commit(t, j, fmt.Sprint(i), n, 50_000)
			want = append(want, fmt.Sprintf("%d/%d", i, n+1))
		}
	}
	db.Inject(dynamotest.SmallPages(3), dynamotest.On("Query"))

	f := &follower{}
	require.NoError(t, tail.Run(t.Context(), tail.Config{Journal: j, Topic: "account", Now: db.Clock().Now}, f.show))
	assert.Equal(t, want, f.events())
}

func TestAnEventThatTheIndexShowsLateIsPassedOnce(t *testing.T) {
	t.Parallel()
	db, j := setup(t)
	commit(t, j, "early", 0, 1)
	f := follow(t, tail.Config{Journal: j, Topic: "account", Now: db.Clock().Now, TrailingDelay: 10 * time.Second})
	f.mustShow(t, "early/1")
	lag := db.Inject(dynamotest.DelayIndex(5*time.Second, 5*time.Second))
	commit(t, j, "late", 0, 1)
	lag.Remove()
	db.Clock().Advance(time.Second)
	commit(t, j, "later", 0, 1)
	f.mustShow(t, "early/1", "later/1")

	db.Clock().Advance(20 * time.Second)
	f.mustShow(t, "early/1", "later/1", "late/1")
	commit(t, j, "last", 0, 1)
	f.mustShow(t, "early/1", "later/1", "late/1", "last/1")
	db.Clock().Advance(time.Minute) // and another trailing read
	commit(t, j, "very last", 0, 1)
	f.mustShow(t, "early/1", "later/1", "late/1", "last/1", "very last/1")
}

func TestAClockThatIsFarAheadHidesNothing(t *testing.T) {
	t.Parallel()
	db, j := setup(t)
	ahead := testjournal.Open(t, db.Client(), journal.Config{Now: db.Clock().Skewed(time.Hour)})
	commit(t, ahead, "ahead", 0, 1)
	f := follow(t, tail.Config{Journal: j, Topic: "account", Now: db.Clock().Now})
	commit(t, j, "now", 0, 1)
	f.mustShow(t, "now/1")

	db.Clock().Advance(time.Hour)
	f.mustShow(t, "now/1", "ahead/1")
}

func TestFollowingContinuesAfterReadsThatFailed(t *testing.T) {
	t.Parallel()
	db, j := setup(t)
	f := follow(t, tail.Config{Journal: j, Topic: "account", Now: db.Clock().Now})
	broken := db.Inject(dynamotest.Throttle(), dynamotest.On("Query"))
	require.Eventually(t, func() bool { return f.failed() > 0 }, patience, time.Millisecond)
	broken.Remove()
	commit(t, j, "1", 0, 1)
	f.mustShow(t, "1/1")
}

func TestFollowingEndsWhereTheTableIsGone(t *testing.T) {
	t.Parallel()
	db, j := setup(t)
	var failures atomic.Int64
	db.Inject(dynamotest.Refuse(&types.ResourceNotFoundException{}), dynamotest.On("Query"))
	err := tail.Run(t.Context(), tail.Config{
		Journal: j, Topic: "account", Follow: true, Interval: time.Millisecond, OnError: func(error) { failures.Add(1) },
	}, func([]*journal.Record) error { return nil })
	require.ErrorIs(t, err, journal.ErrTableMissing)
	assert.Zero(t, failures.Load())
}

func TestAnErrorOfTheReaderEndsIt(t *testing.T) {
	t.Parallel()
	_, j := setup(t)
	commit(t, j, "1", 0, 1)
	for _, follow := range []bool{false, true} {
		err := tail.Run(t.Context(), tail.Config{Journal: j, Topic: "account", Follow: follow}, func([]*journal.Record) error {
			return context.DeadlineExceeded
		})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

func TestSettingsThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	_, j := setup(t)
	never := func([]*journal.Record) error { return nil }
	for field, c := range map[string]tail.Config{
		"Journal":       {Topic: "account"},
		"Interval":      {Journal: j, Topic: "account", Interval: -1},
		"TrailingDelay": {Journal: j, Topic: "account", TrailingDelay: -1},
	} {
		var refused *tail.ConfigError
		require.ErrorAs(t, tail.Run(t.Context(), c, never), &refused)
		assert.Equal(t, field, refused.Field)
	}
	require.ErrorAs(t, tail.Run(t.Context(), tail.Config{Journal: j}, never), new(*aggregate.InvalidIDError))
}

// onFakeTime follows an empty topic of 4 shards for some time.
func onFakeTime(t *testing.T, d time.Duration, change func(*dynamotest.DB, *tail.Config)) *journal.Units {
	t.Helper()
	db := dynamotest.New(t)
	j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Classic, Shards: 4})
	counting, units := journal.CountUnits(t.Context())
	ctx, stop := context.WithTimeout(counting, d)
	defer stop()
	c := tail.Config{Journal: j, Topic: "account", Follow: true}
	change(db, &c)
	require.ErrorIs(t, tail.Run(ctx, c, func([]*journal.Record) error { return nil }), context.DeadlineExceeded)
	return units
}

func TestFollowingCostsWhatItsDocumentationSays(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		units := onFakeTime(t, 10*time.Minute, func(*dynamotest.DB, *tail.Config) {})
		assert.InDelta(t, 0.6, units.Read()/4/600, 0.02, "read units in each second for each shard")
	})
}

func TestThePauseGrowsWhileReadsFail(t *testing.T) {
	t.Parallel()
	// The pauses are 1, 2, 4, 8, 16 seconds, and then 30.
	for interval, want := range map[time.Duration]int{time.Second: 5 + 19, time.Minute: 10} {
		testdb.WithFakeTime(t, func(t *testing.T) {
			failures := 0
			onFakeTime(t, 10*time.Minute, func(db *dynamotest.DB, c *tail.Config) {
				db.Inject(dynamotest.Throttle(), dynamotest.On("Query"))
				c.Interval, c.OnError = interval, func(error) { failures++ }
			})
			assert.InDelta(t, want, failures, 2)
		})
	}
}
