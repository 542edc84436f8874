package groups_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/checkpoint"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/publisher"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

var keepMinute = groups.TrimOptions{Keep: time.Minute}

// Two publishers with versions that are minutes old send commands of the same processes while
// passes remove earlier ones, and the database loses replies, delays requests and is throttled. A
// stream would lose a command if its numbers began again below the position of the group.
func TestNoCommandIsLostWhileEarlierOnesAreRemoved(t *testing.T) {
	t.Parallel()
	eachCommands(t, func(t *testing.T, c commands) {
		const processes, rounds, senders = 4, 12, 2
		h := &handled{}
		member := open(t, c.db.Client(), journal.Config{})
		config := member.quick()
		// This keeps the work in many fake minutes small.
		config.Timing.PollInterval, config.Timing.MaxPollInterval, config.Timing.CommitInterval = time.Second, time.Second, time.Second
		h.consume(t, config, nil)
		var faults []*dynamotest.Injection
		for _, fault := range []dynamotest.Fault{
			dynamotest.Throttle(), dynamotest.LoseReply(), dynamotest.CutConnection(), dynamotest.Latency(time.Millisecond, time.Second), dynamotest.DelayIndex(0, 5*time.Second),
		} {
			faults = append(faults, c.db.Inject(fault, dynamotest.Chance(0.03)))
		}
		var running, sending sync.WaitGroup
		over := make(chan struct{})
		for range 2 {
			trimming := open(t, c.db.Client(patient), journal.Config{})
			running.Add(1)
			go func() {
				defer running.Done()
				for {
					select {
					case <-over:
						return
					case <-time.After(rand.N(20 * time.Second)):
					}
					_, err := trimming.TrimDue(t.Context(), topic, keepMinute)
					if err == nil {
						_, err = trimming.Trim(t.Context(), topic, keepMinute)
					}
					if err != nil {
						t.Log(err)
					}
				}
			}()
		}
		var mu sync.Mutex
		sent := map[string][]string{}
		for sender := range senders {
			j := open(t, c.db.Client(), journal.Config{}).Journal
			p, err := publisher.NewPublisher(publisher.Config{Journal: j, Queues: []string{topic}, CommitTimeout: 20 * time.Second}, nil)
			require.NoError(t, err)
			sending.Add(1)
			go func() {
				defer sending.Done()
				defer func() { assert.NoError(t, p.Close()) }()
				for round := range rounds {
					for n := range processes {
						process, payload := fmt.Sprint("p", n), fmt.Sprintf("%d/%d", sender, round)
						if p.Publish(topic, command(process, payload)) == nil {
							mu.Lock()
							sent[process] = append(sent[process], payload)
							mu.Unlock()
						}
						time.Sleep(rand.N(10 * time.Second))
					}
					time.Sleep(rand.N(time.Minute))
				}
			}()
		}
		sending.Wait()
		eventually(t, "all are handled", func() bool {
			for process, payloads := range sent {
				handled := h.of(process)
				for _, payload := range payloads {
					if !slices.Contains(handled, payload) {
						return false
					}
				}
			}
			return true
		})
		close(over)
		running.Wait()
		for _, fault := range faults {
			fault.Remove()
			assert.NotZero(t, fault.Fired())
		}
		c.caughtUp(t)
		time.Sleep(10 * time.Minute)
		for range 3 {
			time.Sleep(2 * time.Minute)
			_, err := c.Groups.TrimDue(t.Context(), topic, keepMinute)
			require.NoError(t, err)
		}
		for process := range sent {
			assert.Empty(t, c.left(t, process))
			version, err := c.Version(t.Context(), account(process))
			require.NoError(t, err)
			assert.GreaterOrEqual(t, version, uint64(len(sent[process])), "numbers have not begun again")
		}
	})
}

// removed removes all messages, so that the next pass has no other ones.
func (c commands) removed(t *testing.T) {
	t.Helper()
	time.Sleep(week + week/7 + time.Hour)
	c.trimDue(t)
	time.Sleep(time.Hour)
}

// The same at the moment of each request of a pass.
func TestACommandAtAnyMomentOfAPassIsHandled(t *testing.T) {
	t.Parallel()
	eachCommands(t, func(t *testing.T, c commands) {
		store := checkpoint.New(c.Journal)
		for moment := 0; ; moment++ {
			process := fmt.Sprint("p", moment)
			c.send(t, process, 2)
			c.acked(t, process, 2)
			time.Sleep(week + 2*time.Hour)
			at := c.db.Inject(dynamotest.Pause(func(context.Context) {
				// Its own requests are not paused, because the fault is used up.
				assert.NoError(t, c.p.Publish(topic, command(process, "late")))
			}), dynamotest.After(moment), dynamotest.Times(1))
			_, err := c.Groups.TrimDue(t.Context(), topic, keepWeek)
			at.Remove()
			require.NoError(t, err)
			if at.Fired() == 0 {
				assert.Greater(t, moment, 8)
				return
			}
			left := c.left(t, process)
			require.NotEmpty(t, left, "moment %d", moment)
			assert.Equal(t, uint64(3), left[len(left)-1])
			positions, err := store.Positions(t.Context(), checkpoint.Shard{Group: checkpoint.Group{Name: group}, Topic: topic, Number: c.Journal.Internal().Shard(account(process))},
				[]aggregate.ID{account(process)}, true)
			require.NoError(t, err)
			assert.Equal(t, uint64(2), positions[account(process)], "so the group reads the late one")
			c.acked(t, process, 3)
			c.removed(t)
		}
	})
}
