package live_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/live"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

func TestWatchersAreNotifiedOnceTheReadModelHasTheEvent(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ack := f.model()
	feed := f.feed(f.config())
	changed, stop := feed.Watch("a")
	defer stop()
	others, stopOthers := feed.Watch("b")
	defer stopOthers()

	f.add("a")
	require.Never(t, func() bool { return len(changed) > 0 }, 100*time.Millisecond, 5*time.Millisecond, "the read model does not have it yet")
	ack <- struct{}{}

	await.Receive(t, changed, "the read model has the event")
	position, err := groups.New(f.journal).Position(t.Context(), "model", idOf("a"))
	require.NoError(t, err)
	assert.EqualValues(t, 1, position)
	assert.Empty(t, others, "nothing has happened to b")
}

func TestEveryProcessIsNotified(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ack := f.model()
	here, stop := f.feed(f.config()).Watch("a")
	defer stop()
	config := f.config()
	config.Journal = f.open()
	there, stopThere := f.feed(config).Watch("a")
	defer stopThere()

	f.add("a")
	ack <- struct{}{}

	await.Receive(t, here, "in the process that wrote the event")
	await.Receive(t, there, "in the other process")
}

func TestAnEventWhoseKeyFailsDelaysNoOther(t *testing.T) {
	t.Parallel()
	f := setup(t)
	config := f.waiting(applied)
	config.Key = func(_ context.Context, r *journal.Record) (string, error) {
		switch r.Aggregate.Value {
		case "broken":
			return "", errors.New("the read model cannot be read")
		case "panics":
			panic("a defect")
		case "nobody":
			return "", nil
		}
		return r.Aggregate.Value, nil
	}
	changed, stop := f.feed(config).Watch("a")
	defer stop()
	for _, id := range []string{"broken", "panics", "nobody", "a"} {
		f.add(id)
	}
	await.Receive(t, changed, "after events without a key")
}

func TestASlowWaitDelaysOnlyItsAggregate(t *testing.T) {
	t.Parallel()
	f := setup(t)
	release := make(chan struct{})
	var mu sync.Mutex
	var waits []uint64 // for the slow aggregate
	feed := f.feed(f.waiting(func(ctx context.Context, r *journal.Record) error {
		if r.Aggregate.Value != "slow" {
			return nil
		}
		mu.Lock()
		waits = append(waits, r.Number)
		mu.Unlock()
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	slow, stopSlow := feed.Watch("slow")
	defer stopSlow()
	changed, stop := feed.Watch("a")
	defer stop()
	f.add("slow")
	f.add("slow")
	for range 3 {
		f.add("a")
		await.Receive(t, changed, "while another aggregate is waited for")
	}
	assert.Empty(t, slow, "its read model is late")
	close(release)
	await.Receive(t, slow, "its read model is up to date")
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(waits) == 2
	}, patience, time.Millisecond)
	assert.Equal(t, []uint64{1, 2}, waits, "in the order of the aggregate")
}

func TestAReadModelThatIsTooLateIsNotWaitedForAnyLonger(t *testing.T) {
	t.Parallel()
	f := setup(t)
	config := f.waiting(func(ctx context.Context, _ *journal.Record) error {
		<-ctx.Done()
		return ctx.Err()
	})
	config.WaitTimeout = time.Millisecond
	changed, stop := f.feed(config).Watch("a")
	defer stop()
	f.add("a")
	await.Receive(t, changed, "though the read model is late")
}

func TestAWaitThatFailsIsRepeated(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var waits atomic.Int32
	changed, stop := f.feed(f.waiting(func(context.Context, *journal.Record) error {
		if waits.Add(1) < 3 {
			return errors.New("the database is not available")
		}
		return nil
	})).Watch("a")
	defer stop()
	f.add("a")
	await.Receive(t, changed, "after the third wait")
	assert.EqualValues(t, 3, waits.Load())
}

func TestAnAggregateThatStaysLateIsWaitedForLess(t *testing.T) {
	t.Parallel()
	f := setup(t)
	timeouts := make(chan time.Duration, 3)
	failures := make(chan error, 3)
	failures <- groups.ErrExternalPositions // not repeated
	failures <- nil
	failures <- nil
	config := f.waiting(func(ctx context.Context, _ *journal.Record) error {
		deadline, _ := ctx.Deadline()
		timeouts <- time.Until(deadline)
		return <-failures
	})
	config.WaitTimeout = 20 * time.Hour
	changed, stop := f.feed(config).Watch("a")
	defer stop()
	for range 3 {
		f.add("a")
		await.Receive(t, changed, "late or not")
	}
	assert.Greater(t, <-timeouts, time.Hour, "it is not known to be late")
	assert.LessOrEqual(t, <-timeouts, time.Hour, "it was late")
	assert.Greater(t, <-timeouts, time.Hour, "it was in time again")
}

func TestExternalPositionsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var waits atomic.Int32
	changed, stop := f.feed(f.waiting(func(context.Context, *journal.Record) error {
		waits.Add(1)
		return groups.ErrExternalPositions // as Groups.WaitApplied without the store
	})).Watch("a")
	defer stop()
	f.add("a")
	await.Receive(t, changed, "at once")
	assert.EqualValues(t, 1, waits.Load())
}

func TestAReadModelThatCannotBeReadForAMomentIsReadAgain(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ack := f.model()
	faulty := dynamotest.NewProxy(t, f.client)
	j := testjournal.Open(t, faulty.Client(testdb.Once), journal.Config{})
	config := f.config()
	config.Journal = j
	changed, stop := f.feed(config).Watch("a")
	defer stop()
	refused := faulty.Inject(dynamotest.CutConnection(), dynamotest.On("GetItem"), dynamotest.Times(2))
	f.add("a")
	ack <- struct{}{}
	await.Receive(t, changed, "after two failures")
	position, err := groups.New(f.journal).Position(t.Context(), "model", idOf("a"))
	require.NoError(t, err)
	assert.EqualValues(t, 1, position)
	assert.Equal(t, 2, refused.Fired())
}

func TestNothingIsReadForAnEventThatNobodyWatches(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var mu sync.Mutex
	waits := map[string]int{}
	changed, stop := f.feed(f.waiting(func(_ context.Context, r *journal.Record) error {
		mu.Lock()
		defer mu.Unlock()
		waits[r.Aggregate.Value]++
		return nil
	})).Watch("a")
	defer stop()
	f.add("b")
	f.add("b")
	f.add("a")
	await.Receive(t, changed, "of a")
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, map[string]int{"a": 1}, waits)
}

func TestTenThousandWatchersGetOneSignalForSeveralChanges(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed, err := live.New(f.config())
	require.NoError(t, err)
	changes := make([]<-chan struct{}, 10_000)
	for i := range changes {
		var stop func()
		changes[i], stop = feed.Watch("a")
		defer stop()
	}
	for range 3 {
		feed.Notify("a")
	}
	for _, changed := range changes {
		require.Len(t, changed, 1)
	}
}

func TestAWatcherThatHasStoppedIsForgotten(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var waits atomic.Int32
	config := f.waiting(func(context.Context, *journal.Record) error {
		waits.Add(1)
		return nil
	})
	feed := f.feed(config)
	gone, stop := feed.Watch("gone")
	stop()
	stop() // again
	changed, stopChanged := feed.Watch("a")
	defer stopChanged()
	f.add("gone")
	f.add("a")
	await.Receive(t, changed, "of a")
	assert.Empty(t, gone)
	assert.EqualValues(t, 1, waits.Load(), "stopped watchers do not count")
}

func TestWatchersFromBeforeRunAreNotifiedWhenItRuns(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed, err := live.New(f.config())
	require.NoError(t, err)
	changed, stop := feed.Watch("a")
	defer stop()
	assert.Empty(t, changed)
	f.run(feed)
	await.Receive(t, changed, "the feed runs")
}

func TestCloseEndsWatchersAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed := f.feed(f.config())
	changed, stop := feed.Watch("a")

	require.NoError(t, feed.Close())

	_, open := <-changed
	assert.False(t, open)
	stop()
	late, stopLate := feed.Watch("a")
	_, open = <-late
	assert.False(t, open)
	stopLate()
	feed.Notify("a")
	all, err := groups.New(f.journal).List(t.Context())
	require.NoError(t, err)
	assert.Empty(t, all)
	require.NoError(t, feed.Close(), "again")
}

func TestTheEndOfTheContextEndsRunAndItsWatchers(t *testing.T) {
	t.Parallel()
	f := setup(t)
	feed, err := live.New(f.config())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- feed.Run(ctx) }()
	<-feed.Running()
	changed, stop := feed.Watch("a")
	defer stop()
	cancel()
	require.NoError(t, <-ended)
	for range changed { // until it is closed
	}
}

func TestCloseDoesNotWaitForTheReadModel(t *testing.T) {
	t.Parallel()
	f := setup(t)
	waits := make(chan struct{}, 1)
	config := f.waiting(func(ctx context.Context, _ *journal.Record) error {
		waits <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	config.WaitTimeout, config.Subscriber.CloseTimeout = time.Hour, time.Hour
	feed := f.feed(config)
	changed, stop := feed.Watch("a")
	defer stop()
	f.add("a")
	<-waits
	require.NoError(t, feed.Close())
	for range changed { // until it is closed
	}
}
