package millrace_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace"
	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/process"
	"github.com/millrace-dev/millrace/repository"
	"github.com/millrace-dev/millrace/subscriber"
)

// mailing opens an App whose group "mails" calls a function for each event, and whose group
// "labels" counts events.
func mailing(t *testing.T, db *dynamotest.DB, failures subscriber.FailurePolicy, mail func(id string) error) (
	app *millrace.App, repo *repository.Repository[order], labels *atomic.Int64,
) {
	t.Helper()
	app = open(t, db, subscribing(func(group string, c *subscriber.Config) {
		// Few polls, since tests wait for hours.
		c.Timing.PollInterval, c.Timing.MaxPollInterval = 10*time.Second, 10*time.Second
		if group == "mails" {
			c.Failures = failures
		}
	}))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	require.NoError(t, app.Handle(millrace.Group{Name: "mails", Topics: []string{"order"}}, func(msg *message.Message) error {
		id, _, _ := subscriber.AggregateFromContext(msg.Context())
		return mail(id.Value)
	}))
	labels = new(atomic.Int64)
	require.NoError(t, app.Handle(millrace.Group{Name: "labels", Topics: []string{"order"}}, func(*message.Message) error {
		time.Sleep(time.Second)
		labels.Add(1)
		return nil
	}))
	return app, repo, labels
}

// failFor returns a handler that fails for one aggregate.
func failFor(bad string) func(id string) error {
	return func(id string) error {
		if id == bad {
			return errors.New("no mail server")
		}
		return nil
	}
}

// notSettled returns the error of Settle, and how long it took.
func notSettled(t *testing.T, app *millrace.App, limit time.Duration) (*millrace.NotSettledError, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	var left *millrace.NotSettledError
	require.ErrorAs(t, app.Settle(ctx), &left)
	return left, time.Since(began)
}

func orderID(id string) aggregate.ID { return aggregate.ID{Type: "order", Value: id} }

func TestSettleSaysWhatFailsWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		app, repo, _ := mailing(t, dynamotest.New(t), subscriber.Block(), failFor("bad"))
		start(t, app)
		for _, id := range []string{"1", "bad", "2"} {
			testjournal.Execute(t, repo, id, place("tea"))
		}
		left, took := notSettled(t, app, 10*time.Second)
		assert.Equal(t, 10*time.Second, took, "a later attempt may succeed")
		require.ErrorIs(t, left, context.DeadlineExceeded)
		require.Len(t, left.Left, 1)
		u := left.Left[0]
		assert.Equal(t, millrace.Unsettled{Group: "mails", Aggregate: orderID("bad"), Event: 1, Reason: u.Reason}, u)
		assert.Regexp(t, `^not settled: group "mails" has not handled event 1 of order-bad: no mail server, \d+ times: context deadline exceeded$`, left.Error())
	})
}

func TestSettleWaitsForTheRestAndNotForWhatIsParked(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		app, repo, labels := mailing(t, dynamotest.New(t), subscriber.Park(3), failFor("bad"))
		start(t, app)
		for _, id := range []string{"1", "bad", "2"} {
			testjournal.Execute(t, repo, id, place("tea"))
		}
		for range 2 { // an aggregate that was parked before the call, too
			left, took := notSettled(t, app, time.Hour)
			assert.Less(t, took, time.Minute)
			require.NoError(t, left.Err)
			require.Len(t, left.Left, 1)
			assert.True(t, left.Left[0].Stuck)
			assert.Equal(t, `not settled: group "mails" has not handled event 1 of order-bad: the aggregate is parked: no mail server, 3 times`, left.Error())
			assert.EqualValues(t, 3, labels.Load(), "the rest is settled")
		}
		for _, id := range []string{"3", "4", "5", "6"} { // they move the cursors beyond the event
			time.Sleep(time.Minute)
			testjournal.Execute(t, repo, id, place("tea"))
		}
		time.Sleep(time.Minute)
		left, _ := notSettled(t, app, time.Hour)
		assert.Len(t, left.Left, 1)
		require.NoError(t, app.Groups().Skip(t.Context(), "mails", orderID("bad"), 1))
		require.NoError(t, app.Settle(t.Context()))
		time.Sleep(time.Minute) // the member takes the shard back
	})
}

func TestSettleDoesNotWaitForAGroupThatIsPaused(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		app, repo, labels := mailing(t, dynamotest.New(t), subscriber.Block(), failFor("bad"))
		start(t, app)
		mails := app.Groups().Of("mails", "order")
		require.NoError(t, mails.Pause(t.Context()))
		require.NoError(t, mails.WaitIdle(t.Context()))
		require.NoError(t, app.Settle(t.Context()), "it has nothing to do")
		testjournal.Execute(t, repo, "1", place("tea"))
		left, took := notSettled(t, app, time.Hour)
		assert.Less(t, took, time.Minute)
		assert.Equal(t, []millrace.Unsettled{{Group: "mails", Aggregate: orderID("1"), Event: 1, Reason: "the group is paused", Stuck: true}}, left.Left)
		assert.EqualValues(t, 1, labels.Load())
		require.NoError(t, mails.Resume(t.Context()))
		require.NoError(t, app.Settle(t.Context()))
	})
}

func TestSettleSaysWhichEventHasStoppedAGroup(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		app, repo, _ := mailing(t, dynamotest.New(t), subscriber.Stop(2), failFor("bad"))
		start(t, app)
		testjournal.Execute(t, repo, "bad", place("tea"))
		left, took := notSettled(t, app, time.Hour)
		assert.Less(t, took, time.Minute)
		assert.Contains(t, left.Error(), "the group was stopped by event 1 of order-bad: no mail server")
	})
}

func TestSettleWaitsForDeferredEvents(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		var attempts, mails atomic.Int64
		app, repo, _ := mailing(t, dynamotest.New(t), subscriber.Defer(subscriber.Backoff{Pause: 5 * time.Minute, Attempts: 4}), func(string) error {
			if attempts.Add(1) < 3 {
				return errors.New("no mail server")
			}
			mails.Add(1)
			return nil
		})
		start(t, app)
		testjournal.Execute(t, repo, "1", place("tea"))
		left, _ := notSettled(t, app, time.Minute)
		require.Len(t, left.Left, 1)
		assert.Contains(t, left.Left[0].Reason, "no mail server")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, app.Settle(ctx))
		assert.EqualValues(t, 1, mails.Load())
	})
}

func TestSettleNamesAHandlerThatHangs(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		released := make(chan struct{})
		app, repo, _ := mailing(t, dynamotest.New(t), subscriber.Block(), func(string) error {
			<-released
			return nil
		})
		start(t, app)
		testjournal.Execute(t, repo, "1", place("tea"))
		left, _ := notSettled(t, app, time.Minute)
		assert.Contains(t, left.Error(), `group "mails" has not handled event 1 of order-1`)
		assert.Contains(t, left.Error(), `in handlers: event 1 of order-1 (order.placed.v2) in group "mails" for 1m0s`)
		close(released)
		require.NoError(t, app.Settle(t.Context()))
	})
}

func TestSettleFiresTimeoutsThatAreDueAndLeavesTheOthers(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		app, repo, saga := reminding(t, dynamotest.New(t))
		start(t, app)
		testjournal.Execute(t, repo, "1", place("tea"))
		require.NoError(t, app.Settle(t.Context()), "the timeout is due in an hour")
		loaded, err := saga.Repository().Load(t.Context(), "1")
		require.NoError(t, err)
		assert.EqualValues(t, 1, loaded.Version)
		time.Sleep(time.Hour)
		require.NoError(t, app.Settle(t.Context()))
		loaded, err = saga.Repository().Load(t.Context(), "1")
		require.NoError(t, err)
		assert.EqualValues(t, 2, loaded.Version, "the timeout has fired, although the manager polls once a day")
	})
}

type (
	nagging  struct{}
	promised struct{}
	nagged   struct{}
)

func (promised) EventType() string { return "nagging.promised.v1" }
func (nagged) EventType() string   { return "nagging.nagged.v1" }
func (promised) Apply(*nagging)    {}
func (nagged) Apply(*nagging)      {}

// reminding opens an App whose process sets a timeout for an hour after an order.
func reminding(t *testing.T, db *dynamotest.DB) (*millrace.App, *repository.Repository[order], *process.Manager[nagging]) {
	t.Helper()
	app := open(t, db, subscribing(func(_ string, c *subscriber.Config) {
		c.Timing.PollInterval, c.Timing.MaxPollInterval = 10*time.Second, 10*time.Second
	}))
	repo, err := millrace.Repository(app, orders, repository.Config{})
	require.NoError(t, err)
	saga, err := millrace.Process(t.Context(), app, process.Define(aggregate.Define[nagging]("nagging", promised{}, nagged{}),
		process.On(func(_ placed, in process.Input) string { return in.Source.Value },
			func(nagging, placed, process.Input) (process.Step[nagging], error) {
				return process.Record(promised{}).SetTimeout("late", time.Hour), nil
			}).Starts(),
		process.OnTimeout("late", func(nagging, process.Input) (process.Step[nagging], error) {
			return process.Record(nagged{}), nil
		}),
	), process.Config{PollInterval: 24 * time.Hour}, "order")
	require.NoError(t, err)
	return app, repo, saga
}

func TestSettleNeedsAnAppThatRuns(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		app, repo, _ := mailing(t, dynamotest.New(t), subscriber.Block(), failFor(""))
		err := app.Settle(t.Context())
		require.ErrorIs(t, err, millrace.ErrNotRunning)
		require.ErrorIs(t, err, context.DeadlineExceeded, "without a deadline it takes a minute")
		testjournal.Execute(t, repo, "1", place("tea"))
		ended := make(chan error, 1)
		go func() { ended <- app.Settle(t.Context()) }()
		time.Sleep(time.Second)
		stop := start(t, app)
		require.NoError(t, <-ended, "it waits for the start")
		require.NoError(t, stop())
		require.ErrorIs(t, app.Settle(t.Context()), millrace.ErrNotRunning)
	})
}

// Settle must not read what was handled long ago.
func TestSettleCostsWhatIsLeftToDo(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		app, repo, _ := mailing(t, db, subscriber.Block(), failFor(""))
		start(t, app)
		require.NoError(t, app.Settle(t.Context()))
		cost := func() (read float64) {
			time.Sleep(time.Minute) // the cursors move
			recording := db.Record()
			defer recording.Stop()
			require.NoError(t, app.Settle(t.Context()))
			read, _ = recording.Units()
			return read
		}
		before := cost()
		for i := range 300 {
			testjournal.Execute(t, repo, fmt.Sprint(i), place("tea"))
			time.Sleep(100 * time.Millisecond)
		}
		require.NoError(t, app.Settle(t.Context()))
		assert.InDelta(t, before, cost(), 3)
		assert.Less(t, before, 40., "two groups, two shards")
	})
}
