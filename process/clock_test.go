package process_test

import (
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

// skews are the times by which a clock of the tests below is ahead of the database's.
var skews = []time.Duration{
	-24 * time.Hour, -time.Minute, -1100 * time.Millisecond, -300 * time.Millisecond, 0, 300 * time.Millisecond, 1100 * time.Millisecond, time.Minute, 24 * time.Hour,
}

// clocks is a database with managers whose clocks are ahead of it.
type clocks struct {
	*world
	db *dynamotest.DB
}

func newClocks(t *testing.T) clocks {
	t.Helper()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
	require.NoError(t, process.CreateTable(t.Context(), db.Client(), ""))
	return clocks{&world{t: t, client: db.Client()}, db}
}

// started returns a manager that has just started.
func (c clocks) started() *process.Manager[Saga] {
	c.t.Helper()
	j := testjournal.Open(c.t, c.client, journal.Config{})
	config := c.config()
	config.Now = nil
	m, err := process.New(j, c.client, definition, config)
	require.NoError(c.t, err)
	return m
}

// measured returns a manager that knows the difference of the clocks to a few milliseconds.
func (c clocks) measured() *process.Manager[Saga] {
	c.t.Helper()
	m := c.started()
	for range 20 {
		time.Sleep(137 * time.Millisecond)
		c.fire(m)
	}
	return m
}

// firesAfter polls until a timeout fires that was set at a time of the database, and returns how
// much later that is. It takes a manager for each poll.
func (c clocks) firesAfter(set time.Time, polling func() *process.Manager[Saga]) time.Duration {
	c.t.Helper()
	for {
		fired := c.fire(polling())
		after := c.db.Clock().Now().Sub(set)
		if fired > 0 {
			return after
		}
		require.Less(c.t, after, 2*deadline, "the timeout never fires")
		pause := 7 * time.Second
		if after > deadline-2*pause {
			pause = 100 * time.Millisecond
		}
		time.Sleep(pause)
	}
}

// wrongClocks calls test for each skew, in fake time. The clock of wrong has been set by skew since
// its last request: it is ahead of the database and has not noticed yet. The clock of right has
// always had that difference. So has the clock of wrong for a skew of less than a second. The
// bubble has one clock only, so the test moves the database's clock instead. No reply shows a move
// of less than a second, and DynamoDB's clock makes none.
func wrongClocks(t *testing.T, test func(t *testing.T, c clocks, wrong, right *process.Manager[Saga])) {
	t.Helper()
	for _, skew := range skews {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			testdb.WithFakeTime(t, func(t *testing.T) {
				c := newClocks(t)
				wrong := c.measured()
				c.db.Clock().Advance(-skew)
				right := c.measured()
				if skew.Abs() < time.Second {
					wrong = c.measured()
				}
				test(t, c, wrong, right)
			})
		})
	}
}

func TestAWrongClockFiresNoTimeoutEarly(t *testing.T) {
	t.Parallel()
	wrongClocks(t, func(t *testing.T, c clocks, wrong, right *process.Manager[Saga]) {
		set := c.db.Clock().Now()
		require.NoError(t, right.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 1})))

		after := c.firesAfter(set, func() *process.Manager[Saga] { return wrong })

		assert.GreaterOrEqual(t, after, deadline)
		assert.Less(t, after, deadline+time.Second)
	})
}

func TestAWrongClockSetsTimeoutsByTheDatabasesTime(t *testing.T) {
	t.Parallel()
	wrongClocks(t, func(t *testing.T, c clocks, wrong, right *process.Manager[Saga]) {
		set := c.db.Clock().Now()
		require.NoError(t, wrong.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 1})))

		after := c.firesAfter(set, func() *process.Manager[Saga] { return right })

		assert.GreaterOrEqual(t, after, deadline-time.Second)
		assert.Less(t, after, deadline+3*time.Second)
	})
}

// The first replies show the time of the database to a second only.
func TestAManagerThatHasJustStartedFiresNoTimeoutEarly(t *testing.T) {
	t.Parallel()
	wrongClocks(t, func(t *testing.T, c clocks, _, right *process.Manager[Saga]) {
		set := c.db.Clock().Now()
		require.NoError(t, right.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 1})))

		after := c.firesAfter(set, c.started)

		assert.GreaterOrEqual(t, after, deadline)
		assert.Less(t, after, deadline+1100*time.Millisecond)
	})
}

func TestAWrongClockDelaysNoRetry(t *testing.T) {
	t.Parallel()
	wrongClocks(t, func(t *testing.T, c clocks, wrong, right *process.Manager[Saga]) {
		c.setOffline(true)
		require.ErrorIs(t, right.Handle(event(t.Context(), "e1", "o1", OrderPlaced{Total: 1})), errOffline)
		const retryAfter = 31 * time.Second
		time.Sleep(retryAfter)
		_, _ = wrong.Fire(t.Context()) // an attempt that fails, if it notices the commands
		c.setOffline(false)

		time.Sleep(retryAfter)
		c.fire(right)

		assert.Equal(t, []string{"ReserveCredit"}, c.topics())
	})
}
