package subscriber_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/journal"
)

// late creates a journal whose tail index hides an aggregate until the test shows it.
func late(t *testing.T, id string) (*journal.Journal, *dynamotest.DB, *atomic.Bool) {
	t.Helper()
	db := dynamotest.New(t)
	require.NoError(t, journal.Create(t.Context(), db.Client(), journal.Config{Layout: journal.Classic, Shards: 1}))
	shown := &atomic.Bool{}
	db.Inject(dynamotest.Hide(func(item map[string]types.AttributeValue) bool {
		return !shown.Load() && strings.HasPrefix(nameOf(item), topic+"-"+id+"-")
	}), dynamotest.Index("journal-tail-index"))
	return open(t, db.Client()), db, shown
}

func TestAnEventThatTheIndexShowsLateDoesNotWaitForTrailingDelay(t *testing.T) {
	t.Parallel()
	j, db, shown := late(t, "late")
	config := quick(j)
	config.Timing.TrailingDelay = time.Hour
	_, messages := subscribe(t, config)
	other := open(t, db.Client()) // commits through it do not wake the subscriber
	write(t, other, "late", 0, 1)
	write(t, other, "other", 0, 1)
	assert.Equal(t, expect("other", 1, 1), receiveAll(t, messages, 1))
	shown.Store(true)
	assert.Equal(t, expect("late", 1, 1), receiveAll(t, messages, 1))
}

func TestABacklogDoesNotPostponeTrailingReads(t *testing.T) {
	t.Parallel()
	const backlog = 2_000
	_, db, shown := late(t, "late")
	// Until the clock is moved, the backlog is younger than the delay of the first trailing read,
	// however long it takes to write and read it.
	var clock atomic.Int64
	clock.Store(time.Now().UnixMilli())
	j := at(t, db.Client(), func() time.Time { return time.UnixMilli(clock.Load()) })
	write(t, j, "late", 0, 1)
	for n := range backlog / 100 {
		clock.Add(1)
		write(t, j, fmt.Sprint("a", n), 0, 100)
	}
	db.Inject(dynamotest.SmallPages(1), dynamotest.Index("journal-tail-index"))
	db.Inject(dynamotest.Latency(5*time.Millisecond, 10*time.Millisecond), dynamotest.Index("journal-tail-index"))
	config := quick(j)
	config.Timing.TrailingDelay = time.Hour
	_, messages := subscribe(t, config)

	for n := range backlog {
		if n == 5 {
			shown.Store(true)
			clock.Add(1_000)
		}
		msg := receive(t, messages)
		msg.Ack()
		if strings.HasPrefix(string(msg.Payload), "late/") {
			t.Logf("it comes after %d of %d events", n, backlog)
			return
		}
	}
	require.Fail(t, "the event that the index showed late comes after the backlog")
}
