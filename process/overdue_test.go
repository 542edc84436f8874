package process_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/process"
)

// overdue is a database with processes that have missed timeouts.
type overdue struct {
	*world
	db    *dynamotest.DB
	mu    sync.Mutex
	fired []string // the process and the hour of each timeout that has fired
}

func withOverdue(t *testing.T, test func(o *overdue)) {
	t.Helper()
	testdb.WithFakeTime(t, func(t *testing.T) {
		db := dynamotest.New(t)
		client := db.Client()
		require.NoError(t, journal.Create(t.Context(), client, journal.Config{Shards: 1, Layout: journal.Packed}))
		require.NoError(t, process.CreateTable(t.Context(), client, ""))
		test(&overdue{world: &world{t: t, client: client, j: testjournal.Open(t, client, journal.Config{})}, db: db})
	})
}

func hour(n int) string { return fmt.Sprint("hour ", n) }

// manager returns a manager of processes that set a timeout for each hour when they begin. React is
// the reaction to each timeout.
func (o *overdue) manager(hours int, react func(in process.Input) (step, error)) *process.Manager[Saga] {
	o.t.Helper()
	reactions := []process.Reaction[Saga]{
		process.On(byID, func(_ Saga, _ OrderPlaced, in process.Input) (step, error) {
			s := begun
			for n := range hours {
				s = s.SetTimeoutAt(hour(n), in.OccurredAt.Add(time.Duration(n+1)*time.Hour))
			}
			return s, nil
		}).Starts(),
	}
	for n := range max(hours, 1) {
		reactions = append(reactions, process.OnTimeout(hour(n), func(_ Saga, in process.Input) (step, error) {
			s, err := react(in)
			if err == nil {
				o.mu.Lock()
				defer o.mu.Unlock()
				o.fired = append(o.fired, in.Process+" "+in.Timeout)
			}
			return s, err
		}))
	}
	config := o.config()
	config.Now = nil
	m, err := process.New(o.j, o.client, process.Define(sagas, reactions...), config)
	require.NoError(o.t, err)
	return m
}

// begin begins processes, and waits until some hours have passed.
func (o *overdue) begin(m *process.Manager[Saga], processes, hours int) {
	o.t.Helper()
	now := time.Now()
	for n := range processes {
		msg := event(o.t.Context(), fmt.Sprint("e", n), fmt.Sprint("o", n), OrderPlaced{Total: 1})
		msg.Metadata.Set("occurred_at", now.Format(time.RFC3339))
		require.NoError(o.t, m.Handle(msg))
	}
	time.Sleep(time.Duration(hours)*time.Hour + time.Minute)
}

// run runs a manager until some reactions to timeouts have succeeded, for ten minutes at most, and
// returns how long that took.
func (o *overdue) run(m *process.Manager[Saga], timeouts int) time.Duration {
	o.t.Helper()
	return o.runUntil(m, func() bool { return len(o.hours()) >= timeouts })
}

func (o *overdue) runUntil(m *process.Manager[Saga], done func() bool) time.Duration {
	o.t.Helper()
	ctx, stop := context.WithCancel(o.t.Context())
	var running sync.WaitGroup
	running.Add(1)
	go func() {
		defer running.Done()
		_ = m.Run(ctx)
	}()
	began := time.Now()
	for !done() && time.Since(began) < 10*time.Minute {
		time.Sleep(10 * time.Millisecond)
	}
	took := time.Since(began)
	stop()
	running.Wait()
	return took
}

func (o *overdue) hours() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.fired)
}

func hoursOf(process string, hours int) (all []string) {
	for n := range hours {
		all = append(all, process+" "+hour(n))
	}
	return all
}

func TestMissedTimeoutsOfAProcessFireInARow(t *testing.T) {
	t.Parallel()
	withOverdue(t, func(o *overdue) {
		const hours = 48
		m := o.manager(hours, func(process.Input) (step, error) { return begun, nil })
		o.begin(m, 1, hours)
		recording := o.db.Record()

		took := o.run(m, hours)

		recording.Stop()
		reads, writes := recording.Units()
		assert.Equal(o.t, hoursOf("o0", hours), o.hours(), "in the order of their times")
		assert.Less(o.t, took, time.Second)
		assert.Equal(o.t, uint64(1), m.Stats().Polls)
		assert.LessOrEqual(o.t, reads, 2.0*hours+3, "steps, the poll and the number of queues")
		assert.LessOrEqual(o.t, writes, 11.0*hours)
	})
}

// A reaction that sets the next hour, as a clock strikes, has missed hours that are not rows yet.
func TestTimeoutsThatAreSetForPastTimesFireInARow(t *testing.T) {
	t.Parallel()
	next := func(in process.Input) (step, error) {
		return begun.SetTimeoutAt(hour(0), in.OccurredAt.Add(time.Hour)), nil
	}
	const hours = 48
	t.Run("Run", func(t *testing.T) {
		t.Parallel()
		withOverdue(t, func(o *overdue) {
			m := o.manager(1, next)
			o.begin(m, 1, hours)
			recording := o.db.Record()

			took := o.run(m, hours)

			recording.Stop()
			reads, writes := recording.Units()
			assert.Less(o.t, took, time.Second)
			assert.Equal(o.t, uint64(1), m.Stats().Polls)
			assert.LessOrEqual(o.t, reads, 2.0*hours+3)
			assert.LessOrEqual(o.t, writes, 12.0*hours)
			assert.Len(o.t, o.hours(), hours)
		})
	})
	t.Run("Fire", func(t *testing.T) {
		t.Parallel()
		withOverdue(t, func(o *overdue) {
			m := o.manager(1, next)
			o.begin(m, 3, hours)

			assert.Equal(o.t, 3*hours, o.fire(m))
			assert.Zero(o.t, o.fire(m), "the next hour is not over")
		})
	})
}

func TestATimeoutThatIsSetForTheSamePastTimeWaitsForAPoll(t *testing.T) {
	t.Parallel()
	withOverdue(t, func(o *overdue) {
		m := o.manager(1, func(in process.Input) (step, error) {
			return begun.SetTimeoutAt(hour(0), in.OccurredAt), nil
		})
		o.begin(m, 1, 1)

		o.run(m, 10)

		assert.InDelta(o.t, 10, m.Stats().Polls, 1)
	})
}

func TestABacklogIsWorkedOffAtOnce(t *testing.T) {
	t.Parallel()
	withOverdue(t, func(o *overdue) {
		const many, failing, perProcess = 500, 5, 2
		var now, most atomic.Int64
		m := o.manager(perProcess, func(in process.Input) (step, error) {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			time.Sleep(10 * time.Millisecond)
			if strings.HasSuffix(in.Process, "99") && in.Timeout == hour(0) {
				return step{}, errNotNow
			}
			return begun, nil
		})
		o.begin(m, many, perProcess)
		recording := o.db.Record()

		took := o.run(m, many*perProcess-failing)

		assert.Less(o.t, took, many*perProcess*10*time.Millisecond/8+time.Second, "eight at a time")
		assert.LessOrEqual(o.t, most.Load(), int64(8))
		assert.LessOrEqual(o.t, m.Stats().Polls, uint64(3))
		assert.Equal(o.t, uint64(failing), m.Stats().Failed)
		o.run(m, many*perProcess) // for ten minutes
		recording.Stop()
		reads, _ := recording.Units()
		attempts, polls := m.Stats().Failed, m.Stats().Polls
		assert.InDelta(o.t, failing*600/30, attempts, failing*600/30/10, "one after each RetryAfter")
		assert.InDelta(o.t, 600, polls, 20, "one after each PollInterval")
		assert.LessOrEqual(o.t, reads, 2.1*many*perProcess+3*float64(attempts)+1.5*float64(polls))
	})
}

func TestTimeoutsOfManyProcessesFireInTheOrderOfEach(t *testing.T) {
	t.Parallel()
	withOverdue(t, func(o *overdue) {
		const many, hours = 30, 20 // several pages, each with all processes
		m := o.manager(hours, func(process.Input) (step, error) {
			time.Sleep(10 * time.Millisecond)
			return begun, nil
		})
		o.begin(m, many, hours)

		o.run(m, many*hours)

		byProcess := map[string][]string{}
		for _, fired := range o.hours() {
			name, _, _ := strings.Cut(fired, " ")
			byProcess[name] = append(byProcess[name], fired)
		}
		for n := range many {
			name := fmt.Sprint("o", n)
			assert.Equal(o.t, hoursOf(name, hours), byProcess[name])
		}
		assert.LessOrEqual(o.t, m.Stats().Polls, uint64(3))
	})
}

func TestATimeoutThatFailsOrPanicsDoesNotStopLaterOnes(t *testing.T) {
	t.Parallel()
	withOverdue(t, func(o *overdue) {
		const hours = 5
		m := o.manager(hours, func(in process.Input) (step, error) {
			switch in.Timeout {
			case hour(1):
				return step{}, errNotNow
			case hour(2):
				panic("boom")
			}
			return begun.CancelTimeout(hour(3)), nil
		})
		o.begin(m, 1, hours)

		n, err := m.Fire(o.t.Context())

		require.ErrorIs(o.t, err, errNotNow)
		require.ErrorContains(o.t, err, "boom")
		assert.Equal(o.t, 2, n)
		assert.Equal(o.t, []string{"o0 hour 0", "o0 hour 4"}, o.hours(), "the fourth was cancelled")
	})
}

func TestATimeoutThatHangsHoldsUpOnlyItsProcess(t *testing.T) {
	t.Parallel()
	withOverdue(t, func(o *overdue) {
		const many, hours = 50, 10
		m := o.manager(hours, func(in process.Input) (step, error) {
			if in.Process == "o7" && in.Timeout == hour(0) {
				time.Sleep(20 * time.Second)
			}
			return begun, nil
		})
		o.begin(m, many, hours)

		assert.Less(o.t, o.run(m, (many-1)*hours), 5*time.Second)
		assert.Less(o.t, o.run(m, many*hours), time.Minute)
	})
}

func TestManagersFireEachTimeoutOfAProcessOnce(t *testing.T) {
	t.Parallel()
	withOverdue(t, func(o *overdue) {
		const hours, managers = 48, 4
		var all []*process.Manager[Saga]
		for range managers {
			all = append(all, o.manager(hours, func(process.Input) (step, error) {
				time.Sleep(100 * time.Millisecond)
				return begun, nil
			}))
		}
		o.begin(all[0], 1, hours)
		var running sync.WaitGroup
		for _, m := range all {
			running.Add(1)
			go func() {
				defer running.Done()
				o.runUntil(m, func() bool { return fired(all) == hours })
			}()
		}
		running.Wait()

		_, version := o.saga(all[0], "o0")
		assert.Equal(o.t, uint64(1+hours), version)
		assert.Zero(o.t, o.fire(all[0]))
	})
}

// fired returns the number of timeouts that managers have fired.
func fired(all []*process.Manager[Saga]) (n uint64) {
	for _, m := range all {
		n += m.Stats().Fired
	}
	return n
}
