package groups_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

const week = 7 * day

var keepWeek = groups.TrimOptions{Keep: week}

// commands is a topic of commands in fake time. Each process has a stream.
type commands struct {
	queue
	db *dynamotest.DB
	p  *publisher.Publisher
}

func eachCommands(t *testing.T, test func(t *testing.T, c commands)) {
	t.Helper()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		testdb.WithFakeTime(t, func(t *testing.T) {
			db := dynamotest.New(t)
			require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 2, Layout: layout}))
			c := commands{queue: openQueue(t, db.Client()), db: db}
			other := open(t, db.Client(), journal.Config{})
			p, err := publisher.NewPublisher(publisher.Config{Journal: other.Journal, Queues: []string{topic}}, nil)
			require.NoError(t, err)
			defer func() { require.NoError(t, p.Close()) }()
			c.p = p
			c.begin(t, time.Time{})
			test(t, c)
		})
	})
}

// command returns a message of a process.
func command(process, payload string) *message.Message {
	msg := message.NewMessage("", []byte(payload))
	msg.Metadata.Set("aggregate_id", process)
	return msg
}

func (c commands) send(t *testing.T, process string, n int) {
	t.Helper()
	for i := range n {
		require.NoError(t, c.p.Publish(topic, command(process, fmt.Sprint(i))))
	}
}

func (c commands) trimDue(t *testing.T) groups.Trimmed {
	t.Helper()
	trimmed, err := c.Groups.TrimDue(t.Context(), topic, keepWeek)
	require.NoError(t, err)
	return trimmed
}

// units returns the read and write units of a call.
func (c commands) units(call func()) (read, write float64) {
	recording := c.db.Record()
	call()
	recording.Stop()
	return recording.Units()
}

func TestCommandsOfProcessesAreRemovedWhenTheyAreOldAndHandled(t *testing.T) {
	t.Parallel()
	eachCommands(t, func(t *testing.T, c commands) {
		c.send(t, "p1", 3)
		c.acked(t, "p1", 3)
		time.Sleep(3 * day)
		c.send(t, "p1", 1)
		c.send(t, "p2", 1)
		c.acked(t, "p1", 4)
		c.acked(t, "p2", 1)
		assert.Zero(t, c.trimDue(t).Streams)
		time.Sleep(week - 3*day + time.Hour)

		trimmed := c.trimDue(t)

		assert.Equal(t, groups.Trimmed{Topic: topic, Aggregates: 1, Streams: 1, Events: 3, Shortened: 1, HeldBy: map[string]int{}}, trimmed)
		assert.Equal(t, []uint64{4}, c.left(t, "p1"))
		time.Sleep(week)
		assert.Equal(t, uint64(2), c.trimDue(t).Events)
		assert.Empty(t, c.left(t, "p1"))
		assert.Empty(t, c.left(t, "p2"))
		c.send(t, "p1", 1)
		assert.Equal(t, []uint64{5}, c.left(t, "p1"), "numbers continue")
	})
}

func TestOnlyMessagesOfQueuesAreRemoved(t *testing.T) {
	t.Parallel()
	eachCommands(t, func(t *testing.T, c commands) {
		plain, err := publisher.NewPublisher(publisher.Config{Journal: c.Journal, Queues: []string{"other"}}, nil)
		require.NoError(t, err)
		require.NoError(t, plain.Publish(topic, command("order", "1")))
		require.NoError(t, plain.Publish(topic, command("both", "1")))
		require.NoError(t, plain.Close())
		c.write(t, "repository", 0, 2)
		c.send(t, "continued", 2)
		c.write(t, "continued", 2, 1) // as a repository
		c.send(t, "both", 1)
		for process, version := range map[string]uint64{"order": 1, "both": 2, "repository": 2, "continued": 2} {
			c.acked(t, process, version)
		}
		time.Sleep(week + time.Hour)

		trimmed := c.trimDue(t)

		assert.Zero(t, trimmed.Events)
		assert.Equal(t, 1, trimmed.Foreign)
		read, _ := c.units(func() {
			time.Sleep(2 * time.Hour)
			assert.Zero(t, c.trimDue(t).Aggregates, "they are not visited again")
		})
		assert.LessOrEqual(t, read, 4.5)
		_, err = c.Trim(t.Context(), topic, keepWeek)
		require.NoError(t, err)
		assert.Len(t, c.left(t, "order"), 1)
		assert.Len(t, c.left(t, "both"), 2)
		assert.Len(t, c.left(t, "repository"), 2)
		assert.Len(t, c.left(t, "continued"), 3)
	})
}

func TestAPassIsDueOnceForAllProcesses(t *testing.T) {
	t.Parallel()
	eachCommands(t, func(t *testing.T, c commands) {
		c.send(t, "p1", 1)
		c.acked(t, "p1", 1)
		time.Sleep(week + time.Hour)
		other := open(t, c.db.Client(), journal.Config{})
		var first groups.Trimmed
		claim := c.db.Inject(dynamotest.Pause(func(context.Context) {
			var err error
			first, err = other.TrimDue(t.Context(), topic, keepWeek)
			assert.NoError(t, err)
		}), dynamotest.On("UpdateItem"), dynamotest.Times(1))

		second := c.trimDue(t)

		assert.Equal(t, 1, claim.Fired())
		assert.Equal(t, uint64(1), first.Events)
		assert.Zero(t, second.Aggregates, "the other one has begun the pass")

		read, write := c.units(func() { assert.Equal(t, groups.Trimmed{Topic: topic, HeldBy: map[string]int{}}, c.trimDue(t)) })
		assert.InDelta(t, 0.5, read, 0.01)
		assert.Zero(t, write)
		time.Sleep(time.Hour)
		read, write = c.units(func() { c.trimDue(t) })
		assert.LessOrEqual(t, read, 4.5, "nothing is old")
		assert.InDelta(t, 2, write, 0.01)
	})
}

func TestMessagesThatAGroupHasKeptAreVisitedAgain(t *testing.T) {
	t.Parallel()
	eachCommands(t, func(t *testing.T, c commands) {
		c.send(t, "blocked", 2)
		c.acked(t, "blocked", 1)
		time.Sleep(time.Hour)
		c.send(t, "p1", 1)
		c.acked(t, "p1", 1)
		time.Sleep(week)
		assert.Equal(t, map[string]int{group: 1}, c.trimDue(t).HeldBy)
		time.Sleep(time.Hour)
		assert.Equal(t, uint64(1), c.trimDue(t).Events)
		c.acked(t, "blocked", 2)
		time.Sleep(time.Hour)
		assert.Zero(t, c.trimDue(t).Aggregates)
		assert.Equal(t, []uint64{2}, c.left(t, "blocked"))

		time.Sleep(week / 7)

		assert.Equal(t, uint64(1), c.trimDue(t).Events)
		assert.Empty(t, c.left(t, "blocked"))
		time.Sleep(week)
		assert.Zero(t, c.trimDue(t).Aggregates)
	})
}

func TestABacklogTakesSeveralPasses(t *testing.T) {
	t.Parallel()
	eachCommands(t, func(t *testing.T, c commands) {
		const processes, each = 260, 10
		for n := range processes {
			process := fmt.Sprint("p", n)
			for range each {
				c.send(t, process, 1)
				time.Sleep(time.Millisecond)
			}
			c.acked(t, process, each)
		}
		time.Sleep(week + time.Hour)
		var events uint64
		passes := 0
		for more := true; more; passes++ {
			trimmed := c.trimDue(t)
			events, more = events+trimmed.Events, trimmed.More
		}

		assert.Equal(t, uint64(processes*each), events)
		assert.InDelta(t, 4, passes, 1)
		assert.Zero(t, c.trimDue(t).Aggregates, "none is due")
	})
}

// Messages that stay must not hide others of the same millisecond from all passes.
func TestAPassGoesBeyondManyMessagesOfOneMillisecond(t *testing.T) {
	t.Parallel()
	eachCommands(t, func(t *testing.T, c commands) {
		c.send(t, "p", 1)
		c.acked(t, "p", 1)
		time.Sleep(time.Minute)
		const processes = 8
		for n := range processes {
			c.send(t, fmt.Sprint("a", n), 200)
		}
		for n := range processes {
			c.send(t, fmt.Sprint("p", n), 1)
			c.acked(t, fmt.Sprint("p", n), 1)
		}
		time.Sleep(week + time.Hour)
		var events uint64
		for more := true; more; {
			trimmed := c.trimDue(t)
			events, more = events+trimmed.Events, trimmed.More
		}
		assert.Equal(t, uint64(processes+1), events)
	})
}

func TestATopicWithoutAGroupKeepsItsCommands(t *testing.T) {
	t.Parallel()
	eachQueueInFakeTime(t, func(t *testing.T, q queue) {
		q.publish(t, "worker", 1)
		time.Sleep(week + time.Hour)

		_, err := q.Groups.TrimDue(t.Context(), topic, keepWeek)

		require.ErrorIs(t, err, groups.ErrNoGroups)
		q.begin(t, time.Time{})
		_, err = q.Trim(t.Context(), topic, groups.TrimOptions{Keep: week, Groups: []string{group, "later"}})
		require.ErrorIs(t, err, groups.ErrNoGroups)
		require.ErrorContains(t, err, `group "later" does not exist`)
		_, err = q.Groups.TrimDue(t.Context(), topic, groups.TrimOptions{})
		require.ErrorAs(t, err, new(*groups.TrimKeepError))
		_, err = q.Groups.TrimDue(t.Context(), topic, groups.TrimOptions{Keep: week, DryRun: true})
		require.ErrorContains(t, err, "TrimDue has no dry run")
	})
}

func TestAPassRemovesWhatAnInterruptedOneHasLeft(t *testing.T) {
	t.Parallel()
	eachCommands(t, func(t *testing.T, c commands) {
		const processes = 40
		for n := range processes {
			c.send(t, fmt.Sprint("p", n), 3)
			c.acked(t, fmt.Sprint("p", n), 3)
		}
		time.Sleep(week + time.Hour)
		interrupted, interrupt := context.WithCancel(t.Context())
		c.db.Inject(dynamotest.Pause(func(context.Context) { interrupt() }), dynamotest.On("BatchWriteItem", "UpdateItem"), dynamotest.Times(1), dynamotest.After(30))
		_, err := c.Groups.TrimDue(interrupted, topic, keepWeek)
		require.ErrorIs(t, err, context.Canceled)
		time.Sleep(time.Hour)

		c.trimDue(t)

		for n := range processes {
			inspection, err := c.Journal.Internal().Inspect(t.Context(), account(fmt.Sprint("p", n)), func(r *journal.Record) {
				assert.Fail(t, "an event is left", "%s %d", r.Aggregate, r.Number)
			})
			require.NoError(t, err)
			assert.Empty(t, inspection.Corrupt)
		}
	})
}
