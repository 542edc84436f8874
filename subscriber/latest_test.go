package subscriber_test

import (
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
	"github.com/millrace-dev/millrace/subscriber/groups"
)

// latest returns a config that begins with the last events.
func latest(j *journal.Journal) subscriber.Config {
	config := quick(j)
	config.LatestOnly, config.Timing.ReconcileInterval = true, 100*time.Millisecond
	return config
}

func TestAGroupBeginsWithTheLastEventOfEachAggregate(t *testing.T) {
	t.Parallel()
	eachLayout(t, 2, func(t *testing.T, client *dynamodb.Client) {
		j := open(t, client)
		old := earlier(t, client)
		write(t, old, "x", 0, 50)
		write(t, old, "y", 0, 1)
		_, messages := subscribe(t, latest(j))
		assert.ElementsMatch(t, []string{"x/50", "y/1"}, receiveAll(t, messages, 2))

		write(t, j, "x", 50, 2)
		write(t, j, "z", 0, 2)
		assert.ElementsMatch(t, []string{"x/51", "x/52"}, receiveOf(t, messages, "x", 2, "z/1", "z/2"))
	})
}

// receiveOf acks messages until n of an aggregate have come. Others must be as allowed.
func receiveOf(t *testing.T, messages <-chan *message.Message, id string, n int, allowed ...string) (payloads []string) {
	t.Helper()
	for len(payloads) < n {
		msg := receive(t, messages)
		if payload := string(msg.Payload); payload[:1] == id {
			payloads = append(payloads, payload)
		} else {
			assert.Contains(t, allowed, payload)
		}
		msg.Ack()
	}
	return payloads
}

func TestWhatIsLeftOutCountsAsHandledOnlyWithTheLastEvent(t *testing.T) {
	t.Parallel()
	for name, interval := range map[string]time.Duration{"with each ack": -1, "in intervals": 5 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := create(t, 1)
			write(t, earlier(t, client), "x", 0, 50)
			j := open(t, client)
			config := unanswered(latest(j))
			config.Timing.CommitInterval = interval
			sub, messages := subscribe(t, config)
			msg := receive(t, messages)
			time.Sleep(50 * time.Millisecond)
			g := groups.New(j)
			position, err := g.Position(t.Context(), "group", account("x"))
			require.NoError(t, err)
			assert.Zero(t, position)
			lag, err := groups.Of(j, "group", topic).Lag(t.Context(), groups.LagOptions{})
			require.NoError(t, err)
			assert.EqualValues(t, 50, lag.Lag.Events)
			require.NoError(t, sub.Close())
			assert.Equal(t, "x/50", string(msg.Payload))

			_, messages = subscribe(t, latest(j))
			assert.Equal(t, []string{"x/50"}, receiveAll(t, messages, 1), "it was not acked")
			require.NoError(t, g.WaitApplied(t.Context(), "group", account("x"), 50))
		})
	}
}

func TestAGroupOfLastEventsDoesNotReadTheOthers(t *testing.T) {
	t.Parallel()
	testdb.WithFakeTime(t, func(t *testing.T) {
		units := func(latestOnly bool) (read float64) {
			db := dynamotest.New(t)
			require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Shards: 1, Layout: journal.Packed}))
			j := open(t, db.Client())
			write(t, j, "x", 0, 5_000)
			time.Sleep(time.Hour)
			config := latest(j)
			config.LatestOnly = latestOnly
			calls := db.Record()
			sub, messages := subscribe(t, config)
			for msg := receive(t, messages); ; msg = receive(t, messages) {
				msg.Ack()
				if string(msg.Payload) == "x/5000" {
					break
				}
			}
			require.NoError(t, sub.Close())
			for _, call := range calls.Calls() {
				read += call.ReadUnits
			}
			return read
		}
		all, last := units(false), units(true)
		assert.Less(t, last, all/2, "%v read units of %v", last, all)
	})
}

func TestAGroupOfLastEventsPassesDeletedAndTruncatedAggregates(t *testing.T) {
	t.Parallel()
	testjournal.EachLayout(t, func(t *testing.T, layout journal.Layout) {
		for _, before := range []uint64{5, 30} {
			j := truncated(t, layout, 30, before)
			write(t, j, "deleted", 0, 5)
			require.NoError(t, j.Delete(t.Context(), account("deleted"), 5, journal.RemoveOptions{}))
			write(t, j, "y", 0, 5)
			sub, messages := subscribe(t, latest(j))
			// The events are new, so the tail may show them before the heads do.
			receiveOf(t, messages, "y", 1, "x/30")
			write(t, j, "y", 5, 1)
			receiveOf(t, messages, "y", 1, "x/30")
			eventually(t, "nothing is left", func() bool {
				select {
				case msg := <-messages:
					assert.Equal(t, "x/30", string(msg.Payload))
					msg.Ack()
				default:
				}
				lag, err := groups.Of(j, "group", topic).Lag(t.Context(), groups.LagOptions{})
				return err == nil && lag.Lag.Events == 0
			})
			assert.Zero(t, sub.Stats().Failures)
		}
	})
}

func TestLatestOnlyNeedsAllEvents(t *testing.T) {
	t.Parallel()
	j := open(t, create(t, 1))
	for _, change := range []func(*subscriber.Config){
		func(c *subscriber.Config) { c.Start = subscriber.Now() },
		func(c *subscriber.Config) { c.EventTypes = []string{"deposited"} },
	} {
		config := latest(j)
		change(&config)
		_, err := subscriber.NewSubscriber(config, nil)
		assert.ErrorContains(t, err, "LatestOnly")
	}
}
