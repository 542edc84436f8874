package subscriber_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/internal/storage"
	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/subscriber"
)

// heap returns the bytes that are reachable.
func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // for what the first one has finalized
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // it is far below the limit
}

// perAggregate returns the bytes of the heap for each aggregate that a subscriber remembers: what
// its end frees.
func perAggregate(t *testing.T, aggregates int, answer func(*message.Message), ready func(subscriber.Stats) bool) int64 {
	t.Helper()
	j := open(t, createIn(t, journal.Packed, 1))
	for n := range aggregates {
		_, err := j.Internal().Append(t.Context(), storage.Commit{
			Aggregate: account(fmt.Sprintf("0f3c1f5e-0000-4000-8000-%012d", n)), Events: []storage.Event{{Type: "deposited", Payload: []byte("{}")}},
		})
		require.NoError(t, err)
	}
	config := quick(j)
	config.NackResendSleep, config.MaxNackResendSleep = time.Hour, time.Hour
	sub, err := subscriber.NewSubscriber(config, nil) // the test would keep what is logged
	require.NoError(t, err)
	messages, err := sub.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	go func() {
		for msg := range messages {
			answer(msg)
		}
	}()
	eventually(t, "they are remembered", func() bool { return ready(sub.Stats()) })
	before := heap()
	closes(t, sub)
	return (before - heap()) / int64(aggregates)
}

// It does not run in parallel, because the heap is that of the process.
func TestWhatIsRememberedOfAnAggregateTakesTheMemoryThatStateBytesCounts(t *testing.T) {
	idle := perAggregate(t, 8_000, func(msg *message.Message) { msg.Ack() }, func(s subscriber.Stats) bool { return s.Positions >= 8_000 })
	t.Logf("%d bytes for an aggregate that is idle", idle)
	assert.Less(t, idle, int64(1<<10))

	failing := perAggregate(t, 2_000, func(msg *message.Message) {
		subscriber.SetNackReason(msg.Context(), errors.New(strings.Repeat("no connection to the provider ", 20)))
		msg.Nack()
	}, func(s subscriber.Stats) bool { return s.Nacked >= 2_000 })
	t.Logf("%d bytes for an aggregate that has failed", failing)
	assert.Less(t, failing, int64(24<<10/10))
}
