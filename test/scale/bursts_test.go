package scale

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/aggregate"
	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/internal/testdb"
	"github.com/millrace-dev/millrace/internal/testjournal"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// outcome is the result of a run of concurrent bursts. handled does not include the final sweep.
type outcome struct {
	events, handled, conflicts int
	took                       time.Duration
}

// concurrently commits one event for each of as many aggregates, and then runs bursts for them,
// with the hints of a batch each. It runs the given number of bursts at a time.
func concurrently(t *testing.T, shards, bursts, batch, events int) (o outcome) {
	t.Helper()
	db := dynamotest.New(t)
	j := testjournal.New(t, db.Client(), journal.Config{Layout: journal.Packed, Shards: shards})
	var handled, conflicts atomic.Int64
	burst := func(hints ...subscriber.Hint) subscriber.Left {
		sub, err := subscriber.NewSubscriber(subscriber.Config{Journal: j, ConsumerGroup: "mails"}, nil)
		require.NoError(t, err)
		router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
		require.NoError(t, err)
		router.AddConsumerHandler("mails", "order", sub, func(*message.Message) error {
			time.Sleep(20 * time.Millisecond)
			handled.Add(1)
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		left, err := subscriber.Burst{Hints: hints}.Run(ctx, router)
		require.NoError(t, err)
		return left
	}
	burst() // makes the group
	batches := make(chan []subscriber.Hint, events)
	var next []subscriber.Hint
	for n := range events {
		id := aggregate.ID{Type: "order", Value: fmt.Sprint(n)}
		testjournal.Append(t, j, storage.Commit{Aggregate: id, Events: []storage.Event{{Type: "placed"}}})
		if next = append(next, subscriber.Hint{Aggregate: id, Version: 1}); len(next) == batch {
			batches <- next
			next = nil
		}
	}
	close(batches)
	db.Inject(dynamotest.Latency(3*time.Millisecond, 20*time.Millisecond))
	db.Observe(func(c dynamotest.Call) {
		var failed *types.ConditionalCheckFailedException
		if errors.As(c.Err, &failed) {
			conflicts.Add(1)
		}
	})
	began := time.Now()
	var running sync.WaitGroup
	for range bursts {
		running.Add(1)
		go func() {
			defer running.Done()
			for hints := range batches {
				burst(hints...)
			}
		}()
	}
	running.Wait()
	o = outcome{events, int(handled.Load()), int(conflicts.Load()), time.Since(began)}
	time.Sleep(time.Minute)
	assert.Zero(t, burst().Aggregates)
	assert.EqualValues(t, events, handled.Load())
	return o
}

// A burst that finds its shards taken hands its hints over to the bursts that hold them. So no
// event waits for the sweep.
func TestConcurrentBurstsHandOver(t *testing.T) {
	testdb.WithFakeTime(t, func(t *testing.T) {
		o := concurrently(t, 4, 8, 1, 48)
		assert.Equal(t, o.events, o.handled)
		assert.Positive(t, o.conflicts)
	})
}

func TestHowManyConcurrentBurstsHelp(t *testing.T) {
	if !*full {
		t.Skip("left to make scale")
	}
	fmt.Println("| shards | hints of a burst | bursts at a time | events/s | conflicts for an event | left to the sweep |")
	for _, shards := range []int{4, 16} {
		for _, batch := range []int{1, 20} {
			for _, bursts := range []int{1, 2, 4, 8, 16} {
				testdb.WithFakeTime(t, func(t *testing.T) {
					o := concurrently(t, shards, bursts, batch, 400*min(batch, 5))
					events := float64(o.events)
					fmt.Printf("| %d | %d | %d | %.0f | %.2f | %.0f %% |\n", shards, batch, bursts,
						float64(o.handled)/o.took.Seconds(), float64(o.conflicts)/events, 100*(1-float64(o.handled)/events))
				})
			}
		}
	}
}
